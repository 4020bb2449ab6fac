//! How long the phases of the training thread usually take, and since when the current one has been running. The training
//! thread writes at the ends of its outermost spans, two stores and a count each; the watching thread reads.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, fence};

use gnntop_probe::after;

/// Most names of phases kept apart; further ones share the last place. Number 0 is the time outside all phases.
const NAMES: usize = 64;
/// Number of bins for durations: four for each power of two.
const LENGTHS: usize = 256;
/// A phase's usual duration is known after this many.
const KNOWN_AFTER: u32 = 20;

/// Whether anybody is watching. Until then nothing is counted.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);
static COUNTS: [[AtomicU32; LENGTHS]; NAMES] = [const { [const { AtomicU32::new(0) }; LENGTHS] }; NAMES];
static NAME: AtomicI32 = AtomicI32::new(0);
static SINCE: AtomicU64 = AtomicU64::new(0);
/// Odd while the two above change.
static VERSION: AtomicU32 = AtomicU32::new(0);

/// The training thread's current phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CurrentPhase {
    /// Number of the phase's name; 0 outside all phases.
    pub(super) name: i32,
    /// Ticks at which it began.
    pub(super) since: u64,
}

/// Starts or stops counting.
pub(super) fn set_watched(is_watched: bool) {
    IS_WATCHED.store(is_watched, Relaxed);
}

/// The training thread begins its outermost span, or ends it if the number is 0.
#[inline]
pub(crate) fn enter(name: i32) {
    if IS_WATCHED.load(Relaxed) {
        change(name, after::ticks());
    }
}

fn change(name: i32, now: u64) {
    let (before, since) = (NAME.load(Relaxed), SINCE.load(Relaxed));
    if since != 0 {
        // Only one thread writes.
        let count = &COUNTS[place(before)][bin(now.saturating_sub(since))];
        count.store(count.load(Relaxed).saturating_add(1), Relaxed);
    }
    let version = VERSION.load(Relaxed);
    VERSION.store(version.wrapping_add(1), Relaxed);
    fence(Release);
    NAME.store(name, Relaxed);
    SINCE.store(now, Relaxed);
    VERSION.store(version.wrapping_add(2), Release);
}

/// The training thread's current phase; `None` before its first span, and while it changes.
pub(super) fn current() -> Option<CurrentPhase> {
    let version = VERSION.load(Acquire);
    let now = CurrentPhase { name: NAME.load(Relaxed), since: SINCE.load(Relaxed) };
    fence(Acquire);
    (version.is_multiple_of(2) && VERSION.load(Relaxed) == version && now.since != 0).then_some(now)
}

/// The 99th percentile of this phase's durations in ticks, rounded up; `None` if too few are known.
pub(super) fn p99(name: i32) -> Option<u64> {
    let counts = COUNTS[place(name)].each_ref().map(|count| u64::from(count.load(Relaxed)));
    let total: u64 = counts.iter().sum();
    if total < u64::from(KNOWN_AFTER) {
        return None;
    }
    let mut seen = 0;
    let at = counts.iter().position(|count| {
        seen += count;
        seen * 100 >= total * 99
    });
    at.map(longest)
}

fn place(name: i32) -> usize {
    usize::try_from(name).unwrap_or(0).min(NAMES - 1)
}

/// The bin of a duration: its highest bit, and the two below it.
fn bin(ticks: u64) -> usize {
    let ticks = ticks.max(4);
    let bit = 63 - ticks.leading_zeros();
    (bit as usize) * 4 + ((ticks >> (bit - 2)) & 3) as usize
}

/// The longest duration in a bin.
fn longest(place: usize) -> u64 {
    let (bit, quarter) = ((place / 4) as u32, (place % 4) as u64);
    let from = |quarter: u64| u128::from(4 + quarter) << bit >> 2;
    u64::try_from(from(quarter + 1) - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_is_within_its_bin() {
        for ticks in (2..64).flat_map(|bit| [1_u64 << bit, (1 << bit) + (1 << (bit - 1)), (1_u64 << bit) - 1]) {
            let ticks = ticks.max(4);
            let longest = longest(bin(ticks));
            assert!(longest >= ticks && longest as f64 <= ticks as f64 * 1.26 + 2.0, "{ticks}: {longest}");
        }
        assert_eq!(bin(u64::MAX), LENGTHS - 1);
    }

    #[test]
    fn p99_is_known_after_enough_phases() {
        // Name numbers that no other test uses.
        let (phase, mut now) = (61, 1_000_000);
        for _ in 0..99 {
            change(phase, now);
            assert_eq!(super::current(), Some(CurrentPhase { name: phase, since: now }));
            change(0, now + 1000);
            now += 5000;
        }
        let p99 = p99(phase).unwrap();
        assert!((1000..1300).contains(&p99), "{p99}");
        assert_eq!(super::p99(60), None);
    }
}
