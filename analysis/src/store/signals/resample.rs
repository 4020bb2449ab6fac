//! Series for charts: one figure per column of time, including the extremes, over any range from seconds to the whole run.
//!
//! A column without a reading is `None`, not zero. A gauge holds its value until the next reading, and a counter's increase
//! is spread over the time between two readings, since publishers write a value when it changes and repeat all of them
//! every five seconds.

use std::ops::Range;

use gnntop_wire::SignalKind;

use super::series::{Point, Series, Value, rate};
use super::signal::{CounterSeries, Signal};

/// A value not repeated for this long is no longer valid: the publisher's five seconds and one more.
const VALID_NS: u64 = 6_000_000_000;
/// Columns further ahead than this are searched for; nearer ones are reached step by step.
const NEAR: usize = 8;
/// A counter without a reading for this long has not changed.
const RESTS_AFTER_NS: u64 = 1_000_000_000;

/// A range of time divided into columns. Each begins where the previous one ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeColumns {
    /// Start of each column, followed by the end of the last one; never decreasing, at least one.
    edges: Vec<u64>,
}

impl TimeColumns {
    /// Columns between these times. A time before the previous one counts as equal to it.
    pub fn from_edges(mut edges: Vec<u64>) -> Self {
        let mut latest = 0;
        for edge in &mut edges {
            latest = latest.max(*edge);
            *edge = latest;
        }
        if edges.is_empty() {
            edges.push(0);
        }
        Self { edges }
    }

    /// Divides a range into `count` equal columns.
    pub fn equal(range: Range<u64>, count: usize) -> Self {
        let span = u128::from(range.end.saturating_sub(range.start));
        let passed = |at: usize| span * at as u128 / count.max(1) as u128;
        Self::from_edges((0..=count).map(|at| range.start.saturating_add(passed(at) as u64)).collect())
    }

    /// Each column divided into two equal ones.
    pub fn halved(&self) -> Self {
        let halves = self.edges.windows(2).flat_map(|pair| [pair[0], pair[0].midpoint(pair[1])]);
        Self { edges: halves.chain(self.edges.last().copied()).collect() }
    }

    /// Number of columns.
    pub fn count(&self) -> usize {
        self.edges.len() - 1
    }

    /// The time that they cover.
    pub fn range(&self) -> Range<u64> {
        self.start_ns(0)..self.start_ns(self.count())
    }

    /// Start of column `at`; the end of the last one if `at` is the number of columns or more.
    pub fn start_ns(&self, at: usize) -> u64 {
        self.edges[at.min(self.count())]
    }

    /// The column of a time; `None` if it is outside.
    pub fn column(&self, t_ns: u64) -> Option<usize> {
        let at = self.edges.partition_point(|edge| *edge <= t_ns).checked_sub(1)?;
        (at < self.count()).then_some(at)
    }

    /// Looks columns up for times that come in order.
    fn walk(&self) -> ColumnCursor<'_> {
        ColumnCursor { columns: self, range: self.range(), at: 0 }
    }
}

/// Looks up columns for times that are mostly in order: the next one is near the previous one.
struct ColumnCursor<'c> {
    columns: &'c TimeColumns,
    range: Range<u64>,
    at: usize,
}

impl ColumnCursor<'_> {
    /// The column of a time; `None` if it is outside.
    fn column(&mut self, t_ns: u64) -> Option<usize> {
        if !self.range.contains(&t_ns) {
            return None;
        }
        let edges = &self.columns.edges;
        // If the clock went back, or the time is far ahead, search again.
        let is_near = edges[self.at] <= t_ns && edges.get(self.at + NEAR).is_none_or(|edge| t_ns < *edge);
        if is_near {
            while edges[self.at + 1] <= t_ns {
                self.at += 1;
            }
        } else {
            self.at = self.columns.column(t_ns)?;
        }
        Some(self.at)
    }

    /// The columns that `from_ns..to_ns` overlaps.
    fn touched(&mut self, from_ns: u64, to_ns: u64) -> Range<usize> {
        let (from, to) = (from_ns.max(self.range.start), to_ns.min(self.range.end));
        if from >= to {
            return 0..0;
        }
        let first = self.column(from).unwrap_or(0);
        first..self.column(to - 1).map_or(0, |last| last + 1)
    }
}

/// A quantity in one column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// Smallest value.
    pub min: f64,
    /// Mean over the column's time, or over its readings.
    pub mean: f64,
    /// Largest value.
    pub max: f64,
}

/// A column being filled.
#[derive(Clone, Copy, Default)]
struct BinFill {
    sum: f64,
    weight: f64,
    min: f64,
    max: f64,
}

impl BinFill {
    fn add(&mut self, sum: f64, weight: f64, min: f64, max: f64) {
        if !(sum.is_finite() && min.is_finite() && max.is_finite()) || weight <= 0.0 {
            return;
        }
        let first = self.weight <= 0.0;
        self.min = if first { min } else { self.min.min(min) };
        self.max = if first { max } else { self.max.max(max) };
        self.sum += sum;
        self.weight += weight;
    }

