//! A first epoch that waits for data which later ones find ready: read into the machine's memory, or made once and kept.

use super::input::Input;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::Finding;
use crate::findings::number::Number;
use crate::findings::robust::median;

/// It does most of the waiting...
const MOSTLY: f64 = 0.5;
/// ...and a batch of it usually takes this many times as long as a later one.
const LONGER: f64 = 2.0;

/// Adds that, and what to do about it.
pub(super) fn describe(evidence: &StepEvidence<'_>, input: &Input, finding: Finding) -> Finding {
    let Some((share, first_ns, later_ns)) = compare(evidence, input) else { return finding };
    finding
        .with_evidence_from(|facts| {
            let share = facts.share(Number::FirstEpoch, share);
            let (first, later) = (facts.time(Number::From, first_ns), facts.time(Number::To, later_ns));
            format!(
                "{share} of the waiting is in the first epoch: {first} for a usual batch, and {later} in later ones"
            )
        })
        .with_advice(
            "make the data ready once, in a file that the next run reads too: later epochs find them in memory",
        )
}

/// The first epoch's share of the waiting, and the time of a usual batch in it and later.
fn compare(evidence: &StepEvidence<'_>, input: &Input) -> Option<(f64, f64, f64)> {
    let first = evidence.warm_up.first()?.epoch();
    let later_at = evidence.timed.iter().position(|row| row.epoch() != first)?;
    let times: Vec<f64> = evidence.timed.iter().map(|row| input.row_ns(row)).collect();
    let (mut early, mut later) = (times[..later_at].to_vec(), times[later_at..].to_vec());
    let share = early.iter().sum::<f64>() / times.iter().sum::<f64>().max(1.0);
    let (first_ns, later_ns) = (median(&mut early)?, median(&mut later)?);
    (share >= MOSTLY && first_ns >= LONGER * later_ns).then_some((share, first_ns, later_ns))
}
