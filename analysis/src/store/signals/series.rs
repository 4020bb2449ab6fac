//! A quantity over time, with gaps: an absence is a break with a reason, never a zero.

use std::collections::VecDeque;
use std::ops::Range;

use gnntop_wire::NameId;
use gnntop_wire::past::Readings;

use crate::store::history::{History, Merge};

/// A series has one bucket of older figures for this many points...
const POINTS_PER_BUCKET: usize = 36;
/// ...and at least this many.
const FEWEST_BUCKETS: usize = 16;

/// One entry of a [`Series`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Point<T> {
    /// The quantity had this value.
    Value {
        /// When it was read.
        t_ns: u64,
        /// The value, as recorded.
        value: T,
    },
    /// There is no value until the next one.
    Break {
        /// When this was detected.
        t_ns: u64,
        /// Why, as a text of the session; [`NameId::NONE`] if unknown.
        reason: NameId,
    },
}

impl<T: Copy> Point<T> {
    /// When the point was taken.
    pub fn t_ns(&self) -> u64 {
        match *self {
            Self::Value { t_ns, .. } | Self::Break { t_ns, .. } => t_ns,
        }
    }

    /// The value; `None` for a break.
    pub fn value(&self) -> Option<T> {
        match *self {
            Self::Value { value, .. } => Some(value),
            Self::Break { .. } => None,
        }
    }
}

/// The most recent points of a quantity, oldest first, and running figures over all points so far.
#[derive(Clone, Debug)]
pub struct Series<T> {
    points: VecDeque<Point<T>>,
    discarded: u64,
    summary: Summary,
    older: Option<Box<History<OlderReadings>>>,
}

/// What is left of discarded values, for one stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::store) struct OlderReadings {
    pub count: u32,
    pub min: f64,
    pub max: f64,
    pub sum: f64,
    /// What a cumulative counter counted, and in how many nanoseconds.
    pub increase: f64,
    pub increase_ns: u64,
}

impl OlderReadings {
    fn add(&mut self, value: f64) {
        (self.min, self.max) =
            if self.count == 0 { (value, value) } else { (self.min.min(value), self.max.max(value)) };
        self.count = self.count.saturating_add(1);
        self.sum += value;
    }
}

impl Merge for OlderReadings {
    fn merge(&mut self, next: &Self) {
        if next.count > 0 {
            let (min, max) = if self.count == 0 { (next.min, next.max) } else { (self.min, self.max) };
            (self.min, self.max) = (min.min(next.min), max.max(next.max));
        }
        self.count = self.count.saturating_add(next.count);
        self.sum += next.sum;
        self.increase += next.increase;
        self.increase_ns = self.increase_ns.saturating_add(next.increase_ns);
    }
}

/// Running figures over all values of a series, kept or not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Values so far.
    pub count: u64,
    /// Smallest value; 0 if there is none.
    pub min: f64,
    /// Largest value; 0 if there is none.
    pub max: f64,
    /// Sum of all values.
    pub sum: f64,
    /// Sum of the forward differences between neighbouring values: what a cumulative counter counted.
    pub increase: f64,
    /// Time between the neighbours that `increase` was summed over, in nanoseconds.
    pub increase_ns: u64,
}

impl Summary {
    /// Mean of all values; `None` if there is none.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// A cumulative counter's mean increase per second while it was read; `None` before two readings.
    pub fn rate_per_s(&self) -> Option<f64> {
        (self.increase_ns > 0).then(|| self.increase * 1e9 / self.increase_ns as f64)
    }
}

/// A number that a series can hold.
pub trait Value: Copy + PartialOrd {
    /// Converts to floating point, rounded if necessary.
    fn as_f64(self) -> f64;
    /// `self - before`, without overflow.
    fn minus(self, before: Self) -> f64;
}

impl Value for i64 {
    fn as_f64(self) -> f64 {
        self as f64
    }

    fn minus(self, before: Self) -> f64 {
        (i128::from(self) - i128::from(before)) as f64
    }
}

impl Value for f64 {
    fn as_f64(self) -> f64 {
        self
    }

