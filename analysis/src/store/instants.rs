//! Marks, and other things at an instant; the most recent ones are kept.

use std::collections::VecDeque;
use std::ops::Range;

use gnntop_wire::{NameId, Rival, TrackId};

/// One mark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoredMark {
    /// The track it was made on.
    pub track: TrackId,
    /// The mark's text.
    pub name: NameId,
    /// When.
    pub t_ns: u64,
    /// Its value, if it has one.
    pub value: Option<f64>,
    /// How long what ended at it took, if it is the end of something.
    pub took_ns: Option<u64>,
}

/// Something at an instant.
pub trait Timed {
    /// When.
    fn t_ns(&self) -> u64;
}

impl Timed for StoredMark {
    fn t_ns(&self) -> u64 {
        self.t_ns
    }
}

impl Timed for Rival {
    fn t_ns(&self) -> u64 {
        self.t_ns
    }
}

/// The most recent marks.
pub type Marks = Newest<StoredMark>;

/// The most recent of many, in the order of arrival.
#[derive(Clone, Debug)]
pub struct Newest<T> {
    kept: VecDeque<T>,
    discarded: u64,
    capacity: usize,
}

impl<T: Timed> Newest<T> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { kept: VecDeque::new(), discarded: 0, capacity: capacity.max(1) }
    }

    /// The kept ones, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        self.kept.iter()
    }

    /// Those after the start of this range, including its end. What arrived out of order may be missing.
    pub fn within(&self, times: Range<u64>) -> impl Iterator<Item = &T> {
        let from = self.kept.partition_point(|one| one.t_ns() <= times.start);
        let to = self.kept.partition_point(|one| one.t_ns() <= times.end).max(from);
        self.kept.range(from..to)
    }

    /// Number of older ones, which are no longer kept.
    pub fn discarded(&self) -> u64 {
        self.discarded
    }

    pub(super) fn push(&mut self, one: T) {
        if self.kept.len() >= self.capacity {
            self.kept.pop_front();
            self.leave_out(1);
        }
        self.kept.push_back(one);
    }

    /// Counts some about which nothing else is known.
    pub(super) fn leave_out(&mut self, count: u64) {
        self.discarded = self.discarded.saturating_add(count);
    }
}
