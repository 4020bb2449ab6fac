//! Findings agree with each other and with themselves: no time is counted twice, and advice follows the evidence.

use gnntop_wire::{Definition, Quantity, SignalId, SignalSource, StackSample, TrackRole, Unit};

use super::*;
use crate::figures::percent;
use crate::findings::Judgement;

/// The shares of the findings that are of the run's time together, without what they say is counted under another.
fn shares(findings: &Findings) -> f64 {
    let elsewhere = |finding: &Finding| match (finding.kind, finding.severity) {
        (_, Severity::Note) => 0.0,
        (FindingKind::DataBound | FindingKind::Gap, _) => finding.fact(Number::CountedElsewhere).unwrap_or(0.0),
        _ => 0.0,
    };
    let of_the_run = findings.found.iter().filter(|finding| finding.kind != FindingKind::GpuIdle);
    of_the_run.filter_map(|finding| Some(finding.share? - elsewhere(finding))).sum()
}

#[track_caller]
fn found(findings: &Findings, kind: FindingKind) -> &Finding {
    findings.found.iter().find(|finding| finding.kind == kind).unwrap_or_else(|| panic!("no {kind:?}: {findings:#?}"))
}

#[test]
fn contention_claims_time_first_and_once() {
    let plan = |_| StepPlan { gap_ns: 10 * MS, ..with_phase("data wait", 60 * MS) };
    let wait = [counted("process.main_thread.cpu_wait", Unit::Nanoseconds, |t| t * 4e8)];
    let findings = all_findings(&run(200, plan, &wait));
    assert_facts(found(&findings, FindingKind::Contention), FindingKind::Contention, &[(Number::OfTime, 0.4)]);
    let data = found(&findings, FindingKind::DataBound);
    assert_facts(data, FindingKind::DataBound, &[(Number::OfTime, 0.587)]);
    assert!((data.share.unwrap() - 0.587).abs() < 0.01, "as in the table: {data:#?}");
    let line = "of this, 23 % of the time is already counted under CPU contention";
    assert!(data.evidence.iter().any(|known| known == line), "{data:#?}");
    assert!(shares(&findings) < 1.0, "{findings:#?}");
}

#[test]
fn largest_share_leads_and_the_bound_is_always_named() {
    let judged = |data_ms: u64, waits: fn(f64) -> f64| {
        let wait = [counted("process.main_thread.cpu_wait", Unit::Nanoseconds, waits)];
        let store = run(200, move |_| with_phase("data wait", data_ms * MS), &wait);
        let judgement = Judgement::for_steps(&store, 0..u64::MAX);
        let parts: Vec<String> = judgement.parts().into_iter().map(|part| part.text).collect();
        (parts, judgement.findings.found)
    };
    let (parts, found) = judged(300, |t| t * 6e7);
    let (share, data) = (percent(found[0].share.unwrap()), &found[0]);
    assert_eq!(data.kind, FindingKind::DataBound, "{found:#?}");
    assert_eq!(parts[0], format!("data-bound ({share})"), "the same number in the headline and the table");
    assert!(data.summary.contains(&format!("waits for data {share} of the time")), "{data:#?}");
    assert!(parts.contains(&"CPU contention (6.0 %, in all phases)".to_owned()), "{parts:?}");
    let (parts, found) = judged(10, |t| t * 8e8);
    assert_eq!(parts[0], "CPU contention (80 %, in all phases)");
    assert!(parts.iter().any(|part| part.contains("-bound (")), "{parts:?}");
    assert_eq!(found[0].kind, FindingKind::Contention);
}

#[test]
fn gap_from_cpu_waits_is_not_a_gap_finding() {
    let kinds = |gap_ns: u64, waits: &[Reading]| -> Vec<FindingKind> {
        let plan = move |_| StepPlan { gap_ns, ..StepPlan::default() };
        all_findings(&run(200, plan, waits)).found.iter().map(|finding| finding.kind).collect()
    };
    let waits = [counted("process.main_thread.cpu_wait", Unit::Nanoseconds, |t| t * 4e8)];
    assert_eq!(kinds(5 * MS / 2, &[]), [FindingKind::Gap], "7 %");
    assert_eq!(kinds(5 * MS / 2, &waits), [FindingKind::Contention], "4 % without the waits");
    assert_eq!(kinds(8 * MS, &waits), [FindingKind::Contention, FindingKind::Gap], "11 % without them");
}

