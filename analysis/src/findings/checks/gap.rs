//! The gap: wall time inside no phase, most of it between steps, where timers around a step never see it.

use std::collections::BTreeSet;

use super::contention;
use super::gap_filling::{self, GapFilling};
use crate::figures::duration;
use crate::findings::claim::{Claim, StepCost};
use crate::findings::epoch_starts;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, PLACES_LISTED};
use crate::findings::number::Number;
use crate::findings::pauses::RegularPauses;
use crate::findings::sampled_places::SampledPlaces;
use crate::findings::stated_numbers::StatedNumbers;
use crate::store::{GAP, PhaseSlot, StepRow};

/// A smaller share of the wall time is not a finding, unless single gaps are long.
const WORTH_REPORTING: f64 = 0.05;
/// The same where a library runs the loop: its callbacks, logs and progress bars take 1 to 2 ms a batch, always, and that is
/// no mistake of the program.
const WORTH_REPORTING_OF_LIBRARY: f64 = 0.1;
/// A single gap is long if it exceeds the usual gap by this share of a step...
const LONG: f64 = 0.5;
/// ...and by this many of its standard deviations.
const SIGMAS: f64 = 6.0;
/// If this many times as many steps as gaps are held up, the machine is the cause.
const FAR_MORE: usize = 3;
/// Spans that fill less than this share of the gap are not named; of the others, at most this many.
const WORTH_NAMING: f64 = 0.1;
const MAX_NAMED: usize = 3;
/// What fills this much of the gap explains it.
const MOSTLY: f64 = 0.5;
/// Time between steps that is a smaller part of the gap is not described.
const BETWEEN: f64 = 0.01;

/// Whether the time between a row and the previous step is far longer than usual. Starts of epochs do not count.
pub(super) fn is_long(evidence: &StepEvidence<'_>, row: usize) -> bool {
    let excess = evidence.between_ns[row] - evidence.usual_between_ns;
    let by_step = LONG * (evidence.expected_ns[row] + evidence.usual_between_ns);
    let least = by_step.max(SIGMAS * evidence.between_noise_ns).max(evidence.preempted_ns(row));
    !evidence.begins_epoch(row) && excess > least
}

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let between: f64 = evidence.between_ns.iter().sum();
    let has_phases = evidence.store.phases().len() > 1;
    let gap = if has_phases { evidence.phase_total_ns(PhaseSlot::GAP) } else { between };
    let share = evidence.share(gap);
    let long: Vec<usize> = (0..evidence.rows.len()).filter(|row| is_long(evidence, *row)).collect();
    let long = if is_caused_by_machine(evidence, &long) { Vec::new() } else { long };
    let of_its_own = evidence.share(gap - preempted_ns(evidence)).min(share * (1.0 - contention::waits(evidence)));
    let of_library = evidence.store.session().has_loop_of_library();
    let least = if of_library { WORTH_REPORTING_OF_LIBRARY } else { WORTH_REPORTING };
    if of_its_own < least && long.is_empty() {
        return CheckOutcome::Nothing;
    }
    let pauses = RegularPauses::find(evidence);
    let in_rhythm = pauses.as_ref().map_or(&[][..], |pauses| &pauses.rows);
    let alone = long.iter().filter(|row| !in_rhythm.contains(row)).count();
    let long: BTreeSet<usize> = long.iter().chain(in_rhythm).copied().collect();
    let sentence = |row: &usize| {
        let step = evidence.rows[*row].step().0;
        let (took, usual) = (evidence.between_ns[*row] as u64, evidence.usual_between_ns as u64);
        format!("{} before step {step}, usually {}", duration(took), duration(usual))
    };
    let places = long.iter().take(PLACES_LISTED).map(|row| evidence.place(*row, sentence(row))).collect();
    let where_ = if has_phases { "outside every phase" } else { "between steps" };
    let filled = gap_fillings(evidence);
    let finding = Finding::for_run(FindingKind::Gap, Confidence::High, Some(share), |facts| {
        let share = facts.share(Number::OfTime, share);
        let filled = filled.iter().map(|filling| {
            let share = facts.about(&filling.name, |facts| facts.share(Number::OfGap, filling.share));
            format!(", {share} of it in \"{}\"", filling.name)
        });
        let mut summary = format!("{share} of the wall time is {where_}{}", filled.collect::<String>());
        summary.extend(pauses.as_ref().map(|pauses| paused(facts, evidence, pauses)));
        if alone > 0 {
            let long = facts.count(Number::LongGaps, alone as u64);
            let times = if alone == 1 { "once".to_owned() } else { format!("{long} times") };
            summary += &format!("; {times}, the time between two steps is far longer than usual");
        }
        summary
    });
    let claim = if has_phases { Claim::Phases(vec![PhaseSlot::GAP]) } else { claim_between(evidence) };
    let finding = finding.with_claim(claim).with_places(places, 1 + long.len() as u64);
    let finding = if between >= BETWEEN * gap { explain(evidence, finding) } else { finding };
    let at_starts = first_steps(evidence, has_phases);
    place(evidence, finding, &filled, at_starts, between > 0.5 * gap).into()
}

