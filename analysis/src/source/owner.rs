//! Tracks which session the frames of a recording belong to when several sessions alternate in it.

use gnntop_wire::Item;

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
