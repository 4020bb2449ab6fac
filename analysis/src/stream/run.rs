//! What makes several sessions one run, as far as whoever reads them and whoever keeps them must agree on it.

use gnntop_wire::Place;

/// Sessions of a run that are kept, those that were replaced among them. What lies beyond is counted.
pub const MOST_SESSIONS: usize = 256;
/// A session that goes on for this long after the one that replaces it has started is no predecessor but a rival.
pub const RIVAL_NS: u64 = 2_000_000_000;

/// What a rank of a run is on its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankKind {
    /// A process of its own.
    Process,
    /// A thread of a process that it shares with other ranks of that machine.
    Thread,
}

impl RankKind {
    /// By the engine that joins the ranks: `threads`, or another one and threads, such as `NCCL and threads`.
    pub fn of(place: &Place) -> Self {
        if place.engine.ends_with("threads") { Self::Thread } else { Self::Process }
    }
}
