//! No text of a program's own changes what anything else means: names of tracks, spans, marks and of the program itself
//! are shown, and nothing follows from how they are spelt.

use std::mem::discriminant;

use gnntop_analysis::findings::{judge_newest, rank_findings};
use gnntop_analysis::ranks::pipeline::PipelineStep;
use gnntop_analysis::ranks::watchdog::find_hang;
use gnntop_analysis::ranks::{Run, strip};
use gnntop_analysis::store::{GAP, Store};
use gnntop_fixtures::uneven::{place, rank_info};
use gnntop_fixtures::{MS, SECOND, START_NS, StreamBuilder, each_item};
use gnntop_wire::{
    Counter, Definition, Event, Fact, Goal, GoalUnit, Mark, Mode, NameKind, Open, Place, Reported, Sampling, Span,
    StepId, TrackId, TrackRole, phase,
};
use proptest::prelude::*;
use proptest::sample::subsequence;

/// Texts that once had a meaning, or have one for people.
const MAGIC: [&str; 16] = [
    "deep trace",
    "stacks of x",
    "x, sampled",
    "stacks of train, sampled",
    "nccl",
    "nccl default_pg",
    "GPU 0 stream 7",
    "operators",
    "y (ms)",
    "other process: a (pid 5)",
    "other processes: a",
    "0000000000000000>f (a.py:1)",
    "stacks sampled",
    "stacks a second",
    "gnntop import csv",
    "loader worker",
];

/// What readers know of the program. Facts of its own say the same.
fn known_facts() -> [Fact; 13] {
    let text = |text: &str| text.to_owned();
    [
        Fact::Framework("candle 0.9".into()),
        Fact::Inferred { phase: text("backward"), how: text("from its end") },
        Fact::Resumed { steps: 50 },
        Fact::NotRecorded { what: text("spans nested too deep"), amount: text("36") },
        Fact::Died { cause: text("killed"), text: text("The kernel killed it.") },
        Fact::NoStacks { why: text("none: not permitted") },
        Fact::Mode(Mode::Inference),
        Fact::ComputeThreads(8),
        Fact::LoaderWorkers(2),
        Fact::MeanOfSteps(10),
        Fact::Parameters { number_type: text("float64"), dense_embeddings: 98 },
        Fact::Goal { goal: Goal { unit: GoalUnit::Steps, number: 500 }, by: text("the program") },
        Fact::Note { key: text("marks before this part"), text: text("gc: 3") },
    ]
}

/// These, and all phases, reports and facts that readers know.
fn magic() -> Vec<String> {
    let numbered =
        ["micro-batch 1", "blocks of stage 0", "device memory peak in forward", "subnormals", "MPI", "process.rss"];
    let known = Reported::plain().map(Reported::text).chain(Sampling::ALL.map(Sampling::text));
    let facts = ["PyTorch 2.9.1", "inferred forward", "died of", "not recorded: x", "77"];
    let titles = known_facts().map(|fact| fact.key().title().to_owned());
    MAGIC
        .into_iter()
        .chain(numbered)
        .chain(known)
        .chain(phase::KNOWN)
        .chain([GAP])
        .chain(facts)
        .map(str::to_owned)
        .chain(titles)
        .collect()
}

/// Texts of a stream: tracks, marks, spans, frames, a counter, a fact, and the program's name.
const TEXTS: usize = 12;

/// Adds a span, a mark with a value and a counter of a user's, whatever they are called.
fn add_own(stream: &mut StreamBuilder, track: TrackId, step: u64, [inner, mark, counter]: [&str; 3], t_ns: u64) {
    let (span, of_mark) = (stream.name(NameKind::Span, inner), stream.name(NameKind::Text, mark));
    let of_counter = stream.name(NameKind::Counter, counter);
    let span = Span { name: span, start_ns: t_ns + MS, end_ns: t_ns + 2 * MS, step: StepId(step) };
    stream.event(track, Event::Span(span));
    stream.event(track, Event::Counter(Counter { name: of_counter, t_ns: t_ns + 3 * MS, value: step as f64 }));
    let mark = Mark { name: of_mark, t_ns: t_ns + 3 * MS, value: Some(step as f64), took_ns: None };
    stream.event(track, Event::Mark(mark));
}

