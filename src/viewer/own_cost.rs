//! What the viewer itself takes from the machine, so that it can be shown on its own screen.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::app::OwnCost;

/// Time between two measurements.
const EVERY: Duration = Duration::from_secs(2);

/// Measures this process from time to time.
pub struct OwnCostMeter {
    at: Instant,
    cpu: Option<Duration>,
}

impl OwnCostMeter {
    /// Starts measuring.
    pub fn start() -> Self {
        Self { at: Instant::now(), cpu: cpu_time() }
    }

    /// The cost since the last measurement, when it is time for one.
    pub fn measure(&mut self, now: Instant) -> Option<OwnCost> {
        let passed = now.saturating_duration_since(self.at);
        if passed < EVERY {
            return None;
        }
        let cpu = cpu_time();
        let used = cpu.zip(self.cpu).map(|(now, before)| now.saturating_sub(before).as_secs_f64());
        let cpu_percent = used.map(|used| 100.0 * used / passed.as_secs_f64());
        (self.at, self.cpu) = (now, cpu);
        Some(OwnCost { cpu_percent, rss_bytes: rss_bytes() })
    }
}

/// CPU time of this process so far.
fn cpu_time() -> Option<Duration> {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).ok()
}

/// Resident memory of this process.
#[cfg(target_os = "linux")]
fn rss_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Resident memory of this process: not known here.
#[cfg(not(target_os = "linux"))]
fn rss_bytes() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_cost_is_measured() {
        let mut meter = OwnCostMeter::start();
        assert_eq!(meter.measure(Instant::now()), None, "not yet");
        let cost = meter.measure(Instant::now() + 2 * EVERY).unwrap();
        assert!(cost.cpu_percent.unwrap() >= 0.0);
        assert!(!cfg!(target_os = "linux") || cost.rss_bytes.unwrap() > 100_000);
    }
}
