//! Slower than before: steps that take longer since some time, over the whole run.

use gnntop_wire::Quantity;

use crate::figures::{duration, lasting, utc};
use crate::findings::claim::Claim;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, Occurrence};
use crate::findings::hardware::held_mean;
use crate::findings::level_change::LevelChange;
use crate::findings::number::Number;
use crate::findings::run_stretches::most_grown;
use crate::findings::sampled_places::SampledPlaces;
use crate::findings::stated_numbers::StatedNumbers;
use crate::store::{GAP, Signal, Store, StoredMark};

/// A time that is known less exactly than this is given as "about".
const ABOUT_NS: u64 = 2_000_000_000;
/// If other steps changed by this much more or less, batches have changed, too.
const OTHER_BATCHES: f64 = 0.05;
/// A mark that chance alone puts this near with a higher probability proves nothing.
const BY_CHANCE: f64 = 0.25;
/// Marks before the change that are looked at.
const MARKS: usize = 16;
/// Another program may slow steps down if they are preempted this many times more...
const SWITCHES: f64 = 2.0;
/// ...and this many times as often for their length.
const TIMES: f64 = 2.0;
/// What may explain it.
const REPORTED: [(Quantity, &str); 4] = [
    (Quantity::GpuClockSm, "the GPU's clock"),
    (Quantity::GpuPower, "the GPU's power"),
    (Quantity::ProcessRss, "the process's resident memory"),
    (Quantity::ProcessSwap, "the process's swapped memory"),
];
/// Time before and after the change over which they are compared.
const COMPARED_NS: u64 = 60_000_000_000;
/// A phase has its lines named if it has this part of what steps take longer...
const WORTH_LINES: f64 = 0.2;
/// ...this many of them.
const LINES: usize = 2;
/// A signal that changes by less is not listed.
const CHANGED: f64 = 0.1;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    evidence.level_change().map_or(CheckOutcome::Nothing, |change| finding(evidence, change).into())
}

fn finding(evidence: &StepEvidence<'_>, change: &LevelChange<'_>) -> Finding {
    let store = evidence.store;
    let work = if change.is_by_work { "steps with the same work" } else { "steps" };
    let mark = mark_before(store, change);
    let after = mark.map(|(text, _)| format!(", just after mark \"{text}\"")).unwrap_or_default();
    let rows = evidence.rows.iter().filter(|row| row.ordinal() >= change.begin.ordinal);
    let since_of_all = evidence.share(rows.map(|row| row.period_ns() as f64).sum());
    let share = since_of_all * change.slower / (1.0 + change.slower);
    let end =
        evidence.rows.last().map_or((change.begin.ordinal, change.begin.t_ns), |row| (row.ordinal(), row.end_ns()));
    let finding = Finding::for_run(FindingKind::SlowerSince, Confidence::High, Some(share), |facts| {
        let (slower, when) = (facts.share(Number::Slower, change.slower), when(facts, store, change));
        format!("{work} take {slower} longer since {when}{after}{}", times(facts, change))
    });
    let place = Occurrence {
        ordinals: change.begin.ordinal..end.0 + 1,
        start_ns: change.begin.t_ns,
        end_ns: end.1,
        sentence: finding.summary.clone(),
    };
    let finding =
        finding.with_claim(Claim::Everywhere(share)).with_places(vec![place], 1).with_evidence_lines(|facts| {
            let mark = mark.map(|mark| mark_line(facts, mark));
            let lines = [grown(facts, store, change), mark, preemption_line(facts, change)];
            let mut lines: Vec<String> = lines.into_iter().flatten().collect();
            lines.extend(changed_signals(facts, store, change));
            lines.extend(lines_of_grown(facts, store, change));
            lines
        });
    finding
        .with_advice("look for what changed then: a restart, other data, another program, clocks, temperatures, memory")
}

/// What a step took before and takes since; nothing if batches changed as well.
fn times(facts: &mut StatedNumbers, change: &LevelChange<'_>) -> String {
    let times = change.medians(|known| Some(known.row.period_ns().max(1) as f64));
    let is_all = |(before, since): &(f64, f64)| (since / before - 1.0 - change.slower).abs() <= OTHER_BATCHES;
    let text = |(before, since)| {
        format!(": {} before, {} since", facts.time(Number::From, before), facts.time(Number::To, since))
    };
    times.filter(is_all).map(text).unwrap_or_default()
}

/// `2026-11-17 14:10:03 UTC (step 12,345,678)`, or the time since the start if the wall clock is unknown.
fn when(facts: &mut StatedNumbers, store: &Store, change: &LevelChange<'_>) -> String {
    let t_ns = change.begin.t_ns;
    let since_start = || format!("{} after the start", duration(t_ns.saturating_sub(store.first_ns().unwrap_or(0))));
    let time = store.session().wall_ns(t_ns).map_or_else(since_start, utc);
    let about = if change.begin.unsure_ns() > ABOUT_NS { "about " } else { "" };
    format!("{about}{time} (step {})", facts.count(Number::SinceStep, change.begin.step))
}