    fn bin(&self) -> Option<Bin> {
        let mean = self.sum / self.weight;
        (self.weight > 0.0 && mean.is_finite()).then(|| Bin {
            min: self.min,
            mean: mean.clamp(self.min, self.max),
            max: self.max,
        })
    }
}

impl Signal {
    /// The signal by column: a gauge's raw values, a counter's increase per second. `now_ns` is the newest known time.
    pub fn columns(&self, columns: &TimeColumns, now_ns: u64) -> Vec<Option<Bin>> {
        match self.kind() {
            SignalKind::Gauge => self.series.value_columns(columns, now_ns, Some(VALID_NS)),
            SignalKind::Counter => self.series.rate_columns(columns, now_ns),
        }
    }
}

impl CounterSeries {
    /// The counter's values by column. A value holds until the next: programs publish a value when it changes.
    pub fn columns(&self, columns: &TimeColumns, now_ns: u64) -> Vec<Option<Bin>> {
        self.series.value_columns(columns, now_ns, None)
    }
}

impl<T: Value> Series<T> {
    /// Values by column. A column without a reading has the previous value, if that is at most `holds_ns` old.
    pub fn value_columns(&self, columns: &TimeColumns, now_ns: u64, holds_ns: Option<u64>) -> Vec<Option<Bin>> {
        let mut filling = vec![BinFill::default(); columns.count()];
        let (range, mut walk) = (columns.range(), columns.walk());
        if let Some(older) = self.older() {
            let kept_from_ns = self.points_from(0).next().map_or(u64::MAX, Point::t_ns);
            for (start_ns, end_ns, old) in older.within(range.start, range.end.min(kept_from_ns)) {
                for at in walk.touched(start_ns, end_ns).filter(|_| old.count > 0) {
                    filling[at].add(old.sum, f64::from(old.count), old.min, old.max);
                }
            }
        }
        let mut points = self.points_from(range.start).peekable();
        while let Some(point) = points.next() {
            if point.t_ns() >= range.end {
                break;
            }
            let Some(value) = point.value().map(Value::as_f64) else { continue };
            if let Some(at) = walk.column(point.t_ns()) {
                filling[at].add(value, 1.0, value, value);
            }
            let until_ns = points.peek().map_or(now_ns.saturating_add(1), |next| next.t_ns());
            let until_ns = holds_ns.map_or(until_ns, |holds| until_ns.min(point.t_ns().saturating_add(holds)));
            for held in &mut filling[walk.touched(point.t_ns(), until_ns)] {
                // Only if there is nothing else, and with no weight: it is not a separate reading.
                if held.weight <= 0.0 {
                    held.add(value * f64::EPSILON, f64::EPSILON, value, value);
                }
            }
        }
        filling.iter().map(BinFill::bin).collect()
    }

