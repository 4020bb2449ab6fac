//! Time that passes at the starts of epochs: loader workers that are started again, or what the program does between two epochs, such
//! as listing, sorting or shuffling its data, or a validation that nobody has named.

use super::evidence::StepEvidence;

/// What to do where loader workers are started again.
pub(super) const KEEP_WORKERS: &str = "keep the loader's workers from one epoch to the next (persistent_workers=True)";

/// It is most of a time.
const MOSTLY: f64 = 0.5;

/// The share (0 to 1) of a time, given for each row, that is in the first steps of epochs, if that is most of it.
pub(super) fn share(evidence: &StepEvidence<'_>, row_ns: impl Fn(usize) -> f64) -> Option<f64> {
    let rows = 0..evidence.rows.len();
    let all: f64 = rows.clone().map(&row_ns).sum();
    let first: f64 = rows.filter(|row| evidence.begins_epoch(*row)).map(&row_ns).sum();
    Some(first / all).filter(|share| *share > MOSTLY)
}

/// What to do about it, with the line in which most of it passes, if that is known.
pub(super) fn advice(line: Option<&str>) -> String {
    let line = line.map(|line| format!(", above all in {line}")).unwrap_or_default();
    format!("do less at the start of each epoch{line}")
}
