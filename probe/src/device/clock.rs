//! Maps a device's clock to the host's, without ever waiting for the device.
//!
//! The device reached a mark after the host began to put it on the stream, and before the host saw that it was reached. So
//! each mark bounds the offset between the clocks. The bounds of all marks together are narrow, because some marks are
//! reached at once (an idle device) and some are seen at once (right after the program itself has waited). Bounds widen by
//! the possible drift until the next mark narrows them: no mark is special, and nothing needs anchoring.
//!
//! Drift is bounded by [`MAX_RATE_ERROR`] at first, then measured over up to a minute. Times are mapped along a line that
//! stays near the middle of the bounds. The line bends but never breaks, so order and, within one part in a thousand,
//! lengths are the device's. The error is half the width of the bounds plus the line's distance from their middle.

use std::collections::VecDeque;

/// Largest assumed difference between the clocks' rates: crystals differ by some millionths.
const MAX_RATE_ERROR: f64 = 100e-6;
/// Even measured drift changes by this much with temperature.
const RATE_ERROR_LEAST: f64 = 1e-6;
/// Drift is measured over this many points, a second or more apart.
const HISTORY: usize = 64;
const HISTORY_EVERY_NS: f64 = 1e9;
/// How often, how far ahead and how steeply at most the line is bent towards the middle.
const BEND_EVERY_NS: f64 = 0.25e9;
const BEND_HORIZON_NS: f64 = 1e9;
const MAX_BEND: f64 = 1e-3;
/// Number of bends kept: times up to eight seconds back keep their order exactly.
const BENDS: usize = 32;
/// A larger move of the clock is a jump, and restarts the line.
const JUMP_NS: f64 = 1e6;

/// Bounds of the offset, host minus device, at one time of the device. Nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bounds {
    at: f64,
    low: f64,
    high: f64,
}

