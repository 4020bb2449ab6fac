//! Durations: count, total, extremes and percentiles, in fixed memory; and those of spans by name, over all tracks.

use std::collections::VecDeque;

use gnntop_wire::past::Durations;
use gnntop_wire::{NameId, NameKind};
use hdrhistogram::Histogram;

use crate::store::ids::names::NameTable;

/// Longest duration with exact percentiles: one hour. Longer ones count as one hour there.
pub const LONGEST_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits of percentiles: they are off by at most 0.1 %.
pub const SIGNIFICANT_DIGITS: u8 = 3;
/// Spans of a name that one around them is compared with: the newest.
const INNER_SPANS: usize = 32;

/// Durations of one kind, in nanoseconds.
///
/// Count, total, minimum and maximum are exact; percentiles come from an HDR histogram from 1 ns to
/// [`LONGEST_NS`] with [`SIGNIFICANT_DIGITS`].
#[derive(Clone, Debug)]
pub struct Distribution {
    /// `None` if the store had no room for another one; then there are no percentiles.
    histogram: Option<Histogram<u32>>,
    count: u64,
    total_ns: u64,
    /// The first duration. Sums for the spread use differences from it, since squares of large numbers would lose precision.
    first_ns: u64,
    differences: f64,
    squares: f64,
    min_ns: u64,
    max_ns: u64,
    last_ns: u64,
}

impl Distribution {
    /// An empty distribution, with percentiles.
    pub fn new() -> Self {
        Self { histogram: Histogram::new(SIGNIFICANT_DIGITS).ok(), ..Self::without_percentiles() }
    }

    /// An empty distribution without percentiles.
    pub(in crate::store) fn without_percentiles() -> Self {
        Self {
            histogram: None,
            count: 0,
            total_ns: 0,
            first_ns: 0,
            differences: 0.0,
            squares: 0.0,
            min_ns: u64::MAX,
            max_ns: 0,
            last_ns: 0,
        }
    }

    /// Adds a duration.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.count = self.count.saturating_add(1);
        self.total_ns = self.total_ns.saturating_add(ns);
        if self.count == 1 {
            self.first_ns = ns;
        }
        let difference = ns as f64 - self.first_ns as f64;
        self.differences += difference;
        self.squares += difference * difference;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.last_ns = ns;
        if let Some(histogram) = &mut self.histogram {
            // It grows by itself and never gets more than it can hold, so this cannot fail.
            let _ = histogram.record(ns.min(LONGEST_NS));
        }
    }

    /// Adds durations that are no longer kept individually. Bins as narrow as the histogram's lose nothing.
    pub(in crate::store) fn add_past(&mut self, past: &Durations) {
        if past.is_empty() {
            return;
        }
        if self.count == 0 {
            self.first_ns = past.total_ns / past.count;
        }
        let (n, first) = (past.count as f64, self.first_ns as f64);
        let total = past.total_ns as f64;
        self.differences += total - n * first;
        self.squares += past.squares - 2.0 * first * total + n * first * first;
        self.count = self.count.saturating_add(past.count);
        self.total_ns = self.total_ns.saturating_add(past.total_ns);
        (self.min_ns, self.max_ns) = (self.min_ns.min(past.min_ns), self.max_ns.max(past.max_ns));
        let Some(histogram) = &mut self.histogram else { return };
        for (low_ns, count) in past.bins() {
            // Like `record`, this cannot fail.
            let _ = histogram.record_n(low_ns.min(LONGEST_NS), u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all durations, saturating.
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// The newest duration; `None` if there is none.
    pub fn last_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.last_ns)
    }

    /// The shortest duration; `None` if there is none.
    pub fn min_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min_ns)
    }

    /// The longest duration; `None` if there is none.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    /// Mean duration in nanoseconds; `None` if there is none.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total_ns as f64 / self.count as f64)
    }

    /// Standard deviation of the durations in nanoseconds; `None` with fewer than two.
    pub fn sd_ns(&self) -> Option<f64> {
        let n = self.count as f64;
        let variance = (self.squares - self.differences * self.differences / n) / (n - 1.0);
        (self.count > 1).then(|| variance.max(0.0).sqrt())
    }

    /// The 95 % confidence interval of a percentile, if the durations are independent: the durations at the ranks `n q ±
    /// 1.96 sqrt(n q (1 - q))` (Hahn and Meeker, *Statistical Intervals*, 1991, section 5.2). `None` if these ranks are not
    /// among the durations, or without percentiles.
    pub fn percentile_interval(&self, quantile: f64) -> Option<(u64, u64)> {
        let (n, q) = (self.count as f64, quantile.clamp(0.0, 1.0));
        let half = 1.96 * (n * q * (1.0 - q)).sqrt();
        let (low, high) = ((n * q - half).floor(), (n * q + half).ceil() + 1.0);
        if low < 1.0 || high > n {
            return None;
        }
        Some((self.percentile(low / n)?, self.percentile(high / n)?))
    }

    /// The duration that a share `quantile` (0 to 1) of all durations does not exceed (nearest rank), within the
    /// histogram's precision. `None` if there is no duration, or without percentiles.
    pub fn percentile(&self, quantile: f64) -> Option<u64> {
        let histogram = self.histogram.as_ref().filter(|_| self.count > 0)?;
        let value = histogram.value_at_quantile(quantile.clamp(0.0, 1.0));
        // The histogram returns the upper end of a bucket, which may be beyond what was recorded.
        Some(value.clamp(self.min_ns, self.max_ns))
    }

    /// How many durations are below each of the increasing `edges_ns` and not below the previous one, followed by the
    /// number of all others. Within the histogram's precision; all 0 without one.
    pub fn counts(&self, edges_ns: &[u64]) -> Vec<u64> {
        let mut counts = vec![0; edges_ns.len() + 1];
        for step in self.histogram.iter().flat_map(Histogram::iter_recorded) {
            let value = step.value_iterated_to().clamp(self.min_ns, self.max_ns);
            counts[edges_ns.partition_point(|edge| *edge <= value)] += u64::from(step.count_at_value());
        }
        counts
    }

    /// The 95 % confidence interval of a percentile, if the durations are independent: between the ranks of a binomial
    /// distribution (Hahn and Meeker, Statistical Intervals, 1991, 5.2, in the normal approximation).
    fn range(&self, quantile: f64) -> Option<(u64, u64)> {
        let spread = 1.96 * (quantile * (1.0 - quantile) / self.count.max(1) as f64).sqrt();
        Some((self.percentile(quantile - spread)?, self.percentile(quantile + spread)?))
    }

    /// Whether a percentile differs from that of `other` by more than chance: their 95 % confidence intervals do not
    /// overlap. Neighbouring steps are rarely independent, so this is a minimum requirement.
    pub fn differs(&self, other: &Self, quantile: f64) -> bool {
        match (self.range(quantile), other.range(quantile)) {
            (Some((low, high)), Some((other_low, other_high))) => below(high, other_low) || below(other_high, low),
            _ => false,
        }
    }

    /// Whether there are enough durations to distinguish this percentile from the longest one.
    pub fn resolves(&self, quantile: f64) -> bool {
        self.count as f64 * (1.0 - quantile) >= 0.999
    }

    /// The histogram behind the percentiles, for curves and exports; `None` without percentiles.
    pub fn histogram(&self) -> Option<&Histogram<u32>> {
        self.histogram.as_ref()
    }
}

