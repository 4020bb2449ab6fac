//! A part of a core that work may take: each piece of it is paid for by a rest that is as many times as long.

use std::time::{Duration, Instant};

/// A rest of up to this long that was not needed pays for one piece of work.
const CREDIT: Duration = Duration::from_secs(1);

/// When work may be done next.
#[derive(Debug)]
pub(super) struct Budget {
    /// A piece of work is paid for by this many times the CPU time that it took.
    parts: u32,
    /// The next piece is never before this.
    shortest_rest: Duration,
    next: Option<Instant>,
}

impl Budget {
    /// One part in `parts` of a core.
    pub(super) fn new(parts: u32, shortest_rest: Duration) -> Self {
        Self { parts, shortest_rest, next: None }
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next.is_none_or(|next| now >= next)
    }

    /// Does a piece of work and pays for it. Only CPU time counts: to wait for a file system costs nobody anything.
    pub(super) fn spend<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let before = cpu_time();
        let done = work();
        self.pay(cpu_time().saturating_sub(before), Instant::now());
        done
    }

    fn pay(&mut self, cost: Duration, now: Instant) {
        let oldest = now.checked_sub(CREDIT).unwrap_or(now);
        let from = self.next.map_or(now, |next| next.max(oldest));
        self.next = Some((from + cost * self.parts).max(now + self.shortest_rest));
    }
}

/// CPU time of this thread so far.
#[cfg(unix)]
fn cpu_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Time so far: that of a thread is not known here.
#[cfg(not(unix))]
fn cpu_time() -> Duration {
    Duration::from_nanos(gnntop_sensors::monotonic_ns())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn work_is_paid_for_in_proportion() {
        let begin = Instant::now() + CREDIT * 2;
        let mut budget = Budget::new(100, Duration::ZERO);
        assert!(budget.is_due(begin));
        budget.pay(MS, begin);
        assert!(!budget.is_due(begin + MS * 99) && budget.is_due(begin + MS * 100));
        let mut budget = Budget::new(100, CREDIT);
        budget.pay(MS, begin);
        assert!(!budget.is_due(begin + MS * 999) && budget.is_due(begin + CREDIT), "but never more often");
        assert_eq!(budget.spend(|| 7), 7);
    }

    #[test]
    fn a_rest_that_was_not_needed_pays_for_one_piece() {
        let begin = Instant::now() + CREDIT * 2;
        let mut budget = Budget::new(100, Duration::ZERO);
        budget.pay(Duration::ZERO, begin);
        let mut pieces = 0;
        let later = begin + CREDIT * 60;
        while budget.is_due(later) {
            budget.pay(MS, later);
            pieces += 1;
        }
        assert_eq!(pieces, 2, "that one and the usual one, however long the rest was");
    }
}
