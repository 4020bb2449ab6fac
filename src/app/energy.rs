//! What is told of the run's energy: computed outside, about once a second, and kept until the next time.

use super::{App, View};
use crate::report::EnergyTold;

impl App {
    /// The run's energy as it was told last; `None` before the first time.
    pub fn energy(&self) -> Option<&EnergyTold> {
        self.energy.as_deref()
    }

    /// Takes in what is told of the energy now.
    pub(super) fn energy_told(&mut self, told: Box<EnergyTold>) {
        let is_shown = matches!(self.view(), View::Overview | View::Energy | View::Step);
        self.dirty |= is_shown && self.energy.as_ref().is_none_or(|known| *known != told);
        self.energy = Some(told);
    }

    /// Lines that the energy view has at most.
    pub(super) fn energy_lines(&self) -> usize {
        /// Headings, sums and what is not counted.
        const LINES: usize = 24;
        /// Facts, charts and wrapped reasons of a component beside its phases.
        const OF_A_COMPONENT: usize = 24;
        let components = self.energy().map_or(0, |told| told.book.components.len());
        LINES + components * (OF_A_COMPONENT + self.run.store().phases().len())
    }
}
