//! Findings of a running session, looked at again and again at a bounded cost.

use std::time::{Duration, Instant};

use super::{Findings, over};
use crate::store::Store;

/// Newest steps that are looked at.
const STEPS: u64 = 8192;
/// Between two looks this many times as long as the last one took: at most 2 % of a core.
const REST: u32 = 49;
/// A look is no use more often than this.
const SHORTEST_REST: Duration = Duration::from_secs(1);

/// Keeps the findings of a session at most some seconds old, for at most 2 % of a core.
#[derive(Debug, Default)]
pub struct Watch {
    findings: Findings,
    revision: Option<u64>,
    next: Option<Instant>,
}

impl Watch {
    /// One that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks at the newest 8,192 steps again if there is anything new and it is time. Returns whether it did.
    pub fn update(&mut self, store: &Store) -> bool {
        let begin = Instant::now();
        if self.revision == Some(store.revision()) || self.next.is_some_and(|next| begin < next) {
            return false;
        }
        self.look(store);
        let rest = (begin.elapsed() * REST).max(SHORTEST_REST);
        self.next = Some(Instant::now() + rest);
        true
    }

    /// Looks at once, whatever it costs: after a jump in a recording.
    pub fn look(&mut self, store: &Store) {
        let end = store.steps().total();
        self.findings = over(store, end.saturating_sub(STEPS)..end);
        self.revision = Some(store.revision());
    }

    /// What the last look found.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }
}
