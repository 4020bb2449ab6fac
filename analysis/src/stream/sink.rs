//! What a source hands the items of a stream to: a store, a run, a recorder, an export.

use gnntop_wire::Item;

/// What takes in the items of a stream.
pub trait Sink {
    /// Takes the next item.
    fn apply(&mut self, item: Item<'_>);

    /// Forgets everything: the items that follow start anew, from the beginning of a stream.
    fn reset(&mut self);

    /// What follows is about this session, whose segment was handed over before. Sources that take turns between sessions
    /// say so; a sink of one session need not care.
    fn turn_to(&mut self, _session_id: u128) {}

    /// So many segments were dropped by the publisher before they could be read.
    fn lose_segments(&mut self, _count: u64) {}

    /// Whether the publisher lives, told by sources that can see it.
    fn see_publisher(&mut self, _alive: bool) {}
}