/// A training of 60 steps whose every text is a user's.
fn stream(texts: &[String]) -> Vec<u8> {
    let [program, main, other, loader, stacks, mark, timed, inner, frame, counter, key, fact] = texts else {
        panic!("{TEXTS} texts")
    };
    let mut stream = StreamBuilder::new(program);
    let own = Fact::Other { key: key.clone(), text: fact.clone() };
    known_facts().into_iter().chain([own]).for_each(|fact| stream.define(Definition::Fact(fact)));
    let main = stream.track(TrackRole::Training, main);
    let other = stream.track(TrackRole::Other, other);
    let loader = stream.track(TrackRole::Loader, loader);
    let stacks = stream.track(TrackRole::Stacks, stacks);
    let mut t_ns = START_NS;
    for step in 1..=60 {
        let begin_ns = t_ns;
        let slow_ns = if step % 20 == 0 { 130 * MS } else { 0 };
        add_own(&mut stream, loader, step, [inner, mark, counter], t_ns);
        add_own(&mut stream, other, step, [inner, mark, counter], t_ns);
        add_own(&mut stream, main, step, [inner, mark, counter], t_ns);
        stream.phase(main, step, "forward", t_ns, t_ns + 10 * MS + slow_ns);
        t_ns += 10 * MS + slow_ns;
        if slow_ns > 0 {
            stream.stack(stacks, t_ns - MS, Default::default(), &[frame, inner]);
            let mark = Mark { name: stream.name(NameKind::Text, timed), t_ns, value: None, took_ns: Some(slow_ns) };
            stream.event(main, Event::Mark(mark));
        }
        stream.phase(main, step, "backward", t_ns, t_ns + 20 * MS);
        t_ns += 20 * MS;
        stream.step(main, step, begin_ns, t_ns);
        t_ns += MS;
        if step % 30 == 0 {
            stream.phase(main, step + 1, "validation", t_ns, t_ns + 50 * MS);
            t_ns += 50 * MS;
        }
    }
    stream.anchor(t_ns);
    stream.end(t_ns);
    stream.bytes()
}

/// A stage of a pipeline whose own span is around its phases' parts and around waiting, and is left open by the second one.
fn stage(rank: u32, texts: &[String]) -> Vec<u8> {
    let place = Place { stage: rank, stages: 2, copy: 0, copies: 1, ..place(rank, 2) };
    let mut stream = StreamBuilder::from_info(&rank_info(&texts[0], place));
    let main = stream.track(TrackRole::Training, &texts[1]);
    let own = stream.name(NameKind::Span, &texts[7]);
    let mut t_ns = START_NS;
    for step in 1..=20 {
        let around = |from: u64, to: u64| {
            Event::Span(Span { name: own, start_ns: t_ns + from * MS, end_ns: t_ns + to * MS, step: StepId(step) })
        };
        stream.span(main, step, "wait", t_ns + MS, t_ns + 3 * MS);
        stream.event(main, around(0, 4));
        for (phase, from) in [("forward", 4), ("backward", 14)] {
            stream.span(main, step, "micro-batch 0", t_ns + (from + 2) * MS, t_ns + (from + 8) * MS);
            stream.event(main, around(from + 1, from + 9));
            stream.phase(main, step, phase, t_ns + from * MS, t_ns + (from + 10) * MS);
        }
        stream.step(main, step, t_ns + 4 * MS, t_ns + 24 * MS);
        t_ns += 24 * MS;
    }
    let now_ns = t_ns + 5 * SECOND;
    match rank {
        0 => stream.open(main, 21, "receive", t_ns, now_ns),
        _ => stream.event(main, Event::Open(Open { name: own, since_ns: t_ns, t_ns: now_ns, step: StepId(21) })),
    }
    stream.anchor(now_ns);
    stream.bytes()
}