/// Adds where the gap is: in first steps of epochs, if it is `at_starts` of them, in spans, and in lines. And what to do about it.
fn place(
    evidence: &StepEvidence<'_>,
    finding: Finding,
    filled: &[GapFilling],
    at_starts: Option<f64>,
    is_between: bool,
) -> Finding {
    let finding = finding.with_evidence_lines(|facts| {
        let share = |share| format!("{} of it is in the first steps of epochs", facts.share(Number::FirstSteps, share));
        at_starts.map(share)
    });
    let lines =
        |facts: &mut StatedNumbers| filled.iter().map(|filling| describe(facts, filling)).collect::<Vec<String>>();
    let sampled = sampled_parts(evidence, filled);
    let finding = finding.with_evidence_lines(lines).with_evidence_lines(|facts| {
        sampled.iter().flat_map(|(part, places)| places.lines(facts, part)).collect::<Vec<String>>()
    });
    if wait_for_reader(&sampled) {
        let advice = "write less output, or less often: what reads it is slower than the program, which waits for it";
        return finding.with_advice(advice);
    }
    let is_filled = filled.iter().map(|filling| filling.share).sum::<f64>() >= MOSTLY;
    finding.with_advice(match sampled[0].1.line() {
        _ if is_filled => about_filling(&filled[0].name),
        line if at_starts.is_some() => epoch_starts::advice(line),
        Some(line) => format!("make {line} cheaper, or call it less often"),
        None if is_between => {
            "measure what the loop does between steps: fetching data, logging, reading results back from the device"
                .to_owned()
        }
        None => "add phases for the rest of the step: part of it is outside every phase".to_owned(),
    })
}

/// The share of the gap that is in the first steps of epochs, if it is most of it.
fn first_steps(evidence: &StepEvidence<'_>, has_phases: bool) -> Option<f64> {
    epoch_starts::share(evidence, |row| {
        if has_phases { evidence.rows[row].phase_ns(PhaseSlot::GAP) as f64 } else { evidence.between_ns[row] }
    })
}

/// The sampled stacks in the gap, and in each span of it, which has its stacks under its own name.
fn sampled_parts<'a>(evidence: &StepEvidence<'_>, filled: &'a [GapFilling]) -> Vec<(&'a str, SampledPlaces)> {
    let parts = std::iter::once(GAP).chain(filled.iter().map(|filling| filling.name.as_str()));
    parts.map(|part| (part, SampledPlaces::in_phase(evidence.store, part))).collect()
}

/// Whether most of these stacks wait for what reads the program's output.
fn wait_for_reader(sampled: &[(&str, SampledPlaces)]) -> bool {
    let sum = |number: fn(&SampledPlaces) -> u64| sampled.iter().map(|(_, places)| number(places)).sum::<u64>() as f64;
    let (writing, all) = (sum(|places| places.writing), sum(|places| places.all));
    writing >= MOSTLY * all.max(1.0)
}

/// How long the time between two steps is where it is far longer at equal intervals.
fn paused(facts: &mut StatedNumbers, evidence: &StepEvidence<'_>, pauses: &RegularPauses) -> String {
    let each = facts.time(Number::Each, pauses.mean_ns(evidence));
    let usual = facts.time(Number::Usual, evidence.usual_between_ns);
    format!("; {}: {each} between two steps, usually {usual}", pauses.when(facts))
}

/// The time between steps, if it is unknown what happened in it.
fn claim_between(evidence: &StepEvidence<'_>) -> Claim {
    let cost = |(row, ns): (usize, &f64)| StepCost { row, is_inside: false, ns: *ns, without_ns: None };
    Claim::Steps(evidence.between_ns.iter().enumerate().map(cost).collect())
}

