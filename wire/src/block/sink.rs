//! Receives a block's events by reference.

use crate::event::{Event, Span};

/// Receives the events of a block. Nearly all are spans, and an [`Event`] is four times the size of a [`Span`], so fast
/// receivers handle spans separately.
pub trait EventSink {
    /// Receives a span.
    fn span(&mut self, span: &Span);

    /// Receives any other event.
    fn other(&mut self, event: &Event);
}
