//! Time that a loader takes longer on purpose.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long something is to last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pause {
    /// So long.
    Time(Duration),
    /// So many times the training's usual step: as much on a fast machine as on a slow one.
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

/// How long a step of this training usually takes, once it is known. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct UsualStep(Arc<OnceLock<Duration>>);

impl UsualStep {
    /// Makes it known. What was known before stays.
    pub fn set(&self, step: Duration) {
        // Several ranks measure the same training: the first one's answer is for all.
        let _ = self.0.set(step);
    }

    /// The usual step, where it is known.
    #[must_use]
    pub fn get(&self) -> Option<Duration> {
        self.0.get().copied()
    }
}

/// By how much longer every batch is to take, for trying out what a slow loader does; usually nothing.
#[derive(Debug, Clone, Default)]
pub struct Delay {
    /// Added up.
    pub pauses: Vec<Pause>,
    /// What pauses in steps are multiples of.
    pub usual_step: UsualStep,
}

impl Delay {
    /// By how much longer the next batch is to take.
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
