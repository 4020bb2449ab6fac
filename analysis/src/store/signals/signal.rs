//! Measured signals and program counters as series over time, in bounded memory.

use std::collections::HashMap;
use std::ops::Range;

use gnntop_wire::past::Readings;
use gnntop_wire::{AnyMetric, Metric, NameId, SignalId, SignalKind, SignalSource, Unit};

use super::course::Course;
use super::series::{Point, Series};

/// Points of all series of a kind together, divided among them.
const POINTS_IN_ALL: usize = 2_000_000;
/// Points that a series keeps, however many others there are: a minute at 10 Hz.
const FEWEST_POINTS: usize = 600;

/// One signal and its readings.
#[derive(Clone, Debug)]
pub struct Signal {
    /// Its id.
    pub id: SignalId,
    /// What it measures.
    pub metric: AnyMetric,
    /// Where its readings come from.
    pub source: SignalSource,
    /// The device measured; empty for the machine or process itself.
    pub device: String,
    /// The readings, in the metric's unit.
    pub series: Series<i64>,
}

impl Signal {
    /// The unit of its raw values.
    pub fn unit(&self) -> Unit {
        self.metric.unit()
    }

    /// Gauge or cumulative counter.
    pub fn kind(&self) -> SignalKind {
        self.metric.kind()
    }

    /// Age of the newest point at `now_ns`; `None` before the first.
    pub fn age_ns(&self, now_ns: u64) -> Option<u64> {
        self.series.last().map(|point| now_ns.saturating_sub(point.t_ns()))
    }

    /// Why there is no value now; `None` if there is one, and before the first point.
    pub fn absent(&self) -> Option<NameId> {
        match self.series.last() {
            Some(Point::Break { reason, .. }) => Some(*reason),
            _ => None,
        }
    }
}

/// The signals of a session.
#[derive(Clone, Debug)]
pub struct Signals {
    all: Vec<Signal>,
    by_id: Vec<u32>,
    by_metric: HashMap<Metric, usize>,
    capacity: usize,
    points: usize,
}

impl Signals {
    pub(in crate::store) fn new(capacity: usize, points: usize) -> Self {
        Self { all: Vec::new(), by_id: Vec::new(), by_metric: HashMap::new(), capacity, points }
    }

    /// All signals, in the order in which they were defined.
    pub fn all(&self) -> &[Signal] {
        &self.all
    }

    /// The signal that measures this. If several do, the one defined last.
    pub fn find(&self, metric: impl Into<Metric>) -> Option<&Signal> {
        self.all.get(*self.by_metric.get(&metric.into())?)
    }

    /// The signal with this id.
    pub fn get(&self, id: SignalId) -> Option<&Signal> {
        let index = self.by_id.get(id.0 as usize)?.checked_sub(1)?;
        self.all.get(index as usize)
    }

    /// Defines a signal, keeping its readings; `false` if there is no room for it.
    pub(in crate::store) fn define(&mut self, mut signal: Signal) -> bool {
        let at = signal.id.0 as usize;
        if at >= self.capacity {
            return false;
        }
        if at >= self.by_id.len() {
            self.by_id.resize(at + 1, 0);
        }
        let index = match self.by_id[at].checked_sub(1) {
            Some(index) => {
                let known = &mut self.all[index as usize];
                if let Some(before) = known.metric.metric()
                    && known.metric != signal.metric
                    && self.by_metric.get(&before) == Some(&(index as usize))
                {
                    self.by_metric.remove(&before);
                }
                signal.series = std::mem::take(&mut known.series);
                index as usize
            }
            None => self.all.len(),
        };
        if let Some(metric) = signal.metric.metric() {
            self.by_metric.insert(metric, index);
        }
        if index == self.all.len() {
            self.by_id[at] = index as u32 + 1;
            self.all.push(signal);
        } else {
            self.all[index] = signal;
        }
        true
    }

    /// Adds a reading; `false` for an unknown signal.
    pub(in crate::store) fn sample(&mut self, id: SignalId, t_ns: u64, value: i64) -> bool {
        self.update(id, |series, capacity| series.push(t_ns, value, capacity))
    }

    /// Most signals that it can hold.
    pub(in crate::store) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Breaks all series until their next reading, for this reason.
    pub(in crate::store) fn interrupt(&mut self, t_ns: u64, reason: NameId) {
        let capacity = series_capacity(self.all.len(), self.points);
        self.all.iter_mut().for_each(|signal| signal.series.push_break(t_ns, reason, capacity));
    }

