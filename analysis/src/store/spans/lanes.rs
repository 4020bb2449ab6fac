//! The spans of one track as boxes in time: each recent one, and for the older ones how busy the track was.
//!
//! Spans come in the order of their ends, inner ones before outer ones. Read backwards, each box follows the box around it,
//! so one pass with a stack finds the nesting depths, without sorting or storing them. When a lane is full, its older half
//! is reduced: for each stretch of time, the share covered by any box, the number of boxes, and the longest one.

use std::collections::VecDeque;
use std::ops::Range;

use gnntop_wire::{NameId, Span};

use crate::store::history::{History, Merge};

/// Most boxes in a lane.
const MAX_BOXES: usize = 1 << 16;
/// Most tracks with a lane.
pub(in crate::store) const MAX_LANES: usize = 128;
/// Stretches of time to which a lane's older boxes are reduced.
const BUCKETS: usize = 1024;

/// A span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneBox {
    /// Its name.
    pub name: NameId,
    /// Start.
    pub start_ns: u64,
    /// End, not before the start.
    pub end_ns: u64,
}

/// What is left of the older boxes in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reduced {
    /// Time covered by outermost boxes, in nanoseconds.
    pub busy_ns: u64,
    /// Number of boxes, at every depth.
    pub boxes: u64,
    /// The longest outermost box that ended in it; [`NameId::NONE`] if none did.
    pub longest: NameId,
    /// Its duration.
    pub longest_ns: u64,
}

impl Merge for Reduced {
    fn merge(&mut self, next: &Self) {
        self.busy_ns = self.busy_ns.saturating_add(next.busy_ns);
        self.boxes = self.boxes.saturating_add(next.boxes);
        self.note(next.longest, next.longest_ns);
    }
}

impl Reduced {
    fn note(&mut self, name: NameId, ns: u64) {
        if ns > self.longest_ns || (self.longest == NameId::NONE && self.longest_ns == 0) {
            (self.longest, self.longest_ns) = (name, ns);
        }
    }
}

/// The boxes of one track.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    boxes: VecDeque<LaneBox>,
    older: Option<Box<History<Reduced>>>,
    reduced: u64,
    first_ns: Option<u64>,
}

/// How busy a track was in a range of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Time covered by spans, in nanoseconds.
    pub busy_ns: u64,
    /// How much of the range is known, in nanoseconds.
    pub known_ns: u64,
}

impl Busy {
    /// The share (0 to 1) of the known time in which nothing ran; `None` if nothing is known.
    pub fn idle_share(&self) -> Option<f64> {
        (self.known_ns > 0).then(|| 1.0 - (self.busy_ns as f64 / self.known_ns as f64).min(1.0))
    }
}

/// Boxes that each of `lanes` lanes may keep if all together may keep `boxes`.
pub(in crate::store) fn lane_capacity(lanes: usize, boxes: usize) -> usize {
    let least = (boxes / MAX_LANES).clamp(1, MAX_BOXES);
    (boxes / lanes.max(1)).clamp(least, MAX_BOXES)
}

impl Lane {
    /// Number of boxes kept individually.
    pub fn len(&self) -> usize {
        self.boxes.len()
    }

    /// Whether there is no box.
    pub fn is_empty(&self) -> bool {
        self.boxes.is_empty()
    }

    /// Number of boxes no longer kept individually.
    pub fn reduced(&self) -> u64 {
        self.reduced
    }

    /// Time covered by each figure where boxes are no longer kept, in nanoseconds; `None` while all are kept.
    pub fn reduced_to_ns(&self) -> Option<u64> {
        self.older.as_ref().map(|older| older.bucket_ns())
    }

    /// When the first box began; `None` if there is none.
    pub fn first_ns(&self) -> Option<u64> {
        self.first_ns
    }

    /// When the newest box ended; `None` if there is none.
    pub fn last_end_ns(&self) -> Option<u64> {
        self.boxes.back().map(|newest| newest.end_ns)
    }

    /// Time from which boxes are kept individually: the end of the newest one reduced.
    pub fn full_from_ns(&self) -> u64 {
        if self.older.is_none() { 0 } else { self.boxes.front().map_or(u64::MAX, |oldest| oldest.start_ns) }
    }