/// Whether a percentile is below another by more than both may be off.
fn below(one: u64, other: u64) -> bool {
    one.saturating_add(one / (10u64.pow(u32::from(SIGNIFICANT_DIGITS)) / 2)) < other
}

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}

/// Durations of all spans with one name.
#[derive(Clone, Debug)]
pub struct SpanStatistics {
    /// The name.
    pub name: NameId,
    /// Whether its spans are phases.
    pub is_phase: bool,
    /// The durations of single spans.
    pub durations: Distribution,
    /// Their time on loaders' tracks: work done ahead, in parallel with steps.
    pub ahead_ns: u64,
    /// Their time inside others of the same name, as of a function that calls itself.
    pub repeated_ns: u64,
    /// The newest that may be inside of one that ends later.
    newest: VecDeque<NewestSpan>,
}

/// A span that has ended.
#[derive(Clone, Copy, Debug)]
struct NewestSpan {
    track: usize,
    start_ns: u64,
    ns: u64,
}

impl SpanStatistics {
    /// Counts the time of spans once if they are inside of this one. The inner ones have ended before.
    #[inline]
    fn note_inner(&mut self, outer: NewestSpan) {
        while let Some(at) = self.newest.iter().rposition(|span| span.track == outer.track)
            && self.newest[at].start_ns >= outer.start_ns
        {
            let inner = self.newest.remove(at).map_or(0, |inner| inner.ns);
            self.repeated_ns = self.repeated_ns.saturating_add(inner);
        }
        if self.newest.len() == INNER_SPANS {
            self.newest.pop_front();
        }
        self.newest.push_back(outer);
    }
}

/// Span statistics by name, with percentiles for a bounded number of names.
#[derive(Clone, Debug)]
pub(in crate::store) struct Spans {
    all: Vec<SpanStatistics>,
    /// Most names with a histogram.
    capacity: usize,
}

impl Spans {
    pub(in crate::store) fn new(capacity: usize) -> Self {
        Self { all: Vec::new(), capacity }
    }

    pub(in crate::store) fn all(&self) -> &[SpanStatistics] {
        &self.all
    }

    /// Adds a span of this track.
    #[inline]
    pub(in crate::store) fn record(&mut self, index: u32, (track, start_ns, ns): (usize, u64, u64), is_ahead: bool) {
        if let Some(statistics) = self.all.get_mut(index as usize) {
            statistics.durations.record(ns);
            if !statistics.is_phase {
                statistics.note_inner(NewestSpan { track, start_ns, ns });
            }
            statistics.ahead_ns = statistics.ahead_ns.saturating_add(if is_ahead { ns } else { 0 });
        }
    }

