//! A stream read by two threads at once: one takes the durations by the names of spans, and boxes, the other everything else.
//! Both decode all of it; what they do with it takes longer.

use super::contents::Store;

impl Store {
    /// Takes durations by the names of spans, and boxes, from a store that has read the same stream for them alone
    /// ([`EventSelection`](super::EventSelection)). Returns whether it has: not where the two have read different events, or where a run was started
    /// again, because the ids of a later start depend on everything before it.
    pub fn take_spans_from(&mut self, other: Self) -> bool {
        if self.attempts.is_restarted() || !self.has_same_events(&other) {
            return false;
        }
        let Self { spans, names, tracks, .. } = other;
        self.spans = spans;
        self.names.take_statistics_from(&names);
        self.tracks.take_lanes_from(tracks);
        true
    }

    fn has_same_events(&self, other: &Self) -> bool {
        let read = |store: &Self| store.tracks.all().iter().map(|track| (track.id, track.events)).collect::<Vec<_>>();
        read(self) == read(other)
    }
}
