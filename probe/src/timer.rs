//! When the drain thread has something to do.

use std::time::{Duration, Instant};

/// Reports when an interval has passed.
pub(crate) struct Timer {
    interval: Duration,
    last: Instant,
}

impl Timer {
    /// Begins now.
    pub(crate) fn new(interval: Duration) -> Self {
        Self { interval, last: Instant::now() }
    }

    /// Whether the interval has passed since this was last so.
    pub(crate) fn is_due(&mut self) -> bool {
        let due = self.last.elapsed() >= self.interval;
        if due {
            self.last = Instant::now();
        }
        due
    }
}

/// The time in which everything is written at once: a program that ends by a signal or `exec` soon after its first step loses
/// no more than an interval. It begins with the session, and again with each of the first tracks: the thread that trains may come
/// seconds later than others. A program that makes threads all the time does not prolong it forever.
pub(crate) struct FirstSeconds {
    until: Instant,
    /// Tracks that may still prolong it.
    tracks_left: usize,
}

impl FirstSeconds {
    /// How often to write.
    pub(crate) const INTERVAL: Duration = Duration::from_millis(2);
    const LENGTH: Duration = Duration::from_secs(1);
    const TRACKS: usize = 32;

    /// Begins at this time, with a session.
    pub(crate) fn new(now: Instant) -> Self {
        Self { until: now + Self::LENGTH, tracks_left: Self::TRACKS }
    }

    /// This many tracks were opened at this time.
    pub(crate) fn extend(&mut self, tracks: usize, now: Instant) {
        if tracks > 0 && self.tracks_left > 0 {
            self.tracks_left = self.tracks_left.saturating_sub(tracks);
            self.until = now + Self::LENGTH;
        }
    }

    /// Whether this time is within it.
    pub(crate) fn contain(&self, now: Instant) -> bool {
        now < self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_seconds_begin_again_with_the_first_tracks_and_not_with_all_later_ones() {
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let mut first = FirstSeconds::new(begin);
        first.extend(0, begin + second);
        assert!(first.contain(begin) && !first.contain(begin + second));
        // A thread an hour, so that none is in the second of another.
        let is_extended = |at: u32| {
            first.extend(1, begin + 3600 * at * second);
            first.contain(begin + 3600 * at * second)
        };
        let extended: Vec<bool> = (1..=100_000).map(is_extended).collect();
        assert!(extended[..FirstSeconds::TRACKS].iter().all(|is_so| *is_so));
        assert!(!extended[FirstSeconds::TRACKS..].contains(&true));
    }
}
