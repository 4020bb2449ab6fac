//! A generated training with noise of its own: what each step does is planned, see [`gnntop_fixtures::planned`].

use gnntop_fixtures::planned::{Reading, StepPlan, planned_run};

use super::random::Random;

/// A generated training.
pub struct Training {
    pub steps: u64,
    pub seed: u64,
    /// By how much phases and gaps vary, as a share of themselves.
    pub spread: f64,
    /// How often sensors are read.
    pub reading_ms: f64,
    pub readings: Vec<Reading>,
}

impl Training {
    pub fn new(steps: u64, seed: u64) -> Self {
        Self { steps, seed, spread: 0.02, reading_ms: 93.0, readings: Vec::new() }
    }

    pub fn spread(self, spread: f64) -> Self {
        Self { spread, ..self }
    }

    pub fn reads(mut self, reading: Reading) -> Self {
        self.readings.push(reading);
        self
    }

    /// The stream of steps 1 to `steps`, each as planned.
    pub fn stream(self, plan: impl FnMut(u64, &mut Random) -> StepPlan) -> Vec<u8> {
        let mut random = Random::new(self.seed);
        let vary = |random: &mut Random, ns: u64, _| random.about(ns as f64, self.spread) as u64;
        planned_run((self.steps, ns(self.reading_ms), &self.readings), &mut random, vary, plan).bytes()
    }
}

pub fn ns(ms: f64) -> u64 {
    (ms * 1e6) as u64
}
