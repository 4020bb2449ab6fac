//! What can be asked about a session or a run, and which steps are looked at for the answer.

use std::ops::Range;

use super::checks;
use super::evidence::StepEvidence;
use super::finding::Findings;
use super::judgement::Judgement;
use super::ranks::rank_findings;
use crate::ranks::Run;
use crate::store::Store;

/// Newest steps that are looked at in a running session: enough for a p99, and some milliseconds of work.
const LIVE_STEPS: u64 = 8192;

/// Verdict and findings for the newest 8,192 steps.
pub fn judge_newest(store: &Store) -> Judgement {
    let end = store.steps().total();
    Judgement::for_steps(store, end.saturating_sub(LIVE_STEPS)..end)
}

/// Verdict and findings for a run now: for the newest steps of the selected rank, and for all ranks.
pub fn judge_run(run: &Run) -> Judgement {
    judge_newest(run.store()).with_rank_findings(rank_findings(&run.ranks()))
}

/// All findings for the steps that the store keeps.
pub fn all_findings(store: &Store) -> Findings {
    findings_in(store, 0..u64::MAX)
}

/// All findings for the kept steps with these ordinals. Signals, counters and marks are looked at over the time of
/// these steps.
pub fn findings_in(store: &Store, ordinals: Range<u64>) -> Findings {
    checks::findings(&StepEvidence::new(store, ordinals))
}

/// The session in one line, from its newest 8,192 steps: what bounds it, what was found, how even its steps are.
pub fn verdict(store: &Store) -> String {
    judge_newest(store).to_string()
}
