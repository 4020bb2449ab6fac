//! Steps that are slower after a checkpoint, though the loop did not wait for it: something still writes it.

use crate::findings::claim::{Claim, StepCost};
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, PLACES_LISTED};
use crate::findings::number::Number;
use crate::findings::robust::median;
use crate::store::StoredMark;

/// With fewer checkpoints, what follows them is chance.
const ENOUGH: usize = 3;
/// Steps after a checkpoint are slower if they take this share of a step longer...
const SLOWER: f64 = 0.1;
/// ...and this many standard errors of the usual noise.
const ERRORS: f64 = 6.0;
/// Reported from this share of the wall time.
const WORTH_REPORTING: f64 = 0.01;
/// What lasts longer than this part of the steps from one checkpoint to the next is another thing.
const MOST_OF_THE_WAY: f64 = 0.75;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let rows = checkpoint_rows(evidence);
    if rows.len() < ENOUGH {
        return CheckOutcome::Nothing;
    }
    let usual_ns = evidence.usual_inside_ns();
    let slow = slow_steps(evidence, &rows, usual_ns);
    let apart =
        median(&mut rows.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect::<Vec<f64>>()).unwrap_or(0.0);
    let costs: Vec<StepCost> =
        rows.iter().flat_map(|row| *row..row + slow).filter_map(|row| cost(evidence, row, usual_ns)).collect();
    let cost_ns: f64 = costs.iter().map(|cost| cost.ns).sum();
    let share = evidence.share(cost_ns);
    if slow == 0 || slow as f64 > MOST_OF_THE_WAY * apart || share < WORTH_REPORTING {
        return CheckOutcome::Nothing;
    }
    finding(evidence, &rows, slow, costs, share).into()
}

/// The first row after each checkpoint.
fn checkpoint_rows(evidence: &StepEvidence<'_>) -> Vec<usize> {
    let is_checkpoint = |text: &str| ["checkpoint", "save"].iter().any(|word| text.to_lowercase().contains(word));
    let marks = evidence.store.marks().iter().filter(|mark| is_checkpoint(evidence.store.mark_text(mark)));
    let next = |mark: &StoredMark| {
        let row = evidence.row_at(mark.t_ns)?;
        Some(row + usize::from(evidence.store.is_mark_inside(mark, &evidence.rows[row])))
    };
    let mut rows: Vec<usize> = marks.filter_map(next).filter(|row| *row < evidence.rows.len()).collect();
    rows.dedup();
    rows
}

/// How many steps after a checkpoint are slower.
fn slow_steps(evidence: &StepEvidence<'_>, rows: &[usize], usual_ns: f64) -> usize {
    let is_slow = |after: &usize| {
        let there = rows.iter().map(|row| row + after).filter(|row| *row < evidence.rows.len());
        let mut excess: Vec<f64> = there.map(|row| excess_ns(evidence, row, usual_ns)).collect();
        let error_ns = ERRORS * 1.25 * evidence.noise_ns / (excess.len().max(1) as f64).sqrt();
        let least_ns = error_ns.max(SLOWER * usual_ns);
        excess.len() >= ENOUGH && median(&mut excess).is_some_and(|more| more > least_ns)
    };
    (0..).take_while(is_slow).count()
}

/// How much longer a step is than its batch explains. Slow steps may have been taken for a kind of their own.
fn excess_ns(evidence: &StepEvidence<'_>, row: usize, usual_ns: f64) -> f64 {
    if evidence.shape.explains() { evidence.excess_ns(row) } else { evidence.inside_ns[row] - usual_ns }
}

fn cost(evidence: &StepEvidence<'_>, row: usize, usual_ns: f64) -> Option<StepCost> {
    let ns = (row < evidence.rows.len()).then(|| excess_ns(evidence, row, usual_ns))?;
    Some(StepCost { row, is_inside: true, ns: ns.max(0.0), without_ns: None })
}

fn finding(evidence: &StepEvidence<'_>, rows: &[usize], slow: usize, costs: Vec<StepCost>, share: f64) -> Finding {
    let each = costs.iter().map(|cost| cost.ns).sum::<f64>() / costs.len().max(1) as f64;
    let sentence = |row: &usize| {
        let step = evidence.rows[*row].step().0;
        format!("after the checkpoint before step {step}, {slow} steps are slower")
    };
    let end = evidence.rows.len();
    let place = |row: &usize| evidence.places(*row..(row + slow).min(end), sentence(row));
    let places = rows.iter().take(PLACES_LISTED).map(place).collect();
    Finding::for_run(FindingKind::AfterCheckpoint, Confidence::Medium, Some(share), |facts| {
        let (steps, each) = (facts.count(Number::Steps, slow as u64), facts.time(Number::More, each));
        let (times, share) = (facts.count(Number::Times, rows.len() as u64), facts.share(Number::OfTime, share));
        let steps = if slow == 1 { "the step".to_owned() } else { format!("the {steps} steps") };
        let verb = if slow == 1 { "takes" } else { "take" };
        format!("{steps} after a checkpoint {verb} {each} longer, after {times} of them: {share} of the time")
    })
    .with_places(places, rows.len() as u64)
    .with_claim(Claim::Steps(costs))
    .with_evidence("the checkpoint itself is over: what writes it takes cores, memory or a disk from the training")
    .with_advice("write checkpoints less often, or with fewer threads and a limited rate")
}
