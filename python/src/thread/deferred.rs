//! What is kept back while it is not sure where steps end.

use gnntop_probe::BatchShape;

use crate::early::EarlyEvent;

/// Events that are kept back, and the steps that may have ended among them.
pub(super) struct Deferred {
    pub(super) events: Vec<EarlyEvent>,
    pub(super) steps: Vec<DeferredStep>,
}

/// A step that may have ended there.
pub(super) struct DeferredStep {
    /// Number of events before its end.
    pub(super) events: usize,
    pub(super) end: u64,
    pub(super) epoch: u64,
    pub(super) batch: BatchShape,
    pub(super) samples: Option<u64>,
    pub(super) tokens: Option<u64>,
}
