//! Durations in buckets whose bounds grow by a constant factor, as OTLP has them: bucket `i` holds what is above `base^i` and at
//! most `base^(i+1)`, in seconds, where `base` is `2^(2^-scale)`
//! (<https://opentelemetry.io/docs/specs/otel/metrics/data-model/#exponentialhistogram>).
//!
//! Histograms of several ranks can be added bucket by bucket, after the finer one is made coarser. A duration's bucket depends on
//! nothing but the duration and the scale, so their sum is the histogram of all durations.

use hdrhistogram::Histogram;

/// The finest scale: a bucket is 2.2 % wide.
const FINEST: i32 = 5;
/// Most buckets: ten times 2 at the finest scale. A wider range has wider buckets.
const MOST: usize = 320;

/// Counts of durations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExponentialHistogram {
    pub scale: i32,
    /// Durations of 0.
    pub zeros: u64,
    /// The index of the first bucket.
    pub offset: i32,
    pub counts: Vec<u64>,
}

impl ExponentialHistogram {
    /// The durations of a histogram of nanoseconds, as finely as they fit.
    pub(super) fn new(durations: &Histogram<u32>) -> Self {
        let mut all = Self { scale: FINEST, zeros: 0, offset: 0, counts: Vec::new() };
        for bin in durations.iter_recorded() {
            let count = u64::from(bin.count_at_value());
            match durations.median_equivalent(bin.value_iterated_to()) {
                0 => all.zeros += count,
                ns => all.add(index(ns, FINEST), count),
            }
        }
        while all.counts.len() > MOST {
            all.coarsen();
        }
        all
    }

    /// Number of durations.
    pub(super) fn count(&self) -> u64 {
        self.zeros + self.counts.iter().sum::<u64>()
    }

    /// Adds durations, which come in order.
    fn add(&mut self, index: i32, count: u64) {
        if self.counts.is_empty() {
            self.offset = index;
        }
        let at = index.saturating_sub(self.offset).max(0) as usize;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += count;
    }

    /// Joins pairs of neighbouring buckets.
    fn coarsen(&mut self) {
        let fine =
            std::mem::replace(self, Self { scale: self.scale - 1, zeros: self.zeros, offset: 0, counts: Vec::new() });
        for (index, count) in (fine.offset..).zip(fine.counts) {
            self.add(index >> 1, count);
        }
    }
}

/// The bucket of a duration above 0.
fn index(ns: u64, scale: i32) -> i32 {
    let exponent = (ns as f64 / 1e9).log2() * f64::from(scale).exp2();
    exponent.ceil() as i32 - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_analysis::store::Distribution;
    use proptest::prelude::*;

    fn distribution(durations: &[u64]) -> Distribution {
        let mut all = Distribution::new();
        durations.iter().for_each(|ns| all.record(*ns));
        all
    }

    fn histogram(durations: &Distribution) -> ExponentialHistogram {
        ExponentialHistogram::new(durations.histogram().unwrap())
    }

    /// What a reader of OTLP does with the histograms of two ranks.
    fn merged(mut one: ExponentialHistogram, mut other: ExponentialHistogram) -> ExponentialHistogram {
        while one.scale != other.scale {
            if one.scale > other.scale { one.coarsen() } else { other.coarsen() }
        }
        let mut counts = std::collections::BTreeMap::<i32, u64>::new();
        for of in [&one, &other] {
            (of.offset..).zip(&of.counts).for_each(|(index, count)| *counts.entry(index).or_default() += count);
        }
        let mut sum = ExponentialHistogram { zeros: one.zeros + other.zeros, counts: Vec::new(), offset: 0, ..one };
        counts.into_iter().for_each(|(index, count)| sum.add(index, count));
        while sum.counts.len() > MOST {
            sum.coarsen();
        }
        sum
    }

    /// The bounds in nanoseconds of the bucket in which the duration of this rank is.
    fn bounds(of: &ExponentialHistogram, rank: u64) -> (f64, f64) {
        let mut seen = of.zeros;
        if rank <= seen {
            return (0.0, 0.0);
        }
        let (index, _) = (of.offset..)
            .zip(&of.counts)
            .find(|(_, count)| {
                seen += **count;
                rank <= seen
            })
            .unwrap();
        let bound = |index: i32| (f64::from(index) / f64::from(of.scale).exp2()).exp2() * 1e9;
        (bound(index), bound(index + 1))
    }

    fn any_durations() -> impl Strategy<Value = Vec<u64>> {
        let magnitude =
            prop_oneof![Just(0u64..3), Just(0..5_000), Just(900_000..1_100_000), Just(0..3_600_000_000_000)];
        proptest::collection::vec(magnitude.prop_flat_map(|range| range), 1..200)
    }

    proptest! {
        #[test]
        fn quantiles_are_within_a_bucket(durations in any_durations(), quantile in 0.0f64..1.0) {
            let (source, of) = (distribution(&durations), histogram(&distribution(&durations)));
            prop_assert_eq!(of.count(), source.count());
            prop_assert!(of.counts.len() <= MOST && of.counts.first() != Some(&0) && of.counts.last() != Some(&0));
            let rank = ((quantile * source.count() as f64).ceil() as u64).max(1);
            let mut sorted = durations;
            sorted.sort_unstable();
            let exact = sorted[rank as usize - 1] as f64;
            // The source has bins of its own, 0.1 % wide.
            let (low, high) = bounds(&of, rank);
            prop_assert!(low * 0.998 <= exact && exact <= high * 1.002, "{exact} is not in {low}..{high}");
        }

        #[test]
        fn two_ranks_add_up_to_the_histogram_of_both(one in any_durations(), other in any_durations()) {
            let both = histogram(&distribution(&[&one[..], &other[..]].concat()));
            prop_assert_eq!(merged(histogram(&distribution(&one)), histogram(&distribution(&other))), both);
        }
    }

    #[test]
    fn powers_of_two_seconds_are_upper_bounds() {
        assert_eq!(index(1_000_000_000, 0), -1);
        assert_eq!(index(1_000_000_001, 0), 0);
        assert_eq!(index(2_000_000_000, 5), 31);
        assert_eq!(index(500_000_000, 5), -33);
    }

    #[test]
    fn narrow_range_has_the_finest_scale_and_a_wide_one_fits() {
        assert_eq!(histogram(&distribution(&[10_000_000, 20_000_000])).scale, FINEST);
        let wide = histogram(&distribution(&[1, 1_000_000_000_000]));
        assert_eq!((wide.scale, wide.count()), (3, 2));
        assert!(wide.counts.len() <= MOST);
    }
}
