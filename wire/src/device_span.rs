//! What a device's own clock says about work submitted to it.

use crate::ids::{NameId, StepId};

/// When a device did the work that a span submitted to it. It is on the track of the device's stream.
///
/// Start and end are by the device's clock, mapped to the publisher's `CLOCK_MONOTONIC` with a stated error. Both have the
/// same error, so durations and order are the device's own. The times of submission are by the host's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceSpan {
    /// The span's name; [`NameId::NONE`] for a whole step, which lasts from the end of the previous step to its own end.
    pub name: NameId,
    /// When the device began the span's work.
    pub start_ns: u64,
    /// When the device finished it; not before the start.
    pub end_ns: u64,
    /// Error of start and end on the host's clock, in either direction.
    pub error_ns: u64,
    /// When the host began to submit the span's work, or began the step.
    pub issued_start_ns: u64,
    /// When the host had submitted it; not before it began to.
    pub issued_end_ns: u64,
    /// The step it belongs to, or [`StepId::NONE`].
    pub step: StepId,
}