    /// Calls `each` with the boxes that overlap `range` and their nesting depth, 0 for the outermost: newest first, and
    /// each before those inside it.
    pub fn each_box(&self, range: Range<u64>, mut each: impl FnMut(&LaneBox, usize)) {
        let mut around: Vec<u64> = Vec::new();
        for inner in self.boxes.iter().rev() {
            if inner.end_ns < range.start {
                break;
            }
            let depth = depth_below(&mut around, inner);
            if inner.start_ns < range.end && inner.end_ns >= range.start {
                each(inner, depth);
            }
        }
    }

    /// What is left of the older boxes in `range`, as `(start, end, figures)`, oldest first.
    pub fn older(&self, range: Range<u64>) -> impl Iterator<Item = (u64, u64, &Reduced)> {
        let full_from_ns = self.full_from_ns();
        let older = self.older.iter().flat_map(move |older| older.within(range.start, range.end));
        // The last stretch may overlap the time of the kept boxes.
        older.map(move |(start_ns, end_ns, left)| (start_ns, end_ns.min(full_from_ns.max(start_ns)), left))
    }

    /// How much of `range` the track was busy.
    pub fn busy(&self, range: Range<u64>) -> Busy {
        let Some(first_ns) = self.first_ns else { return Busy::default() };
        let from_ns = range.start.max(first_ns);
        let mut busy_ns = 0u64;
        let mut covered_from_ns = range.end;
        self.each_box(from_ns..range.end, |outer, depth| {
            let end_ns = outer.end_ns.min(covered_from_ns);
            let start_ns = outer.start_ns.max(from_ns);
            if depth == 0 && end_ns > start_ns {
                busy_ns = busy_ns.saturating_add(end_ns - start_ns);
                covered_from_ns = start_ns;
            }
        });
        for (start_ns, end_ns, left) in self.older(from_ns..range.end.min(self.full_from_ns())) {
            let (from, to) = (start_ns.max(from_ns), end_ns.min(range.end));
            let share = to.saturating_sub(from) as f64 / end_ns.saturating_sub(start_ns).max(1) as f64;
            let here = (left.busy_ns.min(end_ns - start_ns) as f64 * share) as u64;
            busy_ns = busy_ns.saturating_add(here);
        }
        Busy { busy_ns, known_ns: range.end.saturating_sub(from_ns) }
    }

    /// The names of the spans around an instant, outermost first; empty if none is kept.
    pub fn enclosing_names(&self, t_ns: u64) -> Vec<NameId> {
        let mut path = Vec::new();
        self.each_box(t_ns..t_ns.saturating_add(1), |inner, depth| {
            path.truncate(depth);
            path.push(inner.name);
        });
        path
    }

    /// Adds a span and keeps at most `capacity` boxes.
    #[inline]
    pub(in crate::store) fn push(&mut self, span: &Span, capacity: usize) {
        if self.boxes.len() >= capacity {
            self.reduce(capacity / 2);
        }
        self.first_ns = Some(self.first_ns.map_or(span.start_ns, |first| first.min(span.start_ns)));
        self.boxes.push_back(LaneBox {
            name: span.name,
            start_ns: span.start_ns,
            end_ns: span.end_ns.max(span.start_ns),
        });
    }

    /// Reduces all but the newest `keep` boxes to their contributions to the figures of their time.
    #[cold]
    fn reduce(&mut self, keep: usize) {
        let leaving = self.boxes.len().saturating_sub(keep);
        let mut around = Vec::new();
        let start_ns = self.first_ns.unwrap_or(0);
        let mut older = self.older.take().unwrap_or_else(|| Box::new(History::new(start_ns, BUCKETS)));
        let mut outermost = Vec::new();
        for (at, inner) in self.boxes.iter().enumerate().rev() {
            let depth = depth_below(&mut around, inner);
            if at < leaving {
                if depth == 0 {
                    outermost.push(*inner);
                }
                if let Some(bucket) = older.bucket_mut(inner.end_ns) {
                    bucket.boxes = bucket.boxes.saturating_add(1);
                }
            }
        }
        for outer in outermost.into_iter().rev() {
            older.spread(outer.start_ns, outer.end_ns, |bucket, ns| bucket.busy_ns = bucket.busy_ns.saturating_add(ns));
            if let Some(bucket) = older.bucket_mut(outer.end_ns) {
                bucket.note(outer.name, outer.end_ns - outer.start_ns);
            }
        }
        self.boxes.drain(..leaving);
        self.reduced = self.reduced.saturating_add(leaving as u64);
        self.older = Some(older);
    }
}

