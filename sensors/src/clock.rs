//! The clock every reading is stamped with.
//!
//! One clock for all sensors and for the spans of the observed program, so that a reading can be matched with its step.
//! On Linux and macOS that is `CLOCK_MONOTONIC`, which `Instant` and Python's `time.monotonic_ns` also read.

/// Nanoseconds of `CLOCK_MONOTONIC` (since boot, suspend not counted on Linux).
#[cfg(unix)]
pub fn monotonic_ns() -> u64 {
    use rustix::time::{ClockId, clock_gettime};
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, nanoseconds) = (u64::try_from(now.tv_sec), u64::try_from(now.tv_nsec));
    seconds.unwrap_or(0).saturating_mul(1_000_000_000).saturating_add(nanoseconds.unwrap_or(0))
}

/// Nanoseconds of a monotonic clock that starts when it is first read in this process.
#[cfg(not(unix))]
pub fn monotonic_ns() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Runs `read` and returns its result with the time halfway through the call: the stamp with the smallest possible
/// error, whenever inside the call the value was taken.
pub(crate) fn stamped<T>(read: impl FnOnce() -> T) -> (u64, T) {
    let before_ns = monotonic_ns();
    let result = read();
    let after_ns = monotonic_ns();
    (before_ns + after_ns.saturating_sub(before_ns) / 2, result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_ns_never_decreases() {
        let mut last_ns = monotonic_ns();
        assert!(last_ns > 0);
        for _ in 0..10_000 {
            let now_ns = monotonic_ns();
            assert!(now_ns >= last_ns);
            last_ns = now_ns;
        }
    }

    #[test]
    fn stamped_time_is_within_the_call() {
        let before_ns = monotonic_ns();
        let (t_ns, inner_ns) = stamped(monotonic_ns);
        let after_ns = monotonic_ns();
        assert!(before_ns <= t_ns && t_ns <= after_ns);
        assert!(before_ns <= inner_ns && inner_ns <= after_ns);
    }
}