    /// Reduces all readings so far like old ones.
    pub(in crate::store) fn reduce_all(&mut self) {
        let capacity = series_capacity(self.all.len(), self.points);
        self.all.iter_mut().for_each(|signal| signal.series.reduce_all(capacity));
    }

    /// Adds figures over all readings of a signal before those that follow.
    pub(in crate::store) fn resume(&mut self, id: SignalId, past: &Readings) {
        self.update(id, |series, _| series.resume(past));
    }

    /// Adds figures over a range of time before the readings that follow.
    pub(in crate::store) fn push_past(&mut self, id: SignalId, time: Range<u64>, past: &Readings) {
        self.update(id, |series, capacity| series.push_past(time, past, capacity));
    }

    /// Ends a run of readings; `false` for an unknown signal.
    pub(in crate::store) fn absent(&mut self, id: SignalId, t_ns: u64, reason: NameId) -> bool {
        self.update(id, |series, capacity| series.push_break(t_ns, reason, capacity))
    }

    fn update(&mut self, id: SignalId, change: impl FnOnce(&mut Series<i64>, usize)) -> bool {
        let capacity = series_capacity(self.all.len(), self.points);
        let index = self.by_id.get(id.0 as usize).and_then(|index| index.checked_sub(1));
        let signal = index.and_then(|index| self.all.get_mut(index as usize));
        signal.map(|signal| change(&mut signal.series, capacity)).is_some()
    }
}

/// A program's own counter, such as the depth of a queue.
#[derive(Clone, Debug)]
pub struct CounterSeries {
    /// What it counts.
    pub name: NameId,
    /// Its values.
    pub series: Series<f64>,
    /// How they went.
    pub course: Course,
}

impl CounterSeries {
    pub(in crate::store) fn new(name: NameId) -> Self {
        Self { name, series: Series::new(), course: Course::default() }
    }

    /// Adds a value and keeps at most `points`.
    pub(in crate::store) fn push(&mut self, t_ns: u64, value: f64, points: usize) {
        self.course.push(t_ns, value);
        self.series.push(t_ns, value, points);
    }
}

/// The counters of a session, in the order in which they appeared.
#[derive(Clone, Debug)]
pub(in crate::store) struct Counters {
    all: Vec<CounterSeries>,
    by_name: HashMap<NameId, usize>,
    capacity: usize,
    points: usize,
}

impl Counters {
    pub(in crate::store) fn new(capacity: usize, points: usize) -> Self {
        Self { all: Vec::new(), by_name: HashMap::new(), capacity, points }
    }

    pub(in crate::store) fn all(&self) -> &[CounterSeries] {
        &self.all
    }

    /// Adds a value; `false` if there is no room for another counter.
    pub(in crate::store) fn push(&mut self, name: NameId, t_ns: u64, value: f64) -> bool {
        self.update(name, |counter, capacity| counter.push(t_ns, value, capacity))
    }

    /// See [`Signals::interrupt`].
    pub(in crate::store) fn interrupt(&mut self, t_ns: u64, reason: NameId) {
        let capacity = series_capacity(self.all.len(), self.points);
        self.all.iter_mut().for_each(|counter| counter.series.push_break(t_ns, reason, capacity));
    }

    /// See [`Signals::reduce_all`].
    pub(in crate::store) fn reduce_all(&mut self) {
        let capacity = series_capacity(self.all.len(), self.points);
        self.all.iter_mut().for_each(|counter| counter.series.reduce_all(capacity));
    }

    /// Adds figures over all values of a counter before those that follow.
    pub(in crate::store) fn resume(&mut self, name: NameId, past: &Readings) {
        self.update(name, |counter, _| counter.series.resume(past));
    }

    /// Adds figures over a range of time before the values that follow.
    pub(in crate::store) fn push_past(&mut self, name: NameId, time: Range<u64>, past: &Readings) {
        self.update(name, |counter, capacity| {
            counter.course.push_past(time.end, past);
            counter.series.push_past(time, past, capacity);
        });
    }

    fn update(&mut self, name: NameId, change: impl FnOnce(&mut CounterSeries, usize)) -> bool {
        let index = match self.by_name.get(&name) {
            Some(index) => *index,
            None if self.all.len() < self.capacity => {
                self.by_name.insert(name, self.all.len());
                self.all.push(CounterSeries::new(name));
                self.all.len() - 1
            }
            None => return false,
        };
        let capacity = series_capacity(self.all.len(), self.points);
        change(&mut self.all[index], capacity);
        true
    }
}

/// Points that each of `series` series may keep, at most `points`.
fn series_capacity(series: usize, points: usize) -> usize {
    (POINTS_IN_ALL / series.max(1)).clamp(FEWEST_POINTS, points.max(FEWEST_POINTS))
}