/// Everything about a stream but its texts.
fn figures(bytes: &[u8]) -> String {
    let mut store = Store::new();
    each_item(bytes, |item| store.apply(item));
    let percentiles = ["step", "period", "gap", "forward", "backward"].map(|name| store.percentile(name, 0.9));
    let tracks = store.tracks().iter().map(|track| (track.role, track.events, track.spans, track.steps));
    let marks: Vec<_> = store.marks().iter().map(|mark| (mark.track, mark.t_ns, mark.duration_ns())).collect();
    let spans: Vec<_> = store.spans().iter().map(|span| (span.durations.count(), span.durations.total_ns())).collect();
    let stacks: Vec<_> = store.stacks().iter().map(|stack| (stack.t_ns, stack.thread, stack.frames.len())).collect();
    let memory = store.device_memory().is_some();
    let counters: Vec<_> = store.program_counters().map(|counter| counter.series.summary().count).collect();
    let counts = (store.sampled().total(), store.rivals().iter().len(), store.statistics().steps());
    let session = store.session();
    let facts: Vec<_> = session.facts().values().filter(|fact| !matches!(fact, Fact::Other { .. })).collect();
    let inferred = ["forward", "backward"].map(|phase| session.inferred(phase));
    let facts = (facts, session.uses_torch(), inferred, session.death_text(), session.death_cause(), store.attempts());
    let findings = judge_newest(&store);
    let kinds: Vec<_> = findings.findings.found.iter().map(|finding| (finding.kind, finding.share)).collect();
    format!(
        "{percentiles:?} {:?} {marks:?} {spans:?} {stacks:?} {counts:?} {kinds:?} {memory} {counters:?} {facts:?}",
        tracks.collect::<Vec<_>>()
    )
}

/// Everything about two stages but their texts.
fn figures_of_ranks(texts: &[String]) -> String {
    let mut run = Run::default();
    for rank in [0, 1] {
        each_item(&stage(rank, texts), |item| run.apply(item));
    }
    let ranks = run.ranks();
    let hang = find_hang(&ranks).map(|hang| {
        let stuck = hang.blocking.iter().chain(&hang.waiting);
        (hang.for_ns, stuck.map(|stuck| (stuck.rank, discriminant(&stuck.activity))).collect::<Vec<_>>())
    });
    let strips = ranks.all().iter().map(|rank| {
        let columns = strip(rank, &(START_NS..ranks.now_ns()), 100);
        columns.iter().map(|column| column.as_ref().map(|it| (discriminant(&it.what), it.share))).collect::<Vec<_>>()
    });
    let step = PipelineStep::from_ranks(&ranks, 0, StepId(10));
    let found: Vec<_> = rank_findings(&ranks).found.iter().map(|finding| (finding.kind, finding.share)).collect();
    format!("{hang:?} {:?} {step:?} {:?} {found:?}", strips.collect::<Vec<_>>(), ranks.work(0, 20))
}

/// Different texts: some that once meant something, in any place, and any others.
fn texts() -> impl Strategy<Value = Vec<String>> {
    let magic = subsequence(magic(), TEXTS).prop_shuffle();
    (magic, proptest::collection::vec((any::<bool>(), "[a-z (),.:>]{0,12}"), TEXTS)).prop_map(|(magic, other)| {
        let text = |(at, (magic, (is_magic, other))): (usize, (String, (bool, String)))| match is_magic {
            true => magic,
            false => format!("{other} {at}"),
        };
        magic.into_iter().zip(other).enumerate().map(text).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn user_texts_change_no_figures(texts in texts()) {
        let neutral: Vec<String> = (0..TEXTS).map(|at| format!("text {at}")).collect();
        prop_assert_eq!(figures(&stream(&texts)), figures(&stream(&neutral)));
        prop_assert_eq!(figures_of_ranks(&texts), figures_of_ranks(&neutral));
    }
}

#[test]
fn each_user_text_alone_changes_no_figures() {
    let neutral: Vec<String> = (0..TEXTS).map(|at| format!("text {at}")).collect();
    let (expected, expected_of_ranks) = (figures(&stream(&neutral)), figures_of_ranks(&neutral));
    for (at, magic) in (0..TEXTS).flat_map(|at| magic().into_iter().map(move |magic| (at, magic))) {
        let mut texts = neutral.clone();
        texts[at].clone_from(&magic);
        assert_eq!(figures(&stream(&texts)), expected, "{magic:?} as text {at}");
        assert_eq!(figures_of_ranks(&texts), expected_of_ranks, "{magic:?} as text {at}");
    }
}
