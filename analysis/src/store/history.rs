//! Data that no longer fits at full resolution: figures over equal stretches of time, in a fixed number of them.
//!
//! The stretches (buckets) begin at the first figure. When time passes the last one, neighbours are merged and all become
//! twice as wide, so that a run of any length fits.

/// Width of the first buckets, in nanoseconds.
const FIRST_BUCKET_NS: u64 = 100_000_000;

/// Figures of buckets, which can be merged.
pub(super) trait Merge: Clone + Default {
    /// Merges the figures of the next bucket.
    fn merge(&mut self, next: &Self);
}

/// Figures over all the time that is no longer kept in full.
#[derive(Clone, Debug)]
pub(super) struct History<T> {
    start_ns: u64,
    bucket_ns: u64,
    buckets: Vec<T>,
    capacity: usize,
}

impl<T: Merge> History<T> {
    /// An empty history that begins at `start_ns` and has at most `capacity` buckets.
    pub(super) fn new(start_ns: u64, capacity: usize) -> Self {
        Self { start_ns, bucket_ns: FIRST_BUCKET_NS, buckets: Vec::new(), capacity: capacity.max(2) }
    }

    /// Width of a bucket, in nanoseconds.
    pub(super) fn bucket_ns(&self) -> u64 {
        self.bucket_ns
    }

    /// The start, end and figures of the buckets that overlap `from_ns..to_ns`, oldest first.
    pub(super) fn within(&self, from_ns: u64, to_ns: u64) -> impl Iterator<Item = (u64, u64, &T)> {
        let first = (from_ns.saturating_sub(self.start_ns) / self.bucket_ns).min(self.buckets.len() as u64) as usize;
        self.buckets[first..].iter().zip(first as u64..).map_while(move |(bucket, at)| {
            let start_ns = self.start_ns.saturating_add(self.bucket_ns.saturating_mul(at));
            (start_ns < to_ns).then(|| (start_ns, start_ns.saturating_add(self.bucket_ns), bucket))
        })
    }

    /// The bucket of a time, mutably. A time before the start, as after a clock went back, belongs to the first bucket.
    pub(super) fn bucket_mut(&mut self, t_ns: u64) -> Option<&mut T> {
        let since_ns = t_ns.saturating_sub(self.start_ns);
        while since_ns / self.bucket_ns >= self.capacity as u64 {
            self.halve();
        }
        let at = (since_ns / self.bucket_ns) as usize;
        if at >= self.buckets.len() {
            self.buckets.resize(at + 1, T::default());
        }
        self.buckets.get_mut(at)
    }

    /// Calls `give` with each bucket that overlaps `from_ns..to_ns`, and the nanoseconds of the overlap.
    pub(super) fn spread(&mut self, from_ns: u64, to_ns: u64, mut give: impl FnMut(&mut T, u64)) {
        if to_ns > from_ns {
            self.bucket_mut(to_ns - 1);
        }
        let mut t_ns = from_ns.max(self.start_ns);
        while t_ns < to_ns {
            let bucket_ns = self.bucket_ns;
            let end_ns = t_ns.saturating_add(bucket_ns - (t_ns - self.start_ns) % bucket_ns).min(to_ns);
            if let Some(bucket) = self.bucket_mut(t_ns) {
                give(bucket, end_ns - t_ns);
            }
            t_ns = end_ns;
        }
    }

    #[cold]
    fn halve(&mut self) {
        let merged = self.buckets.chunks(2).map(|pair| {
            let mut bucket = pair[0].clone();
            pair[1..].iter().for_each(|next| bucket.merge(next));
            bucket
        });
        self.buckets = merged.collect();
        self.bucket_ns = self.bucket_ns.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Merge for u64 {
        fn merge(&mut self, next: &Self) {
            *self += next;
        }
    }

    const B: u64 = FIRST_BUCKET_NS;

    #[test]
    fn history_is_bounded_and_loses_nothing() {
        let mut history: History<u64> = History::new(1000, 8);
        let mut at_ns = 1000;
        for n in 0..10_000u64 {
            *history.bucket_mut(at_ns).unwrap() += n;
            at_ns += B / 3;
        }
        let all: Vec<_> = history.within(0, u64::MAX).collect();
        assert!(all.len() <= 8);
        assert_eq!(all.iter().map(|(_, _, sum)| **sum).sum::<u64>(), 9999 * 10_000 / 2);
        assert_eq!(history.bucket_ns() / B, 512, "3,333 first buckets in 8");
        assert_eq!((all[0].0, all[1].0), (1000, 1000 + history.bucket_ns()));
    }

    #[test]
    fn history_spread_is_exact() {
        let mut history: History<u64> = History::new(0, 4);
        history.spread(B / 2, B * 3 + 5, |bucket, ns| *bucket += ns);
        let parts: Vec<u64> = history.within(0, u64::MAX).map(|(_, _, ns)| *ns).collect();
        assert_eq!(parts, [B / 2, B, B, 5]);
        history.spread(B * 7, B * 8, |bucket, ns| *bucket += ns);
        assert_eq!(history.within(B * 2, B * 3).map(|(_, _, ns)| *ns).collect::<Vec<_>>(), [B + 5]);
    }

    #[test]
    fn history_absurd_times_are_harmless() {
        let mut history: History<u64> = History::new(5000, 16);
        history.spread(0, u64::MAX, |bucket, ns| *bucket = bucket.saturating_add(ns));
        *history.bucket_mut(3).unwrap() += 1;
        history.spread(u64::MAX - 1, u64::MAX, |bucket, ns| *bucket = bucket.saturating_add(ns));
        history.spread(9, 9, |_, _| unreachable!());
        assert!((1..=16).contains(&history.within(0, u64::MAX).count()));
    }
}
