//! How steps and phases are shown: as bars or percentiles, by which clock, and which phase is highlighted.

use super::phase_clock::PhaseClock;
use gnntop_analysis::store::PhaseSlot;

/// How steps and phases are shown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Presentation {
    percentiles: bool,
    clock: PhaseClock,
    highlight: Option<PhaseSlot>,
}

impl Presentation {
    /// Whether percentiles are shown instead of bars.
    pub(super) fn percentiles(&self) -> bool {
        self.percentiles
    }

    pub(super) fn clock(&self) -> PhaseClock {
        self.clock
    }

    pub(super) fn highlight(&self) -> Option<PhaseSlot> {
        self.highlight
    }

    pub(super) fn toggle_percentiles(&mut self) {
        self.percentiles = !self.percentiles;
    }

    pub(super) fn toggle_clock(&mut self) {
        self.clock = self.clock.other();
    }

    /// Shows a phase more clearly than the others, or no longer.
    pub(super) fn toggle_highlight(&mut self, slot: PhaseSlot) {
        self.highlight = (self.highlight != Some(slot)).then_some(slot);
    }

    /// Shows all phases alike; whether one was highlighted.
    pub(super) fn take_highlight(&mut self) -> bool {
        self.highlight.take().is_some()
    }
}
