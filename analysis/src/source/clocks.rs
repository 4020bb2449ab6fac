//! Times of several sessions in one stream, brought to the clock of one of them.

use gnntop_wire::SessionInfo;

use crate::stream::align;

/// How the clock of the session that is read now lies to the reference.
#[derive(Clone, Debug, Default)]
pub(super) struct Clocks {
    /// The session whose clock counts: the first that was heard of, where none is given.
    reference: Option<SessionInfo>,
    offset_ns: i64,
}

impl Clocks {
    /// Clocks that are brought to this session's.
    pub(super) fn of(reference: Option<SessionInfo>) -> Self {
        Self { reference, offset_ns: 0 }
    }

    /// A segment begins: what follows is on its session's clock.
    pub(super) fn begin(&mut self, info: &SessionInfo) {
        let reference = self.reference.get_or_insert_with(|| info.clone());
        self.offset_ns = align(info, reference).offset_ns;
    }

    /// A time of the session that is read now, on the common clock.
    pub(super) fn common_ns(&self, t_ns: u64) -> u64 {
        t_ns.saturating_add_signed(self.offset_ns)
    }

    /// What to add to times of the session that is read now.
    pub(super) fn offset_ns(&self) -> i64 {
        self.offset_ns
    }
}