impl Bounds {
    fn middle(&self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    fn half(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// A piece of the line: the offset from `at` on.
#[derive(Clone, Copy, Debug)]
struct Piece {
    at: f64,
    offset: f64,
    slope: f64,
}

impl Piece {
    fn offset(&self, device_ns: f64) -> f64 {
        self.offset + (device_ns - self.at) * self.slope
    }
}

/// A time on the host's clock, and its error in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapped {
    pub(super) ns: u64,
    pub(super) error_ns: u64,
}

/// See the [module](self). Device times may have any origin.
#[derive(Debug)]
pub(crate) struct DeviceClock {
    /// The origin of host times in this struct, so that 64-bit floats hold nanoseconds.
    base_ns: u64,
    resolution_ns: f64,
    bounds: Option<Bounds>,
    rate: f64,
    rate_error: f64,
    history: VecDeque<Bounds>,
    line: VecDeque<Piece>,
    restarts: u64,
}

impl DeviceClock {
    /// A clock of which only the resolution is known.
    pub(super) fn new(resolution_ns: f64) -> Self {
        Self {
            base_ns: 0,
            resolution_ns,
            bounds: None,
            rate: 0.0,
            rate_error: MAX_RATE_ERROR,
            history: VecDeque::with_capacity(HISTORY),
            line: VecDeque::with_capacity(BENDS),
            restarts: 0,
        }
    }

    /// Notes that the device reached its time `device_ns` between two host times.
    pub(super) fn observe(&mut self, device_ns: f64, after_ns: u64, before_ns: u64) {
        if self.bounds.is_none() {
            self.base_ns = after_ns;
        }
        let host = |ns: u64| ns as i128 as f64 - self.base_ns as i128 as f64;
        let new = Bounds {
            at: device_ns,
            low: host(after_ns) - device_ns - self.resolution_ns,
            high: host(before_ns.max(after_ns)) - device_ns + self.resolution_ns,
        };
        let at = self.bounds.map_or(device_ns, |known| known.at.max(device_ns));
        let new = self.moved(new, at);
        let known = self.bounds.map_or(new, |known| self.moved(known, at));
        let both = Bounds { at, low: known.low.max(new.low), high: known.high.min(new.high) };
        if both.low <= both.high {
            self.bounds = Some(both);
            self.measure_rate(both);
        } else {
            self.restart(new);
        }
        self.bend();
    }

    /// Half the width of the offset's bounds, in nanoseconds; `None` before the first mark.
    pub(super) fn uncertainty_ns(&self) -> Option<f64> {
        self.bounds.map(|bounds| bounds.half())
    }

    /// How often an observation contradicted the assumptions: a clock that stepped, or drifts more than it may.
    #[cfg(test)]
    fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Maps a time of the device to the host's clock; 0 with no error before the first mark.
    pub(super) fn map(&self, device_ns: f64) -> Mapped {
        let Some(bounds) = self.bounds else { return Mapped { ns: 0, error_ns: 0 } };
        let offset = self.line_at(device_ns);
        let there = self.moved(bounds, device_ns);
        let error = there.half() + (offset - there.middle()).abs() + self.resolution_ns;
        let ns = self.base_ns.saturating_add_signed((device_ns + offset).round() as i64);
        Mapped { ns, error_ns: error.ceil().max(0.0) as u64 }
    }

    fn line_at(&self, device_ns: f64) -> f64 {
        let piece = self.line.iter().rev().find(|piece| piece.at <= device_ns).or(self.line.front());
        piece.map_or(0.0, |piece| piece.offset(device_ns))
    }

    /// Moves bounds from their time to another: drift shifts them, and its uncertainty widens them.
    fn moved(&self, bounds: Bounds, to: f64) -> Bounds {
        let by = to - bounds.at;
        let (drift, wider) = (by * self.rate, by.abs() * self.rate_error);
        Bounds { at: to, low: bounds.low + drift - wider, high: bounds.high + drift + wider }
    }

    fn measure_rate(&mut self, now: Bounds) {
        if self.history.back().is_some_and(|last| now.at - last.at < HISTORY_EVERY_NS) {
            return;
        }
        if let Some(first) = self.history.front() {
            let over = now.at - first.at;
            let (low, high) = ((now.low - first.high) / over, (now.high - first.low) / over);
            let (low, high) = (low.max(-MAX_RATE_ERROR), high.min(MAX_RATE_ERROR));
            if low <= high {
                self.rate = f64::midpoint(low, high);
                self.rate_error = ((high - low) / 2.0).max(RATE_ERROR_LEAST);
            }
        }
        if self.history.len() >= HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(now);
    }

    fn restart(&mut self, bounds: Bounds) {
        self.restarts += 1;
        (self.rate, self.rate_error) = (0.0, MAX_RATE_ERROR);
        self.history.clear();
        self.bounds = Some(bounds);
        if (self.line_at(bounds.at) - bounds.middle()).abs() > JUMP_NS {
            self.line.clear();
        }
    }

    /// Aims the line at the middle of the bounds.
    fn bend(&mut self) {
        let Some(bounds) = self.bounds else { return };
        let Some(last) = self.line.back() else {
            self.line.push_back(Piece { at: bounds.at, offset: bounds.middle(), slope: self.rate });
            return;
        };
        if bounds.at - last.at < BEND_EVERY_NS {
            return;
        }
        let offset = last.offset(bounds.at);
        let towards = ((bounds.middle() - offset) / BEND_HORIZON_NS).clamp(-MAX_BEND, MAX_BEND);
        if self.line.len() >= BENDS {
            self.line.pop_front();
        }
        self.line.push_back(Piece { at: bounds.at, offset, slope: self.rate + towards });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START_NS: u64 = 1 << 50;

    /// A device whose clock starts at some host time and drifts.
    #[derive(Clone, Copy, Debug)]
    struct Device {
        drift: f64,
        wobble: f64,
    }

    impl Device {
        /// The device's time at a time of the host after its start.
        fn at(self, host_ns: u64) -> f64 {
            let t = host_ns as f64;
            // Its rate changes as a machine warms up: by `wobble`, over a minute.
            t * (1.0 + self.drift) + self.wobble * t * (t / 60e9).min(1.0) / 2.0
        }
    }

    /// Marks reached at these host times, some seen late or submitted early, in order.
    fn run(device: Device, gaps: &[(u64, u64, u64)]) -> (DeviceClock, Vec<(u64, Mapped)>) {
        let mut clock = DeviceClock::new(500.0);
        let (mut t, mut mapped) = (0, Vec::new());
        for &(gap, early, late) in gaps {
            t += gap;
            let device_ns = (device.at(t) / 500.0).round() * 500.0;
            clock.observe(device_ns, START_NS + t.saturating_sub(early), START_NS + t + late);
            mapped.push((t, clock.map(device_ns)));
        }
        (clock, mapped)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn times_are_in_order_and_within_the_stated_error(
            drift in -80e-6..80e-6f64,
            wobble in -1e-6..1e-6f64,
            gaps in proptest::collection::vec((1_000u64..40_000_000, 1_000u64..30_000_000, 500u64..25_000_000), 1..600),
        ) {
            let (clock, mapped) = run(Device { drift, wobble }, &gaps);
            prop_assert_eq!(clock.restarts(), 0);
            for pair in mapped.windows(2) {
                prop_assert!(pair[0].1.ns <= pair[1].1.ns, "{:?}", pair);
            }
            for (t, Mapped { ns, error_ns }) in mapped {
                prop_assert!(ns.abs_diff(START_NS + t) <= error_ns, "{} off, {error_ns} stated", ns.abs_diff(START_NS + t));
            }
        }
    }

    #[test]
    fn promptly_seen_marks_give_exact_times() {
        let device = Device { drift: 37e-6, wobble: 0.0 };
        // One in fifty is reached 3 µs after it was submitted and seen 5 µs later, as after reading a loss.
        let gaps =
            (0..6000).map(|i| if i % 50 == 0 { (10_000_000, 3_000, 5_000) } else { (10_000_000, 900_000, 20_000_000) });
        let gaps: Vec<_> = gaps.collect();
        let (_, mapped) = run(device, &gaps);
        let worst = mapped.iter().skip(3000).map(|(_, m)| m.error_ns).max().unwrap();
        assert!(worst < 15_000, "{worst} ns stated after half a minute");
    }

    #[test]
    fn a_clock_that_steps_is_followed() {
        let mut clock = DeviceClock::new(500.0);
        let mut now = 0;
        for step in 0..400u64 {
            now += 10_000_000;
            // The device's clock jumps forward by a second in the middle.
            let device_ns = now as f64 + if step >= 200 { 1e9 } else { 0.0 };
            clock.observe(device_ns, START_NS + now - 4_000, START_NS + now + 4_000);
            let mapped = clock.map(device_ns);
            assert!(mapped.ns.abs_diff(START_NS + now) <= mapped.error_ns, "step {step}: {mapped:?}");
        }
        assert_eq!(clock.restarts(), 1);
    }

    #[test]
    fn map_before_first_mark_has_no_bounds() {
        let clock = DeviceClock::new(500.0);
        assert_eq!((clock.map(5.0), clock.uncertainty_ns()), (Mapped { ns: 0, error_ns: 0 }, None));
    }

    #[test]
    fn absurd_device_times_are_harmless() {
        let mut clock = DeviceClock::new(500.0);
        for device_ns in [0.0, f64::MAX, -f64::MAX, f64::INFINITY, f64::NAN, 1e300] {
            clock.observe(device_ns, u64::MAX, 0);
            clock.observe(device_ns, 0, u64::MAX);
            clock.map(device_ns);
        }
    }
}