/// The spans that fill a large part of the gap.
fn gap_fillings(evidence: &StepEvidence<'_>) -> Vec<GapFilling> {
    let filling = gap_filling::gap_fillings(evidence).into_iter().filter(|filling| filling.share >= WORTH_NAMING);
    filling.take(MAX_NAMED).collect()
}

fn describe(facts: &mut StatedNumbers, filling: &GapFilling) -> String {
    let GapFilling { name, count, total_ns, share } = filling;
    facts.about(name, |facts| {
        let (share, times) = (facts.share(Number::OfGap, *share), facts.count(Number::Times, *count));
        let each = facts.time(Number::Each, total_ns / *count as f64);
        format!("\"{name}\" fills {share} of the gap: {times} times, {each} on average")
    })
}

/// What to do about the span that fills most of the gap.
fn about_filling(name: &str) -> String {
    let is_evaluation = ["eval", "valid", "test"].iter().any(|word| name.to_lowercase().contains(word));
    match is_evaluation {
        true => format!("make \"{name}\" a phase `validation`, so that it does not count as gap"),
        false => format!("see what \"{name}\" does, and whether it can run less often"),
    }
}

/// How much longer gaps are because the CPU was taken away meanwhile.
fn preempted_ns(evidence: &StepEvidence<'_>) -> f64 {
    let more =
        |row: usize| (evidence.between_ns[row] - evidence.usual_between_ns).clamp(0.0, evidence.preempted_ns(row));
    (0..evidence.rows.len()).map(more).sum()
}

/// Whether steps are held up as long as this, and far more often, while they run: then the machine holds up whatever
/// runs, and it was chance that it happened between two steps.
fn is_caused_by_machine(evidence: &StepEvidence<'_>, long: &[usize]) -> bool {
    let excess = |row: &usize| evidence.between_ns[*row] - evidence.usual_between_ns;
    let as_long = long.iter().map(excess).fold(f64::INFINITY, f64::min) / 2.0;
    let held_up = (0..evidence.rows.len()).filter(|row| evidence.excess_ns(*row) > as_long).count();
    held_up >= FAR_MORE * long.len()
}

/// Adds where the gap is, and what timers around steps make of an epoch.
fn explain(evidence: &StepEvidence<'_>, mut finding: Finding) -> Finding {
    let epochs: Vec<usize> = (0..evidence.rows.len()).filter(|row| evidence.begins_epoch(*row)).collect();
    finding = finding.with_evidence_from(|facts| {
        format!("between steps: usually {}", facts.time(Number::Usual, evidence.usual_between_ns))
    });
    if !epochs.is_empty() {
        let at_start = epochs.iter().map(|row| evidence.between_ns[*row]).sum::<f64>() / epochs.len() as f64;
        finding = finding.with_evidence_from(|facts| {
            format!("before an epoch's first step: {} on average", facts.time(Number::EpochStart, at_start))
        });
    }
    let (what, wall, inside) = epoch_times(evidence);
    finding.with_evidence_from(|facts| {
        let (inside, wall) = (facts.time(Number::Timed, inside), facts.time(Number::Wall, wall));
        format!("timers around steps add up to {inside} {what}, the wall clock shows {wall}")
    })
}

/// Wall time and time inside steps of an epoch, over epochs with all their steps, warm-up included; over all steps if
/// there is only one epoch.
fn epoch_times(evidence: &StepEvidence<'_>) -> (&'static str, f64, f64) {
    let rows: Vec<StepRow<'_>> = evidence.warm_up.iter().chain(&evidence.rows).copied().collect();
    let epochs: Vec<&[StepRow<'_>]> = rows.chunk_by(|a, b| a.epoch() == b.epoch()).collect();
    let most = epochs.iter().map(|epoch| epoch.len()).max().unwrap_or(0);
    let whole: Vec<&&[StepRow<'_>]> = epochs.iter().filter(|epoch| epoch.len() == most).collect();
    let sum = |of: &dyn Fn(&StepRow<'_>) -> f64| whole.iter().flat_map(|epoch| epoch.iter()).map(of).sum::<f64>();
    let n = whole.len().max(1) as f64;
    let what = if epochs.len() > 1 { "an epoch" } else { "in all" };
    (what, sum(&|row| row.period_ns() as f64) / n, sum(&|row| evidence.row_inside_ns(row)) / n)
}