    /// Adds durations that are no longer kept individually.
    pub(in crate::store) fn add_past(&mut self, index: u32, past: &Durations, ahead_ns: u64) {
        if let Some(statistics) = self.all.get_mut(index as usize) {
            statistics.durations.add_past(past);
            statistics.ahead_ns = statistics.ahead_ns.saturating_add(ahead_ns);
        }
    }

    /// Index of a name's statistics, assigned now. Names of the same kind and text share them.
    #[cold]
    pub(in crate::store) fn assign(&mut self, name: NameId, names: &NameTable) -> u32 {
        let defined = |name: NameId| names.kind(name).zip(names.text(name));
        let own = defined(name);
        let same = |s: &SpanStatistics| s.name == name || (own.is_some() && defined(s.name) == own);
        // Only names with percentiles are compared: with more, hostile input could make this slow.
        if let Some(index) = self.all.iter().take(self.capacity).position(same) {
            return index as u32;
        }
        let room = self.all.len() < self.capacity;
        let durations = if room { Distribution::new() } else { Distribution::without_percentiles() };
        let is_phase = own.is_some_and(|(kind, _)| kind == NameKind::Phase);
        let newest = VecDeque::new();
        self.all.push(SpanStatistics { name, is_phase, durations, ahead_ns: 0, repeated_ns: 0, newest });
        self.all.len() as u32 - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distribution(values: impl IntoIterator<Item = u64>) -> Distribution {
        let mut all = Distribution::new();
        values.into_iter().for_each(|ns| all.record(ns));
        all
    }

    #[test]
    fn differs_needs_enough_durations() {
        let spread = |from: u64, n: u64| distribution((0..n).map(move |i| from + i * 618_033 % 1_000_000));
        assert!(spread(1_000_000, 1000).differs(&spread(1_200_000, 1000), 0.5));
        assert!(!spread(1_000_000, 8).differs(&spread(1_200_000, 8), 0.5), "too few");
        assert!(!spread(1_000_000, 1000).differs(&spread(1_000_100, 1000), 0.5));
        assert!(!distribution(std::iter::empty()).differs(&spread(1, 10), 0.5));
    }

    #[test]
    fn the_precision_of_the_histogram_is_no_difference() {
        let (one, other) =
            (distribution((0..100).map(|_| 4_000_000)), distribution((0..99).map(|_| 4_000_000).chain([270_000_000])));
        assert!(!one.differs(&other, 0.5) && !other.differs(&one, 0.5));
    }

    #[test]
    fn span_inside_one_of_the_same_name_counts_once() {
        let mut spans = Spans::new(4);
        spans.assign(NameId(1), &NameTable::default());
        let mut record = |track, start_ns, end_ns| spans.record(0, (track, start_ns, end_ns - start_ns), false);
        // A function that calls itself twice, and that once more; another thread meanwhile.
        record(1, 20, 30);
        record(2, 0, 50);
        record(1, 10, 40);
        record(1, 50, 60);
        record(1, 0, 100);
        record(1, 100, 130);
        let statistics = &spans.all()[0];
        assert_eq!((statistics.durations.total_ns(), statistics.repeated_ns), (230, 50));
    }

    #[test]
    fn percentile_needs_longer_durations() {
        let hundred = distribution(1..=100);
        assert!(hundred.resolves(0.5) && hundred.resolves(0.99) && !hundred.resolves(0.999));
        assert!(!distribution(1..=99).resolves(0.99));
    }

    #[test]
    fn counts_between_edges_add_up() {
        let all = distribution(0..1000);
        assert_eq!(all.counts(&[100, 600]), [100, 500, 400]);
        assert_eq!(all.counts(&[]), [1000]);
        assert_eq!(Distribution::without_percentiles().counts(&[5]), [0, 0]);
    }

    #[test]
    fn the_standard_deviation_is_that_of_a_sample() {
        assert_eq!(distribution([2, 4, 4, 4, 5, 5, 7, 9]).sd_ns().map(|sd| (sd * 1000.0).round()), Some(2138.0));
        assert_eq!(distribution([5]).sd_ns(), None);
        let far = distribution((0..1000).map(|n| 1_000_000_000 + n % 2));
        assert!((far.sd_ns().unwrap() - 0.5).abs() < 0.001, "{:?}", far.sd_ns());
    }

    #[test]
    fn percentile_interval_contains_percentile() {
        let durations = distribution(1..=1000);
        assert_eq!(durations.percentile_interval(0.5), Some((469, 532)));
        let (low, high) = durations.percentile_interval(0.99).unwrap();
        assert!(low < 990 && high > 990, "{low} {high}");
        assert_eq!(distribution(1..=100).percentile_interval(0.99), None);
        assert_eq!(distribution(1..=5).percentile_interval(0.5), None);
        assert_eq!(distribution([]).percentile_interval(0.5), None);
    }
}
