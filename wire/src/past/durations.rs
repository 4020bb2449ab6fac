//! Durations in bins that are equally wide within a power of two, as in an HDR histogram; only non-empty bins are kept.

/// Significant bits of a duration in figures over the whole time: as in an HDR histogram with three digits.
pub const FINE_BITS: u8 = 11;
/// Significant bits of a duration in a slice: bins are 3 % wide.
pub const SLICE_BITS: u8 = 6;
/// Longest duration with a bin of its own: one hour. Longer ones count as one hour in the bins.
pub const LONGEST_NS: u64 = 3_600_000_000_000;

/// Durations of one kind, in nanoseconds. Count, total and extremes are exact.
#[derive(Clone, Debug, PartialEq)]
pub struct Durations {
    /// Number of durations.
    pub count: u64,
    /// Their sum, saturating.
    pub total_ns: u64,
    /// The shortest; [`u64::MAX`] if there are none.
    pub min_ns: u64,
    /// The longest; 0 if there are none.
    pub max_ns: u64,
    /// Sum of the squares, for the spread.
    pub squares: f64,
    bits: u8,
    /// Bin and count, ascending by bin.
    bins: Vec<(u32, u64)>,
}

impl Default for Durations {
    fn default() -> Self {
        Self::new(SLICE_BITS)
    }
}

impl Durations {
    /// No durations, in bins of `bits` (2 to 16) significant bits.
    pub fn new(bits: u8) -> Self {
        let bits = bits.clamp(2, 16);
        Self { count: 0, total_ns: 0, min_ns: u64::MAX, max_ns: 0, squares: 0.0, bits, bins: Vec::new() }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Significant bits of a bin.
    pub fn bits(&self) -> u8 {
        self.bits
    }

    /// Adds a duration.
    pub fn record(&mut self, ns: u64) {
        self.record_without_bin(ns);
        self.add_to_bin(self.bin_index(ns), 1);
    }

    /// Adds a duration to count, total and extremes. The caller adds it to its bin.
    #[inline]
    pub fn record_without_bin(&mut self, ns: u64) {
        self.count = self.count.saturating_add(1);
        self.total_ns = self.total_ns.saturating_add(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.squares += ns as f64 * ns as f64;
    }

    /// The bin of a duration, below `(66 - bits) << (bits - 1)`.
    #[inline]
    pub fn bin_index(&self, ns: u64) -> u32 {
        bin_index(ns.min(LONGEST_NS), self.bits)
    }

    /// Adds other durations. Finer bins than these lose precision; coarser ones count at their lower edge.
    pub fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.squares += other.squares;
        for (low_ns, count) in other.bins() {
            self.add_to_bin(bin_index(low_ns, self.bits), count);
        }
    }

    /// Lower edge in nanoseconds and count of each bin that is not empty, ascending.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.bins.iter().map(|(bin, count)| (low_ns(*bin, self.bits), *count))
    }

    /// The lower edge of the bin that reaches the share `quantile` (0 to 1) of all durations, clamped to the extremes.
    /// `None` if there are none.
    pub fn percentile(&self, quantile: f64) -> Option<u64> {
        let wanted = ((self.count as f64 * quantile.clamp(0.0, 1.0)).ceil() as u64).max(1);
        let mut below = 0u64;
        let found = self.bins().find(|(_, count)| {
            below = below.saturating_add(*count);
            below >= wanted
        });
        found.map(|(low_ns, _)| low_ns.clamp(self.min_ns, self.max_ns.max(self.min_ns)))
    }

    /// Adds `count` durations to a bin from [`Durations::bin_index`]. Count, total and extremes are unchanged.
    pub fn add_to_bin(&mut self, bin: u32, count: u64) {
        // New bins are rare after the first durations.
        match self.bins.binary_search_by_key(&bin, |(known, _)| *known) {
            Ok(at) => self.bins[at].1 = self.bins[at].1.saturating_add(count),
            Err(at) => self.bins.insert(at, (bin, count)),
        }
    }

    /// Durations from their written parts.
    pub(super) fn from_parts(bits: u8, figures: [u64; 4], squares: f64, bins: Vec<(u32, u64)>) -> Self {
        let [count, total_ns, min_ns, max_ns] = figures;
        Self { count, total_ns, min_ns, max_ns, squares, bits, bins }
    }

    pub(super) fn raw_bins(&self) -> &[(u32, u64)] {
        &self.bins
    }
}

/// Number of bins, at most.
pub(super) fn max_bins(bits: u8) -> u32 {
    bin_index(LONGEST_NS, bits) + 1
}

fn bin_index(ns: u64, bits: u8) -> u32 {
    let bits = u32::from(bits);
    let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(bits);
    // Below 2^bits each value has its own bin; each power of two above has half as many bins.
    (shift << (bits - 1)) + (ns >> shift) as u32
}

fn low_ns(bin: u32, bits: u8) -> u64 {
    let half = u32::from(bits) - 1;
    let shift = (bin >> half).saturating_sub(1);
    u64::from(bin - (shift << half)).checked_shl(shift).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn durations(all: &[u64]) -> Durations {
        let mut durations = Durations::new(SLICE_BITS);
        all.iter().for_each(|ns| durations.record(*ns));
        durations
    }

    proptest! {
        #[test]
        fn bin_width_is_within_precision(ns in 0..=LONGEST_NS, bits in 2u8..=16) {
            let low = low_ns(bin_index(ns, bits), bits);
            prop_assert!(low <= ns && (ns - low) as f64 <= ns as f64 / f64::from(1u32 << (bits - 1)));
            prop_assert_eq!(bin_index(low, bits), bin_index(ns, bits));
            prop_assert!(bin_index(ns, bits) < max_bins(bits));
        }

        #[test]
        fn bin_index_rises_with_duration(a in 0..=LONGEST_NS, b in 0..=LONGEST_NS) {
            prop_assert!(bin_index(a.min(b), 11) <= bin_index(a.max(b), 11));
        }

        #[test]
        fn merge_equals_recording_all(
            some in prop::collection::vec(any::<u64>(), 0..50),
            others in prop::collection::vec(0u64..10_000_000, 0..50),
        ) {
            let mut merged = durations(&some);
            merged.merge(&durations(&others));
            let all = durations(&[some, others].concat());
            prop_assert_eq!(merged.bins().collect::<Vec<_>>(), all.bins().collect::<Vec<_>>());
            prop_assert_eq!((merged.count, merged.total_ns), (all.count, all.total_ns));
            prop_assert_eq!((merged.min_ns, merged.max_ns), (all.min_ns, all.max_ns));
        }
    }

    #[test]
    fn percentile_is_within_one_bin() {
        let all = durations(&(1..=1000).map(|n| n * 1000).collect::<Vec<_>>());
        let p99 = all.percentile(0.99).unwrap() as f64;
        assert!((960_000.0..=990_000.0).contains(&p99), "{p99}");
        assert_eq!(durations(&[]).percentile(0.5), None);
        assert_eq!(durations(&[7]).percentile(0.5), Some(7));
    }
}
