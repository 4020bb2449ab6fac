//! Passes what is before the point where reading a recording begins to a sink.

use gnntop_wire::Item;

use super::chunks::RecordingPast;
use super::owner::FrameOwner;
use super::tally::Tally;
use crate::stream::Sink;

/// Passes a summary on as items of the recording.
pub(super) fn apply_past(summary: RecordingPast, tally: &mut Tally, whose: &mut FrameOwner, sink: &mut dyn Sink) {
    summary.apply_to(&mut NotingSink { tally, whose, sink });
}

/// Notes items and passes them on.
struct NotingSink<'a> {
    tally: &'a mut Tally,
    whose: &'a mut FrameOwner,
    sink: &'a mut dyn Sink,
}

impl Sink for NotingSink<'_> {
    fn apply(&mut self, item: Item<'_>) {
        self.tally.note(&item);
        self.whose.accept(&item);
        self.sink.apply(item);
    }

    fn reset(&mut self) {
        self.sink.reset();
    }

    fn select_session(&mut self, session_id: u128) {
        self.sink.select_session(session_id);
    }
}
