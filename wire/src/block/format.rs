//! A block's header, its limits, and what receives its events.

use crate::event::{Event, Span};
use crate::ids::TrackId;

/// Most bytes that a block's events may take before compression: some ten thousand spans. LZ4 looks no further back, and
/// the memory that a writer or reader needs for a track stays small.
pub const MAX_BLOCK_LEN: usize = 1 << 16;

/// A block's header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockInfo {
    /// The track of all its events.
    pub track: TrackId,
    /// Number of the first event on this track, counting all events ever written to it.
    pub first_seq: u64,
    /// Events in the block.
    pub count: u64,
    /// Events lost on this track since the start because its ring was full.
    pub dropped: u64,
    /// Base time in nanoseconds, from which the first event's time is counted.
    pub base_ns: u64,
}

/// Receives the events of a block. Nearly all are spans, and an [`Event`] is four times the size of a [`Span`], so fast
/// receivers handle spans separately.
pub trait EventSink {
    /// Receives a span.
    fn span(&mut self, span: &Span);

    /// Receives any other event.
    fn other(&mut self, event: &Event);
}
