//! Time. Program threads read the processor's invariant time-stamp counter and store raw ticks. The drain thread later
//! converts ticks to nanoseconds of `CLOCK_MONOTONIC`, where it costs the program nothing.
//!
//! `quanta` reads the counter: it checks that the counter is invariant, falls back to `CLOCK_MONOTONIC` if it is not, and
//! reads without a serialising instruction. (`fastant` does so on x86 Linux only, and scales every read.)

use std::time::Instant;

use gnntop_wire::Anchor;
use quanta::Clock;
use rustix::time::{ClockId, clock_gettime};

/// After this long the measured tick rate is more exact than quanta's.
const MIN_BASE_TICKS_NS: u64 = 200_000_000;

/// A clock that is the same for this many reads is frozen.
const MOST_READS: u32 = 1_000_000;

/// What counts ticks; `None` where the system's clock is frozen, as under `faketime`: quanta would never have measured its rate.
pub(crate) fn tick_counter() -> Option<Clock> {
    // Asked of the C library, as quanta does.
    let begin = Instant::now();
    let moves = (0..MOST_READS).any(|_| Instant::now() != begin);
    moves.then(Clock::new)
}

/// One instant on all clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockReading {
    pub(crate) ticks: u64,
    pub(crate) anchor: Anchor,
}

/// Reads all clocks at once, between two reads of the tick counter in close succession.
pub(crate) fn read(clock: &Clock) -> ClockReading {
    let mut best: Option<(u64, ClockReading)> = None;
    for _ in 0..3 {
        let before = clock.raw();
        let monotonic_ns = system_ns(ClockId::Monotonic);
        let after = clock.raw();
        let apart = after.saturating_sub(before);
        if best.is_none_or(|(least, _)| apart < least) {
            let anchor = Anchor { monotonic_ns, ..Anchor::default() };
            best = Some((apart, ClockReading { ticks: before + apart / 2, anchor }));
        }
    }
    let mut reading = best.map_or(ClockReading { ticks: clock.raw(), anchor: Anchor::default() }, |(_, r)| r);
    let since = system_ns(ClockId::Monotonic).saturating_sub(reading.anchor.monotonic_ns);
    reading.anchor.wall_ns = system_ns(ClockId::Realtime).saturating_sub(since);
    reading.anchor.boot_ns = system_ns(BOOT_CLOCK).saturating_sub(since);
    reading
}

#[cfg(target_os = "linux")]
const BOOT_CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const BOOT_CLOCK: ClockId = ClockId::Monotonic;

/// A system clock, in nanoseconds.
pub(crate) fn system_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// The rate that quanta measured when it was set up, in nanoseconds per tick.
pub(crate) fn quoted_rate(clock: &Clock) -> f64 {
    const MANY: u64 = 1 << 40;
    clock.delta_as_nanos(0, MANY) as f64 / MANY as f64
}

/// Maps ticks to nanoseconds of `CLOCK_MONOTONIC`.
///
/// A straight line whose slope is the rate measured since the start. Each [`ClockMap::correct`] bends it a little, so that
/// it meets the system clock a second later. It never jumps, so spans keep their order and length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockMap {
    first: ClockReading,
    base_ticks: u64,
    base_ns: f64,
    ns_per_tick: f64,
}

impl ClockMap {
    pub(crate) fn new(ns_per_tick: f64, first: ClockReading) -> Self {
        Self { first, base_ticks: first.ticks, base_ns: 0.0, ns_per_tick }
    }

    /// Nanoseconds of `CLOCK_MONOTONIC` at `ticks`.
    #[inline]
    pub(crate) fn ns(&self, ticks: u64) -> u64 {
        let since_first = self.since_first_ns(ticks);
        self.first.anchor.monotonic_ns.saturating_add_signed(since_first as i64)
    }

    #[inline]
    fn since_first_ns(&self, ticks: u64) -> f64 {
        let ticks = ticks.wrapping_sub(self.base_ticks) as i64;
        self.base_ns + ticks as f64 * self.ns_per_tick
    }

    /// Bends the line towards the system clock, to meet it `horizon_ns` from now.
    pub(crate) fn correct(&mut self, now: ClockReading, horizon_ns: u64) {
        let elapsed_ns = now.anchor.monotonic_ns.saturating_sub(self.first.anchor.monotonic_ns);
        let elapsed_ticks = now.ticks.saturating_sub(self.first.ticks);
        if elapsed_ns < MIN_BASE_TICKS_NS || elapsed_ticks == 0 || horizon_ns == 0 {
            return;
        }
        let rate = elapsed_ns as f64 / elapsed_ticks as f64;
        let here = self.since_first_ns(now.ticks);
        let error = elapsed_ns as f64 - here;
        // At most 1 in 1000 faster or slower: a suspended machine must not bend time backwards.
        let bend = (error / horizon_ns as f64).clamp(-1e-3, 1e-3);
        self.base_ns = here;
        self.base_ticks = now.ticks;
        self.ns_per_tick = rate * (1.0 + bend);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(ticks: u64, monotonic_ns: u64) -> ClockReading {
        ClockReading { ticks, anchor: Anchor { monotonic_ns, ..Anchor::default() } }
    }

    #[test]
    fn clock_map_converges_without_jump() {
        // The quoted rate is 1 ns a tick; the counter really runs at 0.5 ns a tick, from 7 s on.
        let truth = |ticks: u64| 7_000_000_000 + ticks / 2;
        let mut map = ClockMap::new(1.0, reading(0, truth(0)));
        let second = 2_000_000_000;
        for i in 1..=2000 {
            let now = i * second;
            let before = map.ns(now);
            map.correct(reading(now, truth(now)), 1_000_000_000);
            assert!(map.ns(now).abs_diff(before) <= 1, "a jump at {i}");
        }
        let end = 2000 * second;
        assert!(map.ns(end).abs_diff(truth(end)) < 1000, "{} off", map.ns(end).abs_diff(truth(end)));
    }

    #[test]
    fn clock_map_agrees_with_system_clock() {
        let clock = Clock::new();
        let map = ClockMap::new(quoted_rate(&clock), read(&clock));
        std::thread::sleep(std::time::Duration::from_millis(5));
        let now = read(&clock);
        assert!(map.ns(now.ticks).abs_diff(now.anchor.monotonic_ns) < 1_000_000);
        assert!(now.anchor.wall_ns > now.anchor.monotonic_ns / 2 && now.anchor.boot_ns > 0);
    }
}
