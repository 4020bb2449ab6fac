//! Time that a loader loses on purpose.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long a pause lasts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pause {
    /// This long.
    Time(Duration),
    /// A multiple of the run's usual step: the same share on fast and slow machines.
    Steps(f64),
}

impl Pause {
    /// The time; `None` while it depends on a usual step that is not known yet.
    #[must_use]
    pub fn time(self, usual: &UsualStep) -> Option<Duration> {
        match self {
            Self::Time(time) => Some(time),
            Self::Steps(steps) => usual.get().map(|step| step.mul_f64(steps)),
        }
    }
}

/// How long a step of this run usually takes, once known. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct UsualStep(Arc<OnceLock<Duration>>);

impl UsualStep {
    /// Sets it, unless it is set already.
    pub fn set(&self, step: Duration) {
        // Several ranks measure the same run: the first one's answer is for all.
        let _ = self.0.set(step);
    }

    /// The usual step, if known.
    #[must_use]
    pub fn get(&self) -> Option<Duration> {
        self.0.get().copied()
    }
}

/// How much longer every batch takes, to try out a slow loader; usually zero.
#[derive(Debug, Clone, Default)]
pub struct Delay {
    /// The pauses, which add up.
    pub pauses: Vec<Pause>,
    /// The step that pauses in steps are multiples of.
    pub usual_step: UsualStep,
}

impl Delay {
    /// How much longer the next batch takes.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.pauses.iter().filter_map(|pause| pause.time(&self.usual_step)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_in_steps_begins_when_the_usual_step_is_known() {
        let fixed = Pause::Time(Duration::from_millis(5));
        let delay = Delay { pauses: vec![fixed, Pause::Steps(2.5)], ..Delay::default() };
        assert_eq!(delay.time(), Duration::from_millis(5));
        delay.usual_step.clone().set(Duration::from_millis(10));
        assert_eq!(delay.time(), Duration::from_millis(30));
        delay.usual_step.set(Duration::from_millis(99));
        assert_eq!(delay.time(), Duration::from_millis(30), "the first answer stays");
    }
}
