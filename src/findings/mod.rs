//! What is worth saying about a session, in words: read from the store, drawn by nobody here.

mod verdict;

pub use verdict::{Spike, Verdict};

use crate::store::Store;

/// Newest steps that the verdict of a running session looks at: enough for a p99, cheap enough for every frame.
const LIVE_STEPS: u64 = 4096;

/// What there is to say about the newest 4,096 steps: cheap enough for a live view.
pub fn newest(store: &Store) -> Verdict {
    let end = store.steps().total();
    Verdict::of(store, end.saturating_sub(LIVE_STEPS)..end)
}

/// The session in one line, from its newest 4,096 steps: what bounds it, how even its steps are.
pub fn verdict(store: &Store) -> String {
    newest(store).to_string()
}