    /// Increase per second of a cumulative counter by column.
    pub fn rate_columns(&self, columns: &TimeColumns, now_ns: u64) -> Vec<Option<Bin>> {
        let mut filling = vec![BinFill::default(); columns.count()];
        let (range, mut walk) = (columns.range(), columns.walk());
        let mut give = |from_ns: u64, to_ns: u64, per_s: f64| {
            for at in walk.touched(from_ns, to_ns) {
                let start_ns = columns.start_ns(at).max(from_ns);
                let ns = columns.start_ns(at + 1).min(to_ns).saturating_sub(start_ns).max(1) as f64;
                filling[at].add(per_s * ns, ns, per_s, per_s);
            }
        };
        if let Some(older) = self.older() {
            let kept_from_ns = self.points_from(0).next().map_or(u64::MAX, Point::t_ns);
            for (start_ns, end_ns, old) in older.within(range.start, range.end.min(kept_from_ns)) {
                if old.increase_ns > 0 {
                    give(start_ns, end_ns.min(kept_from_ns), old.increase * 1e9 / old.increase_ns as f64);
                }
            }
        }
        let points = self.points_from(range.start);
        for (a, b) in points.clone().zip(points.skip(1)).take_while(|(a, _)| a.t_ns() < range.end) {
            if let Some(per_s) = rate(a, b) {
                give(a.t_ns(), b.t_ns(), per_s);
            }
        }
        if let Some(Point::Value { t_ns, .. }) = self.last()
            && now_ns.saturating_sub(*t_ns) > RESTS_AFTER_NS
        {
            give(*t_ns, now_ns.min(t_ns.saturating_add(VALID_NS)), 0.0);
        }
        filling.iter().map(BinFill::bin).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_wire::NameId;

    const S: u64 = 1_000_000_000;

    fn columns(from_s: u64, to_s: u64, count: usize) -> TimeColumns {
        TimeColumns::equal(from_s * S..to_s * S, count)
    }

    fn means(bins: &[Option<Bin>]) -> Vec<Option<f64>> {
        bins.iter().map(|bin| bin.map(|bin| bin.mean)).collect()
    }

    #[test]
    fn column_contains_its_start() {
        for (from, to, count) in [(3, 10, 7), (0, 100, 33), (5, 6, 90), (7, 7 + 3, 1)] {
            let columns = TimeColumns::equal(from..to, count);
            assert_eq!((columns.count(), columns.range()), (count, from..to));
            for at in 0..count {
                let (start, end) = (columns.start_ns(at), columns.start_ns(at + 1));
                assert!(start == end || columns.column(start) == Some(at), "{columns:?}: {at}");
            }
            assert_eq!((columns.column(to), columns.column(from.wrapping_sub(1))), (None, None));
        }
        let all = TimeColumns::equal(0..u64::MAX, 9);
        assert_eq!((all.column(u64::MAX - 1), all.column(0)), (Some(8), Some(0)));
        assert_eq!(TimeColumns::from_edges(vec![]).column(0), None);
        let odd = TimeColumns::from_edges(vec![5, 2, 9]).halved();
        assert_eq!((odd.count(), odd.start_ns(2), odd.start_ns(3), odd.column(5)), (4, 5, 7, Some(2)));
    }

    #[test]
    fn gauge_value_lasts_until_break_or_age() {
        let mut series: Series<i64> = Series::new();
        series.push(S, 4, 100);
        series.push(S + S / 2, 8, 100);
        series.push_break(4 * S, NameId(1), 100);
        series.push(6 * S, 2, 100);
        let bins = series.value_columns(&columns(0, 20, 20), 19 * S, Some(VALID_NS));
        assert_eq!(bins[1], Some(Bin { min: 4.0, mean: 6.0, max: 8.0 }));
        let known: Vec<usize> = (0..20).filter(|at| bins[*at].is_some()).collect();
        assert_eq!(known, [1, 2, 3, 6, 7, 8, 9, 10, 11], "absent from 4 to 6, and too old from 12 on");
        assert_eq!(means(&series.value_columns(&columns(2, 4, 2), 19 * S, None)), [Some(8.0), Some(8.0)]);
    }

    #[test]
    fn a_rate_belongs_to_the_time_between_readings() {
        let mut series: Series<i64> = Series::new();
        for (t_s, value) in [(0, 0), (2, 20), (3, 90), (4, 10), (5, 11)] {
            series.push(t_s * S, value, 100);
        }
        let bins = series.rate_columns(&columns(0, 6, 6), 5 * S);
        assert_eq!(means(&bins), [Some(10.0), Some(10.0), Some(70.0), None, Some(1.0), None]);
        let wide = series.rate_columns(&columns(0, 4, 1), 5 * S)[0].unwrap();
        assert_eq!((wide.min, wide.mean, wide.max), (10.0, 30.0, 70.0));
        let rests = series.rate_columns(&columns(4, 14, 10), 20 * S);
        assert_eq!(means(&rests)[..2], [Some(1.0), Some(0.0)], "not said again: not moved");
        assert_eq!((rests[6].map(|bin| bin.mean), rests[7]), (Some(0.0), None), "and then not known");
    }

    #[test]
    fn reduced_readings_keep_extremes() {
        let (mut gauge, mut counter): (Series<i64>, Series<i64>) = (Series::new(), Series::new());
        for n in 0..10_000i64 {
            let t_ns = n as u64 * S / 10;
            gauge.push(t_ns, if n == 100 { 5000 } else { 10 }, 600);
            counter.push(t_ns, n * 3, 600);
        }
        assert!(gauge.len() <= 600 && gauge.reduced_to_ns().is_some());
        let bins = gauge.value_columns(&columns(0, 1000, 50), 1000 * S, Some(VALID_NS));
        assert!(bins.iter().all(Option::is_some));
        assert_eq!(bins.iter().flatten().map(|bin| bin.max).fold(0.0, f64::max), 5000.0, "no spike hides");
        let rates = counter.rate_columns(&columns(0, 1000, 50), 1000 * S);
        assert!(rates[..49].iter().all(|bin| bin.is_some_and(|bin| (bin.mean - 30.0).abs() < 0.5)), "{rates:?}");
    }

    #[test]
    fn odd_series_give_valid_columns() {
        let mut series: Series<f64> = Series::new();
        for (t_ns, value) in [(u64::MAX, f64::NAN), (5, f64::INFINITY), (0, -1e308), (1, 1e308), (1, 2.0)] {
            series.push(t_ns, value, 4);
        }
        let backwards = TimeColumns::from_edges(vec![u64::MAX, 5, 1]);
        for columns in [TimeColumns::equal(0..u64::MAX, 7), backwards, columns(0, 1, 0)] {
            for bins in [series.value_columns(&columns, 9, None), series.rate_columns(&columns, u64::MAX)] {
                assert!(bins.iter().flatten().all(|bin| bin.mean.is_finite()));
            }
        }
    }
}
