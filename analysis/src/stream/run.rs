//! What makes several sessions one run, as far as whoever reads them and whoever keeps them must agree on it.

use gnntop_wire::{Place, SessionInfo};

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

/// Whether a session is a later start of the run that another one is a start of: of the same rank of the same program, with a
/// greater number. Programs that a launcher's job runs one after the other differ in their command lines; what a person
/// calls one run may be started in another way.
pub fn follows(earlier: &SessionInfo, later: &SessionInfo) -> bool {
    let (Some(before), Some(after)) = (&earlier.place, &later.place) else { return false };
    let (Some(first), Some(second)) = (before.attempt, after.attempt) else { return false };
    let is_same = before.run == after.run && before.rank == after.rank && earlier.name == later.name;
    if !is_same || first == second || before.is_named() != after.is_named() {
        return false;
    }
    match before.is_named() {
        true => is_later(earlier, later).unwrap_or(first < second),
        false => first < second && earlier.command == later.command,
    }
}

/// Whether two starts under one id may have gone on beside each other: where a person has given the id, on two machines or
/// within one boot.
pub fn may_overlap(earlier: &SessionInfo, later: &SessionInfo) -> bool {
    let is_named = later.place.as_ref().is_some_and(|place| place.is_named());
    is_named && (earlier.host != later.host || is_later(earlier, later).is_some())
}

/// Whether it started later, by the clock that both share; `None` where they share none.
fn is_later(earlier: &SessionInfo, later: &SessionInfo) -> Option<bool> {
    let is_one_boot = !earlier.boot_id.is_empty() && earlier.boot_id == later.boot_id;
    is_one_boot.then_some(earlier.start.monotonic_ns < later.start.monotonic_ns)
}
