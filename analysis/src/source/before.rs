//! Passes what is before the point where reading a recording begins to a sink.

use gnntop_wire::Item;

use super::chunks::ChunkSummary;
use super::tally::Tally;
use super::whose::Whose;
use crate::stream::Sink;

/// Passes a summary on as items of the recording.
pub(super) fn hand_over(summary: ChunkSummary, tally: &mut Tally, whose: &mut Whose, sink: &mut dyn Sink) {
    summary.hand_over(&mut Noted { tally, whose, sink });
}

/// Notes items and passes them on.
struct Noted<'a> {
    tally: &'a mut Tally,
    whose: &'a mut Whose,
    sink: &'a mut dyn Sink,
}

impl Sink for Noted<'_> {
    fn apply(&mut self, item: Item<'_>) {
        self.tally.note(&item);
        self.whose.is_known(&item);
        self.sink.apply(item);
    }

    fn reset(&mut self) {
        self.sink.reset();
    }

    fn turn_to(&mut self, session_id: u128) {
        self.sink.turn_to(session_id);
    }
}
