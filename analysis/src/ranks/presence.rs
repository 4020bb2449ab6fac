//! Whether a rank is still running.

use super::rank::{Rank, Ranks};
use crate::store::SessionState;

/// Whether a rank is still running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It publishes, or nothing says otherwise.
    Here,
    /// It has published nothing for this long while others did, in nanoseconds.
    Silent(u64),
    /// It ended normally.
    Ended,
    /// It ended unexpectedly: crashed or killed.
    Gone,
}

/// A rank that is this far behind the others is silent.
const SILENT_NS: u64 = 2_000_000_000;

impl Ranks<'_> {
    /// The newest time of any rank, on the run's clock in nanoseconds; 0 before the first.
    pub fn now_ns(&self) -> u64 {
        self.all().iter().map(|rank| rank.run_ns(rank.store.now_ns())).max().unwrap_or(0)
    }

    /// Whether a rank is still running.
    pub fn presence(&self, rank: &Rank<'_>) -> Presence {
        let silent_ns = self.now_ns().saturating_sub(rank.run_ns(rank.store.now_ns()));
        match rank.store.session().state() {
            SessionState::Ended(_) => Presence::Ended,
            SessionState::Gone => Presence::Gone,
            // Clocks that were not compared cannot show who is late, and a rank that has not begun is not late.
            _ if silent_ns > SILENT_NS && rank.error_ns.is_some() && rank.store.first_ns().is_some() => {
                Presence::Silent(silent_ns)
            }
            _ => Presence::Here,
        }
    }
}
