//! What receives the items of a stream: a store, a run, a recorder, an export.

use gnntop_wire::Item;

/// Receives the items of a stream.
pub trait Sink {
    /// Takes the next item.
    fn apply(&mut self, item: Item<'_>);

    /// Forgets everything: the next items are from the beginning of a stream.
    fn reset(&mut self);

    /// The next items belong to this session, whose segment was passed before. Called by sources that alternate between
    /// sessions; a sink of one session can ignore it.
    fn select_session(&mut self, _session_id: u128) {}

    /// The publisher dropped this many segments before they could be read.
    fn add_lost_segments(&mut self, _count: u64) {}

    /// Whether the publisher is alive; called by sources that can tell.
    fn set_publisher_alive(&mut self, _alive: bool) {}
}
