//! Tracks which session the frames of a recording belong to when several sessions alternate in it, also of those that a
//! recording's past stands for.

use gnntop_wire::Item;

use super::chunks::RecordingPast;
use super::tally::Tally;
use crate::stream::Sink;

/// The session of the frames. After damage it is unknown if several sessions alternate, since a segment's beginning may
/// have been lost.
#[derive(Debug, Default)]
pub(super) struct FrameOwner {
    session: Option<u128>,
    are_several: bool,
    is_adrift: bool,
    left_out: u64,
}

impl FrameOwner {
    /// Frames left out because their session is unknown.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Whether the session of this item is known.
    pub(super) fn accept(&mut self, item: &Item<'_>) -> bool {
        match item {
            Item::Segment(info) => {
                self.are_several |= self.session.replace(info.session_id).is_some_and(|id| id != info.session_id);
                self.is_adrift = false;
            }
            Item::Damage(_) => self.is_adrift = self.are_several,
            Item::Block(..) | Item::Definitions(_) | Item::Anchor(_) | Item::End(_) if self.is_adrift => {
                self.left_out += 1;
                return false;
            }
            _ => (),
        }
        true
    }
}

/// Passes a summary of what is before the point where reading begins on, as items of the recording.
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