/// The phase, or the gap, that grew most.
fn grown(facts: &mut StatedNumbers, store: &Store, change: &LevelChange<'_>) -> Option<String> {
    let times = |slot| change.medians(|known| Some(known.row.phase_ns(slot) as f64));
    let (phase, before, since) = most_grown(store, times)?;
    facts.about(phase, |facts| {
        let (before, since) = (facts.time(Number::From, before), facts.time(Number::To, since));
        Some(format!("most of it in {phase}: {before} before, {since} since"))
    })
}

/// The program's lines in the phases that grew, the most grown first: what slows one down, such as data that both passes go through, is
/// often in a smaller one.
fn lines_of_grown(facts: &mut StatedNumbers, store: &Store, change: &LevelChange<'_>) -> Vec<String> {
    let growth = |slot| change.medians(|known| Some(known.row.phase_ns(slot) as f64)).map(|(from, to)| to - from);
    let phases = store.phases().iter().filter_map(|phase| Some((phase, growth(phase.slot)?)));
    let mut grown: Vec<(&str, f64)> = phases
        .filter(|(_, ns)| *ns > 0.0)
        .map(|(phase, ns)| (if phase.is_gap() { GAP } else { &*phase.text }, ns))
        .collect();
    grown.sort_by(|a, b| b.1.total_cmp(&a.1));
    let least_ns = WORTH_LINES * grown.iter().map(|(_, ns)| ns).sum::<f64>();
    let named = grown.into_iter().filter(|(_, ns)| *ns >= least_ns);
    named
        .flat_map(|(phase, _)| SampledPlaces::in_phase(store, phase).lines(facts, phase).into_iter().take(LINES))
        .collect()
}

/// The nearest mark before the change, with the time between, unless it is probably chance.
fn mark_before<'s>(store: &'s Store, change: &LevelChange<'_>) -> Option<(&'s str, u64)> {
    let between_ns = &change.begin.between_ns;
    let times = between_ns.start.saturating_sub(change.near_ns)..between_ns.end;
    let reach_ns = times.end - times.start;
    let near: Vec<&StoredMark> = store.marks().within(times).collect();
    let is_telling = |mark: &&&StoredMark| {
        let all = store.marks_with_text(store.mark_text(mark)).0;
        all as f64 * reach_ns as f64 / store.elapsed_ns().max(1) as f64 <= BY_CHANCE
    };
    let mark = near.iter().rev().take(MARKS).find(is_telling)?;
    Some((store.mark_text(mark), change.begin.t_ns.saturating_sub(mark.t_ns)))
}

fn mark_line(facts: &mut StatedNumbers, (text, ns): (&str, u64)) -> String {
    let ahead = facts.time(Number::Ahead, ns as f64);
    let before = if ns > 0 { format!("{ahead} before") } else { "at".to_owned() };
    format!("mark \"{text}\" came {before} the first slow step")
}

/// Whether the CPU is taken from the steps more often than before, relative to their time.
fn preemption_line(facts: &mut StatedNumbers, change: &LevelChange<'_>) -> Option<String> {
    let (before, since) = change.medians(|known| Some(known.row.usage()?.involuntary_switches as f64))?;
    let longer = TIMES * (1.0 + change.slower);
    let is_taken = since - before >= SWITCHES && since > longer * before;
    is_taken.then(|| {
        let since = facts.number(Number::Preemptions, since);
        let before = facts.number(Number::PreemptionsBefore, before);
        format!("the training thread is preempted {since:.0} times a step, {before:.0} times before")
    })
}

/// What a signal that is listed is of, in words.
fn reported_name(signal: &Signal) -> Option<&'static str> {
    let quantity = signal.metric.metric()?.quantity();
    REPORTED.iter().find(|(of, _)| *of == quantity).map(|(_, name)| *name)
}

/// Signals about the machine that change at that time.
fn changed_signals(facts: &mut StatedNumbers, store: &Store, change: &LevelChange<'_>) -> Vec<String> {
    let t_ns = change.begin.t_ns;
    let from_ns = store.first_ns().unwrap_or(0).max(t_ns.saturating_sub(COMPARED_NS));
    let before = from_ns..t_ns;
    let since = t_ns..store.now_ns().min(t_ns.saturating_add(COMPARED_NS)).max(t_ns);
    let [before_words, after_words] = [&before, &since].map(|span| lasting(span.end - span.start));
    let line = |(signal, what): (&Signal, &str)| {
        let (from, to) = held_mean(signal, &before).zip(held_mean(signal, &since))?;
        let by = to / from - 1.0;
        let word = if by > 0.0 { "higher" } else { "lower" };
        (from > 0.0 && by.abs() >= CHANGED).then(|| {
            let metric = signal.metric.to_string();
            let change = facts.about(&metric, |facts| facts.share(Number::Change, by.abs()));
            format!("{what} is {change} {word} in the {after_words} after that than in the {before_words} before")
        })
    };
    let telling = |signal| Some((signal, reported_name(signal)?));
    store.signals().all().iter().filter_map(telling).filter_map(line).collect()
}
