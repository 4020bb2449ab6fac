//! The cost of a run's restarts: time in which it did nothing, and steps done twice.

use crate::store::{Attempt, Store};

/// Time between two starts of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When the last step before it ended, or when the first start began if that had no step.
    pub from_ns: u64,
    /// When the first step after it began; the newest time seen if there is none yet.
    pub to_ns: u64,
    /// Whether a step has begun since.
    pub is_over: bool,
    /// Ordinal of the first step after it.
    pub ordinal: u64,
    /// Steps after it that had been done before; `None` if the program does not report where it resumed.
    pub repeated_steps: Option<u64>,
    /// Approximate time that repeating them took.
    pub repeated_ns: u64,
}

impl Outage {
    /// Time from the last step before it to the first new step after it, as far as that is known, in nanoseconds.
    pub fn lost_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns).saturating_add(self.repeated_ns)
    }
}

/// The restarts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restarts {
    /// Number of restarts.
    pub count: u64,
    /// The outages, oldest first. Starts without a step are inside them.
    pub outages: Vec<Outage>,
    /// Total time lost to them.
    pub lost_ns: u64,
    /// Steps done twice; `None` if the program does not report where it resumed after one or more of them.
    pub repeated_steps: Option<u64>,
}

impl Restarts {
    /// The outage that lost most time.
    pub fn longest(&self) -> Option<&Outage> {
        self.outages.iter().max_by_key(|outage| outage.lost_ns())
    }
}

impl Store {
    /// What restarts have cost; `None` for a run that was started only once.
    pub fn restarts(&self) -> Option<Restarts> {
        let attempts = self.attempts().all();
        let first = attempts.first()?;
        let count = self.attempts().count() - 1;
        let mut end_ns = first.last_step_ns.unwrap_or(first.start_ns);
        // Steps of the run done so far; unknown if its beginning is.
        let is_whole = self.attempts().left_out() == 0;
        let mut done =
            is_whole.then(|| first.resumed.unwrap_or(0)).map(|before| before + self.attempt_steps(&attempts, 0));
        let mut outages = Vec::new();
        for (at, attempt) in attempts.iter().enumerate().skip(1) {
            let Some(start_ns) = attempt.first_step_ns else { continue };
            let repeated_steps = done.zip(attempt.resumed).map(|(done, resumed)| done.saturating_sub(resumed));
            let (steps, ordinal) = (self.attempt_steps(&attempts, at), attempt.first_ordinal);
            let repeated_ns = self.first_steps_ns(attempt, repeated_steps.unwrap_or(0).min(steps));
            outages.push(Outage {
                from_ns: end_ns,
                to_ns: start_ns,
                is_over: true,
                ordinal,
                repeated_steps: repeated_steps.map(|repeated| repeated.min(steps)),
                repeated_ns,
            });
            end_ns = attempt.last_step_ns.unwrap_or(start_ns);
            done = attempt.resumed.map(|resumed| resumed.saturating_add(steps));
        }
        if let Some(newest) = attempts.last().filter(|attempt| attempt.first_step_ns.is_none()) {
            let (to_ns, ordinal) = (self.now_ns(), newest.first_ordinal);
            // None are repeated yet.
            let repeated_steps = Some(0);
            outages.push(Outage { from_ns: end_ns, to_ns, is_over: false, ordinal, repeated_steps, repeated_ns: 0 });
        }
        let lost_ns = outages.iter().map(Outage::lost_ns).fold(0, u64::saturating_add);
        let repeated_steps = outages.iter().map(|outage| outage.repeated_steps).sum();
        Some(Restarts { count, outages, lost_ns, repeated_steps })
    }

    /// Steps of one start.
    fn attempt_steps(&self, attempts: &[Attempt], at: usize) -> u64 {
        let end = attempts.get(at + 1).map_or(self.steps().total(), |next| next.first_ordinal);
        end.saturating_sub(attempts[at].first_ordinal)
    }

    /// Time of the first steps of a start.
    fn first_steps_ns(&self, attempt: &Attempt, steps: u64) -> u64 {
        let last = steps.checked_sub(1).and_then(|back| self.steps().known_row(attempt.first_ordinal + back));
        last.zip(attempt.first_step_ns).map_or(0, |(row, start_ns)| row.end_ns().saturating_sub(start_ns))
    }
}
