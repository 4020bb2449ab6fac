//! What can be asked about a session or a run, and which steps are looked at for the answer.

use std::ops::Range;

use super::checks;
use super::evidence::Evidence;
use super::finding::Findings;
use super::judgement::Judgement;
use super::ranks::of_ranks;
use crate::ranks::Run;
use crate::store::Store;

/// Newest steps that are looked at in a running session: enough for a p99, and some milliseconds of work.
const LIVE_STEPS: u64 = 8192;

/// Verdict and findings for the newest 8,192 steps.
pub fn newest(store: &Store) -> Judgement {
    let end = store.steps().total();
    Judgement::of(store, end.saturating_sub(LIVE_STEPS)..end)
}

/// Verdict and findings for a run now: for the newest steps of the selected rank, and for all ranks.
pub fn of_run(run: &Run) -> Judgement {
    newest(run.store()).and(of_ranks(&run.ranks()))
}

/// All findings for the steps that the store keeps.
pub fn all(store: &Store) -> Findings {
    over(store, 0..u64::MAX)
}

/// All findings for the kept steps with these ordinals. Signals, counters and marks are looked at over the time of
/// these steps.
pub fn over(store: &Store, ordinals: Range<u64>) -> Findings {
    checks::findings(&Evidence::of(store, ordinals))
}

/// The session in one line, from its newest 8,192 steps: what bounds it, what was found, how even its steps are.
pub fn verdict(store: &Store) -> String {
    newest(store).to_string()
}
