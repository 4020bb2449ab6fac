//! What makes several sessions one run, as far as readers and stores of sessions must agree on it.

use gnntop_wire::SessionInfo;

/// Most sessions of a run that are kept, including replaced ones. Further ones are counted.
pub const MAX_SESSIONS: usize = 256;
/// A session that continues for this long after its replacement has started is a rival, not a predecessor.
pub const RIVAL_NS: u64 = 2_000_000_000;

/// Whether `later` is a later start of the same run as `earlier`: of the same rank of the same program, with a greater
/// number. Programs that a launcher's job runs one after the other have different command lines; a run named by a person
/// may be started with a different one.
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

/// Whether two starts with one id may have run at the same time: if a person chose the id, on two machines or within one boot.
pub fn may_overlap(earlier: &SessionInfo, later: &SessionInfo) -> bool {
    let is_named = later.place.as_ref().is_some_and(|place| place.is_named());
    is_named && (earlier.host != later.host || is_later(earlier, later).is_some())
}

/// Whether it started later, by a clock that both share; `None` if they share none.
fn is_later(earlier: &SessionInfo, later: &SessionInfo) -> Option<bool> {
    let is_one_boot = !earlier.boot_id.is_empty() && earlier.boot_id == later.boot_id;
    is_one_boot.then_some(earlier.start.monotonic_ns < later.start.monotonic_ns)
}
