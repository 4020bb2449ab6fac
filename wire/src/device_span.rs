//! What a device's own clock says of the work that was handed over to it.

use crate::ids::{NameId, StepId};

/// When a device did the work that a span handed over to it. It lies on a track of its own, that of the device's stream.
///
/// Start and end are the device's clock, laid over the publisher's `CLOCK_MONOTONIC` with a stated error; both are off
/// by the same amount, so that durations and order are the device's own. Hand-over is the host's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceSpan {
    /// The span's name; [`NameId::NONE`] for a whole step, which runs from the end of the step before to its own.
    pub name: NameId,
    /// When the device got to the span.
    pub start_ns: u64,
    /// When the device was done with it; not before the start.
    pub end_ns: u64,
    /// How far start and end may be off on the host's clock, either way.
    pub error_ns: u64,
    /// When the host began to hand the span's work over, or the step began there.
    pub issued_start_ns: u64,
    /// When the host had handed it over; not before it began to.
    pub issued_end_ns: u64,
    /// The step it belongs to, or [`StepId::NONE`].
    pub step: StepId,
}
