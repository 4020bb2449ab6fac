//! The positions of steps on the recording's clock, one after the other, so that no table has to be held in memory.

use super::rows::MeasuredStep;
use super::writer::START_NS;

/// Lays one step after the other.
pub(super) struct StepLayout {
    /// Time stamp of [`START_NS`]; `None` without time stamps.
    zero_ns: Option<f64>,
    /// End of the step before.
    t_ns: f64,
}

impl StepLayout {
    pub(super) fn new(zero_ns: Option<f64>) -> Self {
        Self { zero_ns, t_ns: START_NS as f64 }
    }

    /// Start and end of the next step.
    pub(super) fn place(&mut self, step: &MeasuredStep) -> (u64, u64) {
        let earliest_ns = self.t_ns;
        let end_ns = match (step.end_ns, self.zero_ns) {
            (Some(end_ns), Some(zero_ns)) => START_NS as f64 + end_ns - zero_ns,
            _ => earliest_ns + step.lead_ns(),
        };
        // Where a time stamp and a duration disagree, the step before keeps its end.
        let start_ns = (end_ns - step.duration_ns).max(earliest_ns).min(end_ns);
        self.t_ns = end_ns;
        (start_ns as u64, end_ns as u64)
    }
}
