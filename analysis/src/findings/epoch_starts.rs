//! Time that passes at the starts of epochs: loader workers that are started again, or what the program does between two epochs, such
//! as listing, sorting or shuffling its data, or a validation that nobody has named.

use gnntop_wire::TrackRole;

use super::evidence::StepEvidence;

/// What to do where loader workers are started again.
const KEEP_WORKERS: &str = "keep the loader's workers from one epoch to the next (persistent_workers=True)";
/// What to do where they are kept, but have no batch ready when an epoch begins.
const LONGER_EPOCHS: &str = "the loader keeps its workers, and has no batch ready when an epoch begins: make epochs longer (num_samples of RandomSampler)";

/// It is most of a time.
const MOSTLY: f64 = 0.5;

/// The share (0 to 1) of a time, given for each row, that is in the first steps of epochs, if that is most of it.
pub(super) fn share(evidence: &StepEvidence<'_>, row_ns: impl Fn(usize) -> f64) -> Option<f64> {
    let rows = 0..evidence.rows.len();
    let all: f64 = rows.clone().map(&row_ns).sum();
    let first: f64 = rows.filter(|row| evidence.begins_epoch(*row)).map(&row_ns).sum();
    Some(first / all).filter(|share| *share > MOSTLY)
}

/// What to do where loader workers make the first batches.
pub(super) fn advice_on_workers(evidence: &StepEvidence<'_>) -> &'static str {
    if are_workers_kept(evidence) { LONGER_EPOCHS } else { KEEP_WORKERS }
}

/// Whether at most starts of epochs a worker makes batches before and after the first step.
fn are_workers_kept(evidence: &StepEvidence<'_>) -> bool {
    let workers = evidence.store.tracks().iter().filter(|track| track.role == TrackRole::Loader);
    let times: Vec<(u64, u64)> =
        workers.filter_map(|track| Some((track.lane()?.first_ns()?, track.lane()?.last_end_ns()?))).collect();
    let starts = || (0..evidence.rows.len()).filter(|row| evidence.begins_epoch(*row));
    let is_kept = |row: &usize| {
        let row = &evidence.rows[*row];
        times.iter().any(|(first_ns, last_ns)| *first_ns < row.start_ns() && *last_ns > row.end_ns())
    };
    starts().filter(is_kept).count() as f64 > MOSTLY * starts().count() as f64
}

/// What to do about it, with the line in which most of it passes, if that is known.
pub(super) fn advice(line: Option<&str>) -> String {
    let line = line.map(|line| format!(", above all in {line}")).unwrap_or_default();
    format!("do less at the start of each epoch{line}")
}
