//! The offset between the clocks of two sessions, and times of several sessions in one stream on the clock of one of them.
//!
//! Sessions within one boot of one machine share their monotonic clock. Across machines, the offset is what the ranks
//! measured between them, else what the wall clocks say, which may be off by any amount, and which is unknown if the ranks
//! were imported.

use gnntop_wire::SessionInfo;

/// What an offset between two clocks is based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockEvidence {
    /// It is the same clock: the same boot of the same machine.
    SameClock,
    /// The ranks measured it between them.
    Measured,
    /// The wall clocks at the sessions' starts, which were not compared.
    WallClock,
    /// The times in imported tables or traces: whose clocks they are is unknown.
    Imported,
}

/// The offset between two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// To be added to one clock's times to get the other's, in nanoseconds.
    pub offset_ns: i64,
    /// Error of the offset in either direction, in nanoseconds; `None` if unknown.
    pub error_ns: Option<u64>,
    /// What the offset is based on.
    pub evidence: ClockEvidence,
}

/// The offset from the clock of `session` to that of `reference`.
pub fn align(session: &SessionInfo, reference: &SessionInfo) -> Alignment {
    let is_one = session.session_id == reference.session_id;
    if is_one || !session.boot_id.is_empty() && session.boot_id == reference.boot_id {
        return Alignment { offset_ns: 0, error_ns: Some(0), evidence: ClockEvidence::SameClock };
    }
    let to_first = |info: &SessionInfo| {
        let place = info.place.as_ref()?;
        // Rank 0's offset to itself was not measured and need not be.
        let own = (place.rank == 0).then(gnntop_wire::ClockOffset::default);
        place.clock.or(own)
    };
    if let (Some(one), Some(other)) = (to_first(session), to_first(reference)) {
        return Alignment {
            offset_ns: one.offset_ns.saturating_sub(other.offset_ns),
            error_ns: Some(one.error_ns.saturating_add(other.error_ns)),
            evidence: ClockEvidence::Measured,
        };
    }
    let zero = |info: &SessionInfo| i128::from(info.start.wall_ns) - i128::from(info.start.monotonic_ns);
    let offset = zero(session) - zero(reference);
    let offset_ns = i64::try_from(offset).unwrap_or(if offset < 0 { i64::MIN } else { i64::MAX });
    let are_imported = session.origin.is_import() && reference.origin.is_import();
    let evidence = if are_imported { ClockEvidence::Imported } else { ClockEvidence::WallClock };
    Alignment { offset_ns, error_ns: None, evidence }
}

/// The offset from the clock of the current session to the reference.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clocks {
    /// The session whose clock is the reference: the first one seen, unless it is given.
    reference: Option<SessionInfo>,
    offset_ns: i64,
}

impl Clocks {
    /// Converts to this session's clock.
    pub(crate) fn with_reference(reference: Option<SessionInfo>) -> Self {
        Self { reference, offset_ns: 0 }
    }

    /// Begins a segment: the next times are on its session's clock.
    pub(crate) fn begin(&mut self, info: &SessionInfo) {
        let reference = self.reference.get_or_insert_with(|| info.clone());
        self.offset_ns = align(info, reference).offset_ns;
    }

    /// A time of the current session on the common clock.
    pub(crate) fn common_ns(&self, t_ns: u64) -> u64 {
        t_ns.saturating_add_signed(self.offset_ns)
    }

    /// To be added to times of the current session.
    pub(crate) fn offset_ns(&self) -> i64 {
        self.offset_ns
    }
}

#[cfg(test)]
mod tests {
    use gnntop_wire::{Anchor, ClockOffset, Origin, Place};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn session(rank: u32, boot: &str, monotonic_s: u64, wall_s: u64, clock: Option<ClockOffset>) -> SessionInfo {
        SessionInfo {
            session_id: u128::from(rank) + 1,
            boot_id: boot.to_owned(),
            start: Anchor { monotonic_ns: monotonic_s * SECOND, wall_ns: wall_s * SECOND, boot_ns: 0 },
            place: Some(Box::new(Place { rank, ranks: 3, clock, ..Place::default() })),
            ..SessionInfo::default()
        }
    }

    #[test]
    fn align_same_boot_is_same_clock() {
        let off = Some(ClockOffset { offset_ns: 7, error_ns: 1 });
        let (zero, one) = (session(0, "a", 5, 1000, None), session(1, "a", 9, 2000, off));
        let aligned = align(&one, &zero);
        assert_eq!(aligned, Alignment { offset_ns: 0, error_ns: Some(0), evidence: ClockEvidence::SameClock });
        let nameless = [session(0, "", 5, 1000, None), session(1, "", 9, 1000, None)];
        assert_eq!(
            align(&nameless[1], &nameless[0]).evidence,
            ClockEvidence::WallClock,
            "no boot is no boot in common"
        );
    }

    #[test]
    fn align_uses_measured_offsets_through_rank_0() {
        let clock = |offset_ns, error_ns| Some(ClockOffset { offset_ns, error_ns });
        let zero = session(0, "a", 5, 1000, None);
        let (one, two) = (session(1, "b", 9, 1000, clock(-400, 30)), session(2, "c", 9, 1000, clock(100, 20)));
        let aligned = align(&one, &zero);
        assert_eq!((aligned.offset_ns, aligned.error_ns, aligned.evidence), (-400, Some(30), ClockEvidence::Measured));
        let aligned = align(&one, &two);
        assert_eq!((aligned.offset_ns, aligned.error_ns), (-500, Some(50)), "errors add up");
    }

    #[test]
    fn align_falls_back_to_wall_clocks() {
        let (zero, one) = (session(0, "a", 5, 1000, None), session(1, "b", 2, 1001, None));
        let aligned = align(&one, &zero);
        assert_eq!(aligned.offset_ns, 4 * SECOND as i64, "its clock began 4 s later");
        assert_eq!((aligned.error_ns, aligned.evidence), (None, ClockEvidence::WallClock));
        let absurd = session(1, "b", 0, u64::MAX / SECOND, None);
        assert_eq!(align(&absurd, &zero).offset_ns, i64::MAX, "saturates");
    }

    #[test]
    fn align_imported_ranks_has_unknown_error() {
        let imported = |rank, wall_s| SessionInfo { origin: Origin::Trace, ..session(rank, "", 1, wall_s, None) };
        let aligned = align(&imported(1, 1003), &imported(0, 1000));
        assert_eq!((aligned.offset_ns, aligned.evidence), (3 * SECOND as i64, ClockEvidence::Imported));
    }
}
