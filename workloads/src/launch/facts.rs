//! What a viewer needs to know about a rank besides its spans: its schedule, its blocks, the size of the training set.
//!
//! A long session keeps only its newest part, so these are counters that are repeated.

use gnntop_probe::{NameKind, NameRef, Reported, counter, intern};

/// Steps between two repetitions: negligible beside what the steps themselves publish.
const EVERY: u64 = 64;

/// What a rank reports about itself.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    all: Vec<(NameRef, f64)>,
    steps: u64,
}

impl Facts {
    /// Adds a number.
    #[must_use]
    pub fn with(mut self, what: Reported, value: f64) -> Self {
        self.all.push((intern(NameKind::Reported(what), what.text()), value));
        self
    }

    /// Called in every step, on a thread that has its track. Publishes all in the first step and in every 64th after
    /// it.
    pub fn publish(&mut self) {
        if self.steps.is_multiple_of(EVERY) {
            self.all.iter().for_each(|(name, value)| counter(*name, *value));
        }
        self.steps += 1;
    }
}
