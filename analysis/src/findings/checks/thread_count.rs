//! The threads that a program computes with, beside the cores that it may use.

use crate::findings::evidence::StepEvidence;
use crate::findings::hardware;

/// There are too many threads from this many times the cores.
const MANY: f64 = 1.5;

/// Both numbers.
#[derive(Clone, Copy)]
pub(super) struct ThreadCount {
    pub threads: u64,
    /// The machine's, or those that it is allotted.
    pub cores: f64,
}

impl ThreadCount {
    /// `None` if one is not recorded.
    pub(super) fn find(evidence: &StepEvidence<'_>) -> Option<Self> {
        let machine = evidence.store.hardware().cores().len() as f64;
        let allotted = hardware::allotted_cores(evidence.store);
        let cores = [Some(machine).filter(|cores| *cores > 0.0), allotted].into_iter().flatten().reduce(f64::min)?;
        Some(Self { threads: evidence.store.session().compute_threads()?, cores })
    }

    /// Whether there are more threads than cores, so that they wait for each other.
    pub(super) fn are_many(&self) -> bool {
        self.threads > 1 && self.threads as f64 >= MANY * self.cores
    }

    /// `2 cores`, `0.5 cores`.
    pub(super) fn cores_in_words(cores: f64) -> String {
        match cores {
            1.0 => "1 core".to_owned(),
            whole if whole.fract() == 0.0 => format!("{whole:.0} cores"),
            part => format!("{part:.1} cores"),
        }
    }
}