#[test]
fn cpu_wait_alone_is_contention() {
    let waits = |share: f64| {
        let wait = [counted(
            "process.main_thread.cpu_wait",
            Unit::Nanoseconds,
            if share > 0.05 { |t| t * 8e7 } else { |t| t * 2e7 },
        )];
        all_findings(&run(200, |_| StepPlan::default(), &wait)).found
    };
    assert_eq!(waits(0.02), []);
    let found = waits(0.08);
    assert_eq!(found.len(), 1);
    assert!((found[0].share.unwrap() - 0.08).abs() < 0.002 && found[0].confidence == Confidence::High, "{found:#?}");
}

#[test]
fn a_spike_at_a_mark_is_the_marks() {
    let plan = |step: u64| match step % 20 {
        0 => StepPlan { mark_inside: Some("gc"), ..with_phase("forward", 130 * MS) },
        _ => StepPlan::default(),
    };
    let findings = all_findings(&run(300, plan, &[]));
    let (stall, spike) = (found(&findings, FindingKind::Stall), found(&findings, FindingKind::Spike));
    assert!(stall.share.unwrap() > 0.1 && spike.share.unwrap() < 0.01, "{findings:#?}");
    assert_eq!((stall.severity, spike.severity), (Severity::Major, Severity::Note));
    let elsewhere = spike.counted_elsewhere().unwrap_or(0.0);
    assert!(elsewhere > 0.1 && stall.counted_elsewhere().is_none(), "the share that its words give: {spike:#?}");
    assert!(spike.evidence.iter().any(|line| line.contains("already counted under stalls at events")), "{spike:#?}");
}

#[test]
fn few_long_waits_are_described_as_mean() {
    let plan = |step: u64| match step % 10 {
        0 => with_phase("data wait", 200 * MS),
        _ => StepPlan::default(),
    };
    let findings = all_findings(&run(300, plan, &[]));
    let data = found(&findings, FindingKind::DataBound);
    assert_facts(
        data,
        FindingKind::DataBound,
        &[(Number::Each, 21.2e6), (Number::Usual, 1e6), (Number::SlowestTenth, 0.96)],
    );
}

#[test]
fn advice_follows_the_queue() {
    let with_queue = |often: u64| {
        let plan = move |step: u64| StepPlan {
            counters: vec![("queue depth", if step % 10 < often { 0.0 } else { 3.0 })],
            ..with_phase("data wait", 15 * MS)
        };
        only(&run(200, plan, &[]))
    };
    let half = with_queue(5);
    assert_facts(&half, FindingKind::DataBound, &[(Number::QueueEmpty, 0.49)]);
    assert!(!half.advice.iter().any(|line| line.contains("batches are ready")), "{half:#?}");
    let never = with_queue(0);
    assert_contains(&never, FindingKind::DataBound, &["batches are ready while the loop waits"]);
    assert!(!never.advice.iter().any(|line| line.contains("workers")), "{never:#?}");
}

#[test]
fn modelled_energy_is_not_reported_missing() {
    let load = [counted("machine.cpu.busy", Unit::Nanoseconds, |t| t * 8e8)];
    let reason = |readings: &[Reading]| {
        let not_enough = all_findings(&run(100, |_| StepPlan::default(), readings)).not_enough;
        not_enough.into_iter().find(|n| n.kind == FindingKind::ModelledEnergy).unwrap().reason
    };
    assert!(reason(&load).contains("modelled from the load"));
    assert_eq!(reason(&[]), "no energy or power is recorded");
}