/// Nesting depth: the number of boxes in `around` that contain this one. They are left on the stack, with this one on top.
/// Boxes come backwards, by decreasing ends.
#[inline]
fn depth_below(around: &mut Vec<u64>, inner: &LaneBox) -> usize {
    while around.last().is_some_and(|start_ns| *start_ns > inner.start_ns) {
        around.pop();
    }
    around.push(inner.start_ns);
    around.len() - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_wire::StepId;

    fn lane(spans: &[(u32, u64, u64)]) -> Lane {
        let mut lane = Lane::default();
        spans.iter().for_each(|span| push(&mut lane, *span, 1000));
        lane
    }

    fn push(lane: &mut Lane, (name, start_ns, end_ns): (u32, u64, u64), capacity: usize) {
        lane.push(&Span { name: NameId(name), start_ns, end_ns, step: StepId::NONE }, capacity);
    }

    fn boxes(lane: &Lane, range: Range<u64>) -> Vec<(u32, usize)> {
        let mut all = Vec::new();
        lane.each_box(range, |inner, depth| all.push((inner.name.0, depth)));
        all
    }

    #[test]
    fn lane_depth_follows_order() {
        let nested = lane(&[(3, 10, 20), (4, 20, 30), (2, 8, 32), (5, 35, 36), (1, 0, 40), (6, 50, 60)]);
        assert_eq!(boxes(&nested, 0..100), [(6, 0), (1, 0), (5, 1), (2, 1), (4, 2), (3, 2)]);
        assert_eq!(boxes(&nested, 34..38), [(1, 0), (5, 1)]);
        assert_eq!(nested.enclosing_names(25), [NameId(1), NameId(2), NameId(4)]);
        assert_eq!(nested.enclosing_names(45), []);
    }

    #[test]
    fn idle_share_is_uncovered_time() {
        let nested = lane(&[(2, 10, 20), (1, 0, 40), (3, 50, 60)]);
        assert_eq!(nested.busy(0..100), Busy { busy_ns: 50, known_ns: 100 });
        assert_eq!(nested.busy(30..55), Busy { busy_ns: 15, known_ns: 25 });
        assert_eq!(nested.busy(30..55).idle_share(), Some(0.4));
        let overlapping = lane(&[(1, 10, 30), (2, 20, 40)]);
        assert_eq!(
            overlapping.busy(0..50),
            Busy { busy_ns: 30, known_ns: 40 },
            "nothing is known before the first box"
        );
        assert_eq!(Lane::default().busy(0..9).idle_share(), None);
    }

    #[test]
    fn full_lane_reduces_older_half() {
        const MS: u64 = 1_000_000;
        let mut lane = Lane::default();
        let mut all_boxes = 0;
        for n in 0..20_000u64 {
            let start_ns = n * 10 * MS;
            push(&mut lane, (2, start_ns + MS, start_ns + 2 * MS), 64);
            let name = if n == 7000 { 9 } else { 1 };
            let end_ns = start_ns + if n == 7000 { 8 * MS } else { 6 * MS };
            push(&mut lane, (name, start_ns, end_ns), 64);
            all_boxes += 2;
            assert!(lane.len() <= 64);
        }
        assert_eq!(lane.reduced() + lane.len() as u64, all_boxes);
        let idle = lane.busy(0..200_000 * MS).idle_share().unwrap();
        assert!((idle - 0.4).abs() < 1e-3, "{idle}");
        let longest = lane.older(0..u64::MAX).max_by_key(|(_, _, left)| left.longest_ns).unwrap();
        assert_eq!((longest.2.longest, longest.2.longest_ns), (NameId(9), 8 * MS), "the slow one is not lost");
        assert_eq!(lane.older(0..u64::MAX).map(|(_, _, left)| left.boxes).sum::<u64>(), lane.reduced());
    }

    #[test]
    fn absurd_spans_are_harmless() {
        let mut lane = Lane::default();
        for n in 0..200u64 {
            push(&mut lane, (1, n, u64::MAX - n), 16);
            push(&mut lane, (2, u64::MAX, n), 16);
            push(&mut lane, (3, 0, 0), 16);
        }
        lane.busy(0..u64::MAX);
        lane.busy(Range { start: u64::MAX, end: 0 });
        lane.enclosing_names(u64::MAX);
        assert!(boxes(&lane, 0..u64::MAX).len() <= 16);
        assert!(lane.older(0..u64::MAX).count() <= BUCKETS);
    }
}
