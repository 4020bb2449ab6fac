//! Who takes in a block's events without moving each of them.

use crate::event::{Event, Span};

/// What takes in the events of a block. Spans are nearly all of them, and an [`Event`] is four times as long as a span: those
/// who must be fast take them apart from the others.
pub trait EventSink {
    /// Takes a span.
    fn span(&mut self, span: &Span);

    /// Takes any other event.
    fn other(&mut self, event: &Event);
}
