//! What the system counts for a thread: page faults and context switches.

use quanta::Clock;

/// Shortest time between two queries of a thread: 4,000 calls a second take a tenth of a percent of its time. The call
/// takes longer than the rest of a step's record. Shorter steps share an answer.
const QUERY_EVERY_NS: u64 = 250_000;

/// A thread's counts at some moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UsageSnapshot {
    /// The moment, in ticks.
    at: u64,
    totals: ThreadTotals,
}

impl UsageSnapshot {
    /// The calling thread's counts now; `None` if the system does not count by thread.
    pub(crate) fn now(clock: &Clock) -> Option<Self> {
        Some(Self { at: clock.raw(), totals: thread_totals()? })
    }

    /// The counts at the end of a step, and the difference since `self`, packed as in [`ThreadTotals::since`]; `None` if too soon.
    pub(crate) fn at_step_end(self, end: u64, clock: &Clock) -> Option<(Self, [u64; 2])> {
        if clock.delta_as_nanos(self.at, end) < QUERY_EVERY_NS {
            return None;
        }
        let totals = thread_totals()?;
        Some((Self { at: end, totals }, totals.since(self.totals)))
    }
}

/// A thread's totals since its start.
#[derive(Clone, Copy, Debug, Default)]
struct ThreadTotals {
    minor_faults: u64,
    major_faults: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
}

impl ThreadTotals {
    /// Differences from `before`, packed: minor and major faults, voluntary and involuntary switches, each pair in the high
    /// and low half.
    fn since(self, before: Self) -> [u64; 2] {
        let difference = |now: u64, then: u64| now.saturating_sub(then).min(u64::from(u32::MAX));
        let pack = |high: u64, low: u64| high << 32 | low;
        [
            pack(
                difference(self.minor_faults, before.minor_faults),
                difference(self.major_faults, before.major_faults),
            ),
            pack(
                difference(self.voluntary_switches, before.voluntary_switches),
                difference(self.involuntary_switches, before.involuntary_switches),
            ),
        ]
    }
}

/// The calling thread's totals; `None` if the system does not count by thread.
#[cfg(target_os = "linux")]
fn thread_totals() -> Option<ThreadTotals> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: `usage` is a valid place for the result, and is only read if the call reports success.
    let usage = unsafe {
        if libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) != 0 {
            return None;
        }
        usage.assume_init()
    };
    Some(ThreadTotals {
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
    })
}

#[cfg(not(target_os = "linux"))]
fn thread_totals() -> Option<ThreadTotals> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn thread_totals_count_page_faults() {
        let clock = Clock::new();
        let before = UsageSnapshot::now(&clock).unwrap();
        let fresh = vec![1u8; 64 << 20];
        assert_eq!(fresh[fresh.len() / 2], 1);
        std::thread::sleep(std::time::Duration::from_millis(1));
        let (after, [faults, switches]) = before.at_step_end(clock.raw(), &clock).unwrap();
        assert!(faults >> 32 > 0, "minor faults");
        assert!(switches >> 32 > 0, "voluntary switches");
        assert!(after.at_step_end(after.at + 1, &clock).is_none(), "the system is not asked again so soon");
    }
}