    fn minus(self, before: Self) -> f64 {
        self - before
    }
}

impl<T: Value> Series<T> {
    /// An empty series.
    pub fn new() -> Self {
        Self { points: VecDeque::new(), discarded: 0, summary: Summary::default(), older: None }
    }

    /// Adds a value and keeps at most `capacity` points.
    pub(in crate::store) fn push(&mut self, t_ns: u64, value: T, capacity: usize) {
        self.summarise(t_ns, value);
        self.push_point(Point::Value { t_ns, value }, capacity);
    }

    /// Adds a break, unless the last point is the same break, and keeps at most `capacity` points.
    pub(in crate::store) fn push_break(&mut self, t_ns: u64, reason: NameId, capacity: usize) {
        if matches!(self.points.back(), Some(Point::Break { reason: last, .. }) if *last == reason) {
            return;
        }
        self.push_point(Point::Break { t_ns, reason }, capacity);
    }

    /// Adds figures over all readings before the points that follow.
    pub(in crate::store) fn resume(&mut self, past: &Readings) {
        if self.points.is_empty() && past.count > 0 && past.is_sane() {
            let Readings { count, min, max, sum, increase, increase_ns, .. } = *past;
            let (s, count) = (&mut self.summary, count.min(u64::MAX >> 8));
            (s.min, s.max) = if s.count == 0 { (min, max) } else { (s.min.min(min), s.max.max(max)) };
            (s.count, s.sum) = (s.count.saturating_add(count), s.sum + sum);
            s.increase += increase;
            s.increase_ns = s.increase_ns.saturating_add(increase_ns);
            self.discarded = self.discarded.saturating_add(count);
        }
    }

    /// Reduces all points like old ones: what comes next is also in the past.
    pub(in crate::store) fn reduce_all(&mut self, capacity: usize) {
        while !self.points.is_empty() {
            self.discard_oldest(capacity);
        }
    }

    /// Adds figures over a range of time before the points that follow.
    pub(in crate::store) fn push_past(&mut self, time: Range<u64>, past: &Readings, capacity: usize) {
        let Some(mean) = past.mean().filter(|_| self.points.is_empty() && past.is_sane()) else { return };
        let mean = mean.clamp(past.min, past.max);
        let buckets = (capacity / POINTS_PER_BUCKET).max(FEWEST_BUCKETS);
        let older = self.older.get_or_insert_with(|| Box::new(History::new(time.start, buckets)));
        let ns = time.end.saturating_sub(time.start).max(1);
        older.spread(time.start, time.end, |bucket, part_ns| {
            let share = part_ns as f64 / ns as f64;
            let count = (past.count as f64 * share).ceil() as u32;
            bucket.merge(&OlderReadings {
                count,
                min: past.min,
                max: past.max,
                sum: mean * f64::from(count),
                increase: past.increase * share,
                increase_ns: (past.increase_ns as f64 * share) as u64,
            });
        });
    }

    fn push_point(&mut self, point: Point<T>, capacity: usize) {
        while self.points.len() >= capacity.max(2) {
            self.discard_oldest(capacity);
        }
        self.points.push_back(point);
    }

    /// Reduces the oldest point to its contribution to the figures of its time.
    fn discard_oldest(&mut self, capacity: usize) {
        let Some(point) = self.points.pop_front() else { return };
        self.discarded += 1;
        let Some(value) = point.value().map(Value::as_f64).filter(|value| value.is_finite()) else { return };
        let buckets = (capacity / POINTS_PER_BUCKET).max(FEWEST_BUCKETS);
        let older = self.older.get_or_insert_with(|| Box::new(History::new(point.t_ns(), buckets)));
        let Some(bucket) = older.bucket_mut(point.t_ns()) else { return };
        bucket.add(value);
        if let Some((next, ns)) = self.points.front().and_then(|next| Some((next, interval_ns(&point, next)?))) {
            bucket.increase += next.value().zip(point.value()).map_or(0.0, |(next, value)| next.minus(value));
            bucket.increase_ns = bucket.increase_ns.saturating_add(ns);
        }
    }

