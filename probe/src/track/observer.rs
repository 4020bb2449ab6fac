//! What wants to know of a thread's spans and steps as they happen: a device that the thread works on.

use std::any::Any;

/// Stands for a mark that there is not.
pub(crate) const NO_MARK: u32 = u32::MAX;

/// A span that ends. Times are ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) name: u32,
    pub(crate) step: u64,
    pub(crate) begin_mark: u32,
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

/// Told of every span and step of one thread, on that thread.
///
/// An *outer phase* is a phase that lies in no other. Code of the program may run in each of these calls, and may itself
/// record, open tracks and end them.
pub(crate) trait Observer: Any {
    /// A span is about to begin. Before the host's clock is read: what this takes lies outside the span.
    fn before_begin(&self, is_outer_phase: bool, name: u32);

    /// A span has begun: the mark at its begin, [`NO_MARK`] where it is not timed.
    fn begin(&self, is_phase: bool) -> u32;

    /// A span's end is about to be read from the host's clock.
    fn before_end(&self, is_outer_phase: bool);

    /// A span has ended.
    fn end(&self, is_outer_phase: bool, span: Ended);

    /// A step has begun.
    fn begin_step(&self, step: u64);

    /// A step has ended, whose times on the host are these ticks.
    fn end_step(&self, step: u64, begin: u64, end: u64);
}
