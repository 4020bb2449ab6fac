//! The questions that are asked of a session or a run, and which steps are looked at to answer them.

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

/// What there is to say about the newest 8,192 steps.
pub fn newest(store: &Store) -> Judgement {
    let end = store.steps().total();
    Judgement::of(store, end.saturating_sub(LIVE_STEPS)..end)
}

/// What there is to say about a run now: about the newest steps of the rank that is looked at, and about all ranks.
pub fn of_run(run: &Run) -> Judgement {
    newest(run.store()).and(of_ranks(&run.ranks()))
}

/// All findings over the steps that the store keeps.
pub fn all(store: &Store) -> Findings {
    over(store, 0..u64::MAX)
}

/// All findings over the steps with these ordinals, as far as they are kept. Signals, counters and marks are looked
/// at over the time of these steps.
pub fn over(store: &Store, ordinals: Range<u64>) -> Findings {
    checks::findings(&Evidence::of(store, ordinals))
}

/// The session in one line, from its newest 8,192 steps: what bounds it, what was found, how even its steps are.
pub fn verdict(store: &Store) -> String {
    newest(store).to_string()
}