/// Steps of 20 ms, and what `between` does before each: it gives how long that takes.
fn steps_with(mut stream: StreamBuilder, between: impl Fn(&mut StreamBuilder, u64, u64) -> u64) -> Store {
    let main = stream.track(TrackRole::Training, "main");
    let mut t_ns = START_NS;
    for step in 1..=200 {
        t_ns += between(&mut stream, step, t_ns);
        let start_ns = t_ns;
        t_ns += noisy(20 * MS, step);
        stream.phase(main, step, "forward", start_ns, t_ns);
        stream.step(main, step, start_ns, t_ns);
    }
    store_of(stream)
}

#[test]
fn frequent_timed_marks_cost_their_durations() {
    let main = gnntop_wire::TrackId(1);
    let pause = |stream: &mut StreamBuilder, step: u64, t_ns: u64| {
        if step.is_multiple_of(2) {
            stream.timed_mark(main, "gc", t_ns + 2 * MS, 2 * MS);
        }
        2 * MS + MS / 10
    };
    let findings = all_findings(&steps_with(StreamBuilder::new("marks"), pause));
    let stall = found(&findings, FindingKind::Stall);
    assert_contains(
        stall,
        FindingKind::Stall,
        &["\"gc\": 100 times, 200 ms, 4.5 % of the wall time, all between steps"],
    );
    assert_facts(stall, FindingKind::Stall, &[(Number::Each, 2e6), (Number::Outside, 100.0), (Number::Inside, 0.0)]);
    let gap = found(&findings, FindingKind::Gap);
    assert!((gap.share.unwrap() - 0.095).abs() < 0.01, "as in the table: {gap:#?}");
    let line = "of this, 4.5 % of the time is already counted under stalls at events";
    assert!(gap.evidence.iter().any(|known| known == line), "half of the gap is the marks': {gap:#?}");
}

#[test]
fn marks_of_the_warm_up_are_no_stall() {
    let collecting = |steps: std::ops::Range<u64>| {
        let main = gnntop_wire::TrackId(1);
        let collect = move |stream: &mut StreamBuilder, step: u64, t_ns: u64| {
            if !steps.contains(&step) {
                return MS / 10;
            }
            stream.timed_mark(main, "garbage collection", t_ns + 200 * MS, 200 * MS);
            201 * MS
        };
        let findings = all_findings(&steps_with(StreamBuilder::new("collects"), collect)).found;
        findings.iter().any(|finding| finding.kind == FindingKind::Stall)
    };
    assert_eq!([collecting(1..3), collecting(100..102)], [false, true]);
}

#[test]
fn frequent_untimed_marks_compare_with_other_steps() {
    let main = gnntop_wire::TrackId(1);
    let pause = |marked_ns: u64| {
        move |stream: &mut StreamBuilder, step: u64, t_ns: u64| {
            let is_marked = step.is_multiple_of(2);
            if is_marked {
                stream.mark(main, "log", t_ns + 1);
            }
            noisy(MS, step) + if is_marked { marked_ns } else { 0 }
        }
    };
    let costly = all_findings(&steps_with(StreamBuilder::new("marks"), pause(MS)));
    let stall = found(&costly, FindingKind::Stall);
    assert_facts(stall, FindingKind::Stall, &[(Number::Times, 100.0), (Number::Each, 1e6)]);
    assert_states_of(stall, "between steps", &[(Number::More, 1e6), (Number::OfSteps, 97.0)]);
    let free = all_findings(&steps_with(StreamBuilder::new("marks"), pause(0)));
    assert!(!free.found.iter().any(|finding| finding.kind == FindingKind::Stall), "{free:#?}");
}

#[test]
fn validation_is_neither_a_spike_nor_a_gap() {
    let main = gnntop_wire::TrackId(1);
    let validate = |stream: &mut StreamBuilder, step: u64, t_ns: u64| {
        if !step.is_multiple_of(20) {
            return MS / 10;
        }
        stream.phase(main, step, "validation", t_ns, t_ns + 200 * MS);
        200 * MS + MS / 10
    };
    let findings = all_findings(&steps_with(StreamBuilder::new("validation"), validate));
    let blamed = |kind| findings.found.iter().any(|finding| finding.kind == kind);
    assert!(
        !blamed(FindingKind::Spike) && !blamed(FindingKind::Gap) && !blamed(FindingKind::StepKinds),
        "{findings:#?}"
    );
}

