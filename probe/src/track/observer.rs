//! Observes a thread's spans and steps as they happen: a device that the thread uses.

use std::any::Any;

/// Stands for a missing mark.
pub(crate) const NO_MARK: u32 = u32::MAX;

/// A span that ends. Times are ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedSpan {
    pub(crate) name: u32,
    pub(crate) step: u64,
    pub(crate) begin_mark: u32,
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

/// Called for every span and step of one thread, on that thread.
///
/// An *outer phase* is a phase inside no other. Each of these calls may run the program's code, which may itself record,
/// and open and end tracks.
pub(crate) trait Observer: Any {
    /// Called before a span begins and before the host's clock is read: the time this takes is outside the span.
    fn before_begin(&self, is_outer_phase: bool, name: u32);

    /// Called when a span has begun. Returns the mark at its begin, or [`NO_MARK`] if it is not timed.
    fn begin(&self, is_phase: bool) -> u32;

    /// Called before a span's end is read from the host's clock.
    fn before_end(&self, is_outer_phase: bool);

    /// Called when a span has ended.
    fn end(&self, is_outer_phase: bool, span: EndedSpan);

    /// Called when a step has begun.
    fn begin_step(&self, step: u64);

    /// Called when a step has ended, with its begin and end on the host, in ticks.
    fn end_step(&self, step: u64, begin: u64, end: u64);
}
