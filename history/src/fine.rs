//! Durations with a counter for each bin, for fast counting; [`Durations`] has a sorted list of non-empty bins.

use gnntop_wire::past::{Durations, FINE_BITS};

/// Counters reserved together: those of a power of two.
const TOGETHER: usize = 1 << (FINE_BITS - 1);

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct FineHistogram {
    /// Count, total and extremes. Its bins are only those of the resumed past.
    figures: Durations,
    counters: Vec<Option<Box<[u64; TOGETHER]>>>,
}

impl FineHistogram {
    pub(crate) fn new() -> Self {
        Self { figures: Durations::new(FINE_BITS), counters: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.figures.is_empty()
    }

    #[inline]
    pub(crate) fn record(&mut self, ns: u64) {
        self.figures.record_without_bin(ns);
        let bin = self.figures.bin_index(ns) as usize;
        match self.counters.get_mut(bin / TOGETHER) {
            Some(Some(counters)) => counters[bin % TOGETHER] += 1,
            _ => self.record_first(bin),
        }
    }

    #[cold]
    fn record_first(&mut self, bin: usize) {
        let at = bin / TOGETHER;
        if at >= self.counters.len() {
            self.counters.resize_with(at + 1, || None);
        }
        self.counters[at].get_or_insert_with(|| Box::new([0; TOGETHER]))[bin % TOGETHER] += 1;
    }

    pub(crate) fn merge(&mut self, more: &Durations) {
        self.figures.merge(more);
    }

    /// All durations.
    pub(crate) fn durations(&self) -> Durations {
        let mut all = self.figures.clone();
        for (at, counters) in self.counters.iter().enumerate() {
            for (bin, count) in counters.iter().flat_map(|counters| counters.iter().enumerate()) {
                if *count > 0 {
                    all.add_to_bin((at * TOGETHER + bin) as u32, *count);
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn fine_histogram_equals_durations(
            before in prop::collection::vec(0u64..10_000_000, 0..20),
            all in prop::collection::vec(prop_oneof![any::<u64>(), 0u64..3000, 0u64..10_000_000], 0..200),
        ) {
            let (mut fine, mut expected, mut past) = (FineHistogram::new(), Durations::new(FINE_BITS), Durations::new(FINE_BITS));
            before.iter().for_each(|ns| past.record(*ns));
            before.iter().chain(&all).for_each(|ns| expected.record(*ns));
            all.iter().for_each(|ns| fine.record(*ns));
            fine.merge(&past);
            let found = fine.durations();
            prop_assert_eq!((found.count, found.total_ns), (expected.count, expected.total_ns));
            prop_assert_eq!((found.min_ns, found.max_ns), (expected.min_ns, expected.max_ns));
            prop_assert_eq!(found.bins().collect::<Vec<_>>(), expected.bins().collect::<Vec<_>>());
        }
    }
}