#[test]
fn validation_within_a_steps_own_timer_is_neither_a_spike_nor_a_stall() {
    let mut stream = StreamBuilder::new("evaluates");
    let main = stream.track(TrackRole::Training, "main");
    let mut start_ns = START_NS;
    for step in 1..=200 {
        let trains_ns = if step % 20 == 0 { start_ns + 50 * MS } else { start_ns };
        if trains_ns > start_ns {
            stream.phase(main, step, "validation", start_ns, trains_ns);
            stream.valued_mark(main, "validation ms", trains_ns, 50.0);
        }
        let end_ns = trains_ns + (40 + step % 3) * MS;
        stream.phase(main, step, "forward", trains_ns, end_ns);
        stream.step(main, step, start_ns, end_ns);
        start_ns = end_ns;
    }
    assert_eq!(all_findings(&store_of(stream)).found, []);
}

#[test]
fn gap_in_which_output_waits_for_its_reader_has_the_line() {
    let mut stream = stream(300, |_| StepPlan { gap_ns: 15 * MS, ..StepPlan::default() }, &[]);
    let track = stream.track(TrackRole::Samples, "stacks of train, sampled");
    let path = stream.path(&["gap", "report (train.py:30)", "write of a pipe (<system call>)"]);
    let sample = StackSample { path, t_ns: START_NS, count: 40, is_repeat: false };
    stream.event(track, gnntop_wire::Event::StackSample(sample));
    let words = ["40 stacks sampled in gap: in report (train.py:30), waiting in write of a pipe", "write less output"];
    assert_contains(&only(&store_of(stream)), FindingKind::Gap, &words);
}

#[test]
fn spans_that_fill_the_gap_are_named() {
    let main = gnntop_wire::TrackId(1);
    let evaluate = |stream: &mut StreamBuilder, step: u64, t_ns: u64| {
        if !step.is_multiple_of(20) {
            return MS / 10;
        }
        stream.span(main, step, "batch", t_ns, t_ns + 100 * MS);
        stream.span(main, step, "evaluate", t_ns, t_ns + 200 * MS);
        201 * MS
    };
    let findings = all_findings(&steps_with(StreamBuilder::new("spans"), evaluate));
    let gap = found(&findings, FindingKind::Gap);
    assert_contains(gap, FindingKind::Gap, &["phase `validation`"]);
    assert_states_of(gap, "evaluate", &[(Number::OfGap, 0.99), (Number::Times, 10.0), (Number::Each, 200e6)]);
    assert_eq!(gap.fact_of("batch", Number::OfGap), None, "it is inside the other: {}", gap.summary);
    assert!(!gap.advice.iter().any(|line| line.contains("measure what the loop does")), "{gap:#?}");
}

#[test]
fn table_gaps_limit_gpu_idle_share() {
    let mut stream = StreamBuilder::new("table");
    let (id, metric, source) =
        (SignalId(7), Quantity::GpuUtil.with_instance(0).into(), SignalSource::Column("util".to_owned()));
    stream.define(Definition::Signal { id, metric, source, device: String::new() });
    let main = gnntop_wire::TrackId(1);
    let reading = |stream: &mut StreamBuilder, _: u64, t_ns: u64| {
        stream.sample(main, id, t_ns, 97_000);
        20 * MS
    };
    let findings = all_findings(&steps_with(stream, reading));
    let idle = found(&findings, FindingKind::GpuIdle);
    assert_contains(idle, FindingKind::GpuIdle, &["GPU 0 is idle at least 50 % of the time, despite its readings"]);
    assert_facts(idle, FindingKind::GpuIdle, &[(Number::OfTime, 0.5), (Number::ReadIdle, 0.03)]);
    assert_eq!(idle.confidence, Confidence::Medium);
}
