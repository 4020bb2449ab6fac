//! Filters a run down to one rank.

use gnntop_wire::Item;

use crate::stream::Sink;

/// Passes on one rank's items, or everything if sessions have no place in a run.
pub struct OneRank<'s> {
    /// The rank; that of the first session seen if none is given.
    rank: Option<u32>,
    sink: &'s mut dyn Sink,
    /// Whether the current items are of that rank.
    is_it: bool,
    /// The last session passed on: turning to it passes it on again without a new segment.
    session_id: u128,
    left_out: u64,
}

impl<'s> OneRank<'s> {
    /// Passes on rank `rank`, or the first one seen.
    pub fn new(rank: Option<u32>, sink: &'s mut dyn Sink) -> Self {
        Self { rank, sink, is_it: true, session_id: 0, left_out: 0 }
    }

    /// The rank passed on; `None` before the first.
    pub fn rank(&self) -> Option<u32> {
        self.rank
    }

    /// Number of segments of other ranks.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

impl Sink for OneRank<'_> {
    fn apply(&mut self, item: Item<'_>) {
        if let Item::Segment(info) = &item {
            let rank = &mut self.rank;
            self.is_it = info.place.as_ref().is_none_or(|place| *rank.get_or_insert(place.rank) == place.rank);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::fixture::Heard;
    use gnntop_fixtures::{ParallelRun, TrainingRun, each_item};

    fn heard(rank: Option<u32>, streams: &[Vec<u8>]) -> (Heard, u64) {
        let mut heard = Heard::default();
        let mut one = OneRank::new(rank, &mut heard);
        streams.iter().for_each(|stream| each_item(stream, |item| one.apply(item)));
        let left_out = one.left_out();
        (heard, left_out)
    }

    #[test]
    fn only_the_rank_that_was_asked_for_comes_through() {
        let streams = ParallelRun { ranks: 3, ..ParallelRun::default() }.sessions();
        let (one, left_out) = heard(Some(1), &streams);
        assert_eq!((one.segments.len(), one.segments[0].pid, left_out), (1, 5001, 2));
        assert_eq!(one.steps().len(), 60);
        let (first, _) = heard(None, &streams[1..]);
        assert_eq!(first.segments[0].pid, 5001);
        let (alone, left_out) = heard(None, &[TrainingRun::default().bytes()]);
        assert_eq!((alone.steps().len(), left_out), (100, 0));
    }
}
