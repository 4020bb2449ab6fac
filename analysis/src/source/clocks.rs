//! Converts times of several sessions in one stream to the clock of one of them.

use gnntop_wire::SessionInfo;

use crate::stream::align;

/// The offset from the clock of the current session to the reference.
#[derive(Clone, Debug, Default)]
pub(super) struct Clocks {
    /// The session whose clock is the reference: the first one seen, unless it is given.
    reference: Option<SessionInfo>,
    offset_ns: i64,
}

impl Clocks {
    /// Converts to this session's clock.
    pub(super) fn with_reference(reference: Option<SessionInfo>) -> Self {
        Self { reference, offset_ns: 0 }
    }

    /// Begins a segment: the next times are on its session's clock.
    pub(super) fn begin(&mut self, info: &SessionInfo) {
        let reference = self.reference.get_or_insert_with(|| info.clone());
        self.offset_ns = align(info, reference).offset_ns;
    }

    /// A time of the current session on the common clock.
    pub(super) fn common_ns(&self, t_ns: u64) -> u64 {
        t_ns.saturating_add_signed(self.offset_ns)
    }

    /// To be added to times of the current session.
    pub(super) fn offset_ns(&self) -> i64 {
        self.offset_ns
    }
}
