//! Marks; the most recent ones are kept.

use std::collections::VecDeque;
use std::ops::Range;

use gnntop_wire::{NameId, TrackId};

/// One mark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Instant {
    /// The track it was made on.
    pub track: TrackId,
    /// The mark's text.
    pub name: NameId,
    /// When.
    pub t_ns: u64,
    /// Its value, if it has one.
    pub value: Option<f64>,
}

/// The most recent marks, in the order of arrival.
#[derive(Clone, Debug)]
pub struct Marks {
    kept: VecDeque<Instant>,
    discarded: u64,
    capacity: usize,
}

impl Marks {
    pub(super) fn new(capacity: usize) -> Self {
        Self { kept: VecDeque::new(), discarded: 0, capacity: capacity.max(1) }
    }

    /// The kept marks, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Instant> + ExactSizeIterator {
        self.kept.iter()
    }

    /// The marks after the start of this range, including its end. Marks that arrived out of order may be missing.
    pub fn within(&self, times: Range<u64>) -> impl Iterator<Item = &Instant> {
        let from = self.kept.partition_point(|mark| mark.t_ns <= times.start);
        let to = self.kept.partition_point(|mark| mark.t_ns <= times.end).max(from);
        self.kept.range(from..to)
    }

    /// Number of older marks, which are no longer kept.
    pub fn discarded(&self) -> u64 {
        self.discarded
    }

    pub(super) fn push(&mut self, mark: Instant) {
        if self.kept.len() >= self.capacity {
            self.kept.pop_front();
            self.leave_out(1);
        }
        self.kept.push_back(mark);
    }

    /// Counts marks about which nothing else is known.
    pub(super) fn leave_out(&mut self, marks: u64) {
        self.discarded = self.discarded.saturating_add(marks);
    }
}
