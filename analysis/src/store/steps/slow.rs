//! Slow steps from before the kept ones: the publisher keeps the slowest of each hour, with their spans.

use gnntop_wire::Span;

use super::reduced_steps::StoredStep;
use super::step_row::StepRow;

/// Most slow steps kept: 100 an hour for three weeks.
const MAX_SLOW_STEPS: usize = 1 << 16;

/// One slow step.
#[derive(Clone, Debug)]
pub struct PastSlowStep {
    step: StoredStep,
    spans: Box<[Span]>,
}

impl PastSlowStep {
    pub(in crate::store) fn new(step: StoredStep, spans: &[Span]) -> Self {
        Self { step, spans: spans.into() }
    }

    /// Its number in the table, from 0.
    pub fn ordinal(&self) -> u64 {
        self.step.ordinal()
    }

    /// The step.
    pub fn row(&self) -> StepRow<'_> {
        self.step.row()
    }

    /// The longest spans of its thread, in the order of their ends.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }
}

/// All slow steps, by ordinal.
#[derive(Clone, Debug, Default)]
pub struct SlowSteps {
    all: Vec<PastSlowStep>,
}

impl SlowSteps {
    /// All slow steps, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &PastSlowStep> {
        self.all.iter()
    }

    /// The slow step with this ordinal.
    pub fn get(&self, ordinal: u64) -> Option<&PastSlowStep> {
        let at = self.all.binary_search_by_key(&ordinal, PastSlowStep::ordinal).ok()?;
        self.all.get(at)
    }

    pub(in crate::store) fn row(&self, ordinal: u64) -> Option<StepRow<'_>> {
        self.get(ordinal).map(PastSlowStep::row)
    }

    /// Adds a slow step, unless it already exists.
    pub(in crate::store) fn push(&mut self, slow: PastSlowStep) {
        if let Err(at) = self.all.binary_search_by_key(&slow.ordinal(), PastSlowStep::ordinal)
            && self.all.len() < MAX_SLOW_STEPS
        {
            self.all.insert(at, slow);
        }
    }
}
