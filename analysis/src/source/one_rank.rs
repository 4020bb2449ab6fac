//! Filters a run down to one rank.

use gnntop_wire::Item;

use crate::stream::Sink;

/// Passes on one rank's items, or everything if sessions have no place in a run.
pub struct OneRank<'s> {
    /// The rank; that of the first session seen if none is given.
    rank: Option<u32>,
    sink: &'s mut dyn Sink,
    /// Whether the current items are of that rank.
    is_selected: bool,
    /// The last session passed on: turning to it passes it on again without a new segment.
    session_id: u128,
    left_out: u64,
}

impl<'s> OneRank<'s> {
    /// Passes on rank `rank`, or the first one seen.
    pub fn new(rank: Option<u32>, sink: &'s mut dyn Sink) -> Self {
        Self { rank, sink, is_selected: true, session_id: 0, left_out: 0 }
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
            self.is_selected = info.place.as_ref().is_none_or(|place| *rank.get_or_insert(place.rank) == place.rank);
            self.session_id = if self.is_selected { info.session_id } else { self.session_id };
            self.left_out += u64::from(!self.is_selected);
        }
        if self.is_selected || matches!(item, Item::Damage(_)) {
            self.sink.apply(item);
        }
    }

    fn reset(&mut self) {
        self.is_selected = true;
        self.sink.reset();
    }

    fn select_session(&mut self, session_id: u128) {
        self.is_selected = session_id == self.session_id;
    }

    fn add_lost_segments(&mut self, count: u64) {
        if self.is_selected {
            self.sink.add_lost_segments(count);
        }
    }

    fn set_publisher_alive(&mut self, alive: bool) {
        if self.is_selected {
            self.sink.set_publisher_alive(alive);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::fixture::CollectedItems;
    use gnntop_fixtures::{ParallelRun, TrainingRun, each_item};

    fn collect_rank(rank: Option<u32>, streams: &[Vec<u8>]) -> (CollectedItems, u64) {
        let mut heard = CollectedItems::default();
        let mut one = OneRank::new(rank, &mut heard);
        streams.iter().for_each(|stream| each_item(stream, |item| one.apply(item)));
        let left_out = one.left_out();
        (heard, left_out)
    }

    #[test]
    fn one_rank_passes_only_selected_rank() {
        let streams = ParallelRun { ranks: 3, ..ParallelRun::default() }.sessions();
        let (one, left_out) = collect_rank(Some(1), &streams);
        assert_eq!((one.segments.len(), one.segments[0].pid, left_out), (1, 5001, 2));
        assert_eq!(one.steps().len(), 60);
        let (first, _) = collect_rank(None, &streams[1..]);
        assert_eq!(first.segments[0].pid, 5001);
        let (alone, left_out) = collect_rank(None, &[TrainingRun::default().bytes()]);
        assert_eq!((alone.steps().len(), left_out), (100, 0));
    }
}
