//! What is computed again and again while a session is live: its findings, its energy, and what the viewer itself takes from the
//! machine.

use std::time::{Duration, Instant};

use crate::app::{Action, OwnCost};
use crate::platform::process::{cpu_time, rss_bytes};
use crate::report::EnergyWatch;
use gnntop_analysis::energy::Assumptions;
use gnntop_analysis::findings::Watch;
use gnntop_analysis::ranks::Run;

/// Findings and energy of the session that is shown, each as old as it may be.
#[derive(Debug)]
pub struct SessionWatches {
    findings: Watch,
    energy: EnergyWatch,
    /// Whether the source was moved and its new position has not been judged yet.
    has_jumped: bool,
    /// The rank of the last look.
    rank: Option<u32>,
}

impl SessionWatches {
    /// Watches that have seen nothing.
    pub fn new(assumptions: Assumptions) -> Self {
        Self { findings: Watch::new(), energy: EnergyWatch::new(assumptions), has_jumped: false, rank: None }
    }

    /// Another session is shown from now on.
    pub fn reset(&mut self) {
        *self = Self { findings: Watch::new(), energy: self.energy.for_next_session(), has_jumped: false, rank: None };
    }

    /// The source is moved.
    pub fn jump(&mut self) {
        self.has_jumped = true;
    }

    /// Looks if it is time, and at once after a jump in a replay or for another rank.
    pub fn poll(&mut self, run: &Run, is_seeking: bool) -> Vec<Action> {
        self.has_jumped |= self.rank != run.rank();
        self.rank = run.rank();
        let has_arrived = self.has_jumped && !is_seeking;
        self.has_jumped &= !has_arrived;
        let (judgement, told) = match has_arrived {
            true => (Some(self.findings.check_now(run)), Some(self.energy.refresh(run))),
            false => (self.findings.update(run), self.energy.update(run)),
        };
        let judged = judgement.map(|judgement| Action::FindingsUpdated(Box::new(judgement)));
        let told = told.map(|told| Action::EnergyUpdated(Box::new(told)));
        judged.into_iter().chain(told).collect()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_cost_is_measured() {
        let mut meter = OwnCostMeter::start();
        assert_eq!(meter.measure(Instant::now()), None, "not yet");
        let cost = meter.measure(Instant::now() + 2 * EVERY).unwrap();
        assert!(!cfg!(unix) || cost.cpu_percent.unwrap() >= 0.0);
        assert!(!cfg!(target_os = "linux") || cost.rss_bytes.unwrap() > 100_000);
    }
}