    fn summarise(&mut self, t_ns: u64, value: T) {
        let s = &mut self.summary;
        let v = value.as_f64();
        if !v.is_finite() {
            return;
        }
        (s.min, s.max) = if s.count == 0 { (v, v) } else { (s.min.min(v), s.max.max(v)) };
        s.count += 1;
        s.sum += v;
        if let Some(Point::Value { t_ns: before_ns, value: before }) = self.points.back()
            && t_ns > *before_ns
            && value >= *before
        {
            s.increase += value.minus(*before);
            s.increase_ns = s.increase_ns.saturating_add(t_ns - before_ns);
        }
    }

    /// The kept points, oldest first.
    pub fn points(&self) -> impl DoubleEndedIterator<Item = &Point<T>> + ExactSizeIterator {
        self.points.iter()
    }

    /// Number of kept points.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether no point is kept.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Number of points no longer kept.
    pub fn discarded(&self) -> u64 {
        self.discarded
    }

    /// What is left of the points before the kept ones.
    pub(in crate::store) fn older(&self) -> Option<&History<OlderReadings>> {
        self.older.as_deref()
    }

    /// Time covered by each figure where points are no longer kept, in nanoseconds; `None` while all are kept.
    pub fn reduced_to_ns(&self) -> Option<u64> {
        self.older.as_ref().map(|older| older.bucket_ns())
    }

    /// The points from the last one before `from_ns` on, oldest first. Uses binary search, so if the clock went back it may
    /// begin elsewhere.
    pub(in crate::store) fn points_from(&self, from_ns: u64) -> impl DoubleEndedIterator<Item = &Point<T>> + Clone {
        let first = self.points.partition_point(|point| point.t_ns() < from_ns).saturating_sub(1);
        self.points.range(first..)
    }

    /// Time and value of the newest kept reading at or before `t_ns`; `None` in a break or if there is none.
    pub fn last_before(&self, t_ns: u64) -> Option<(u64, T)> {
        let point = self.points.get(self.points.partition_point(|point| point.t_ns() <= t_ns).checked_sub(1)?)?;
        Some((point.t_ns(), point.value()?))
    }

    /// Running figures over all values, kept or not.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The newest point.
    pub fn last(&self) -> Option<&Point<T>> {
        self.points.back()
    }

    /// For a cumulative counter: its increase per second between neighbouring readings, as `(time of the later reading,
    /// rate)`. `None` is a break: an absence, or a counter or clock that went back.
    pub fn rates_per_s(&self) -> impl DoubleEndedIterator<Item = (u64, Option<f64>)> + '_ {
        self.points.iter().zip(self.points.iter().skip(1)).map(|(a, b)| (b.t_ns(), rate(a, b)))
    }

    /// For a cumulative counter: its increase per second up to the newest reading, over at least `window_ns` if the
    /// readings go back that far without a break. `None` without two readings to compare.
    pub fn recent_rate_per_s(&self, window_ns: u64) -> Option<f64> {
        let newest = self.points.back()?;
        let mut oldest = newest;
        for point in self.points.iter().rev().skip(1) {
            if rate(point, oldest).is_none() {
                break;
            }
            oldest = point;
            if newest.t_ns() - point.t_ns() >= window_ns {
                break;
            }
        }
        rate(oldest, newest)
    }
}

impl<T: Value> Default for Series<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Increase per second from `a` to `b`; `None` across a break, or if value or time did not increase.
pub(in crate::store) fn rate<T: Value>(a: &Point<T>, b: &Point<T>) -> Option<f64> {
    let ns = interval_ns(a, b)?;
    Some(b.value()?.minus(a.value()?) * 1e9 / ns as f64)
}

/// Time from `a` to `b`; `None` across a break, or if value or time did not increase.
fn interval_ns<T: Value>(a: &Point<T>, b: &Point<T>) -> Option<u64> {
    let (from, to) = (a.value()?, b.value()?);
    b.t_ns().checked_sub(a.t_ns()).filter(|ns| *ns > 0 && to >= from)
}
