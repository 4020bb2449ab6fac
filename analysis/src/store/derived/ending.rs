//! What came after the last step of a program that has ended by itself.

use crate::store::contents::Store;
use crate::store::session::SessionState;

/// Shorter time after the last step is not worth a word...
const LEAST_NS: u64 = 3_000_000_000;
/// ...nor is less than this many usual steps.
const USUAL_STEPS: u64 = 10;

impl Store {
    /// For how long a program went on after its last step, in nanoseconds, once it has ended by itself; `None` if it has not, or that
    /// was short.
    pub fn after_last_step_ns(&self) -> Option<u64> {
        let session = self.session();
        let is_over = matches!(session.state(), SessionState::Ended(_)) && session.death_text().is_none();
        let last = self.steps().last().filter(|_| is_over)?;
        let usual_ns = self.statistics().period().percentile(0.5)?;
        let ns = self.now_ns().saturating_sub(last.end_ns());
        (ns >= usual_ns.saturating_mul(USUAL_STEPS).max(LEAST_NS)).then_some(ns)
    }

    /// Whether nothing more comes: the program has ended, however it did.
    pub fn is_over(&self) -> bool {
        matches!(self.session().state(), SessionState::Ended(_) | SessionState::Gone)
    }
}
