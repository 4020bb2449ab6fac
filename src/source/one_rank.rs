//! Lets one rank of a run through.

use gnntop_wire::Item;

use super::Sink;

/// Passes on what one rank published, or everything where sessions have no place in a run.
pub struct OneRank<'s> {
    rank: u32,
    sink: &'s mut dyn Sink,
    /// Whether the items that come now are of that rank.
    is_it: bool,
    /// The session that was let through last: without a segment of its own, turning to it lets it through again.
    session_id: u128,
    left_out: u64,
}

impl<'s> OneRank<'s> {
    /// Passes on rank `rank`.
    pub fn new(rank: u32, sink: &'s mut dyn Sink) -> Self {
        Self { rank, sink, is_it: true, session_id: 0, left_out: 0 }
    }

    /// Segments of other ranks.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

impl Sink for OneRank<'_> {
    fn apply(&mut self, item: Item<'_>) {
        if let Item::Segment(info) = &item {
            self.is_it = info.place.as_ref().is_none_or(|place| place.rank == self.rank);
            self.session_id = if self.is_it { info.session_id } else { self.session_id };
            self.left_out += u64::from(!self.is_it);
        }
        if self.is_it || matches!(item, Item::Damage(_)) {
            self.sink.apply(item);
        }
    }

    fn reset(&mut self) {
        self.is_it = true;
        self.sink.reset();
    }

    fn turn_to(&mut self, session_id: u128) {
        self.is_it = session_id == self.session_id;
    }

    fn lose_segments(&mut self, count: u64) {
        if self.is_it {
            self.sink.lose_segments(count);
        }
    }

    fn see_publisher(&mut self, alive: bool) {
        if self.is_it {
            self.sink.see_publisher(alive);
        }
    }
}
