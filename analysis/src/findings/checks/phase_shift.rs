//! Phase shift: as batches grow, time moves from one phase to another, so that something else bounds the run.

use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::number::Number;
use crate::findings::robust::{median, quantile};
use crate::findings::stated_numbers::StatedNumbers;
use crate::store::Phase;

/// Large batches are at least this many times the small ones.
const RANGE: f64 = 1.5;
/// A phase's share must change by this much.
const SHIFT: f64 = 0.1;
/// Steps needed on each side.
const ENOUGH: usize = 10;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let Some((measure, _)) = evidence.shape.fit else {
        return CheckOutcome::NotEnough("batch size does not vary, or does not explain the time".to_owned());
    };
    let sizes: Vec<f64> = evidence.rows.iter().map(|row| measure.value(row).unwrap_or(0) as f64).collect();
    let mut sorted = sizes.clone();
    let (Some(small), Some(large)) = (quantile(&mut sorted, 0.05), quantile(&mut sorted, 0.95)) else {
        return CheckOutcome::Nothing;
    };
    if large < RANGE * small {
        return CheckOutcome::NotEnough(format!("batches differ by less than a factor of {RANGE}"));
    }
    let (low, high) = (small + 0.25 * (large - small), large - 0.25 * (large - small));
    let side = |is: &dyn Fn(f64) -> bool| (0..sizes.len()).filter(|row| is(sizes[*row])).collect::<Vec<usize>>();
    let (small_rows, large_rows) = (side(&|size| size <= low), side(&|size| size >= high));
    if small_rows.len() < ENOUGH || large_rows.len() < ENOUGH {
        return CheckOutcome::NotEnough("too few small or too few large batches".to_owned());
    }
    // Medians, so that a spike among the large batches is not a shift.
    let share = |phase: &Phase, rows: &[usize]| {
        let of = |row: &usize| evidence.timed[*row].phase_ns(phase.slot) as f64 / evidence.inside_ns[*row].max(1.0);
        median(&mut rows.iter().map(of).collect::<Vec<f64>>()).unwrap_or(0.0)
    };
    let phases = evidence.store.phases().iter().filter(|phase| !phase.is_gap());
    let changes: Vec<(&Phase, f64, f64)> =
        phases.map(|phase| (phase, share(phase, &small_rows), share(phase, &large_rows))).collect();
    let grown = changes.iter().max_by(|a, b| (a.2 - a.1).total_cmp(&(b.2 - b.1)));
    let Some((phase, from, to)) = grown.filter(|(_, from, to)| to - from >= SHIFT) else {
        return CheckOutcome::Nothing;
    };
    let mut finding = Finding::for_run(FindingKind::PhaseShift, Confidence::High, None, |facts| {
        let (small, large) = (facts.count(Number::From, small as u64), facts.count(Number::To, large as u64));
        let grows = changed(facts, &phase.text, "grows", (*from, *to));
        format!("as batches grow from {small} to {large} {}, {grows} of a step", measure.as_str())
    });
    for (phase, from, to) in changes.iter().filter(|(_, from, to)| from - to >= 0.05) {
        finding = finding.with_evidence_from(|facts| changed(facts, &phase.text, "falls", (*from, *to)));
    }
    finding.with_advice("measure at the batch size that you will use").into()
}

/// How a phase's share of a step changes.
fn changed(facts: &mut StatedNumbers, phase: &str, verb: &str, (from, to): (f64, f64)) -> String {
    facts.about(phase, |facts| {
        let (from, to) = (facts.share(Number::From, from), facts.share(Number::To, to));
        format!("{phase} {verb} from {from} to {to}")
    })
}
