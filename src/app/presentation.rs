//! How things are shown: what a person prefers, steps as bars or percentiles, phases by the device's clock or the host's, and
//! which phase is highlighted.

use super::colors::{Background, Palette};
use super::keymap::KeyMap;
use super::view::View;
use gnntop_analysis::store::{DeviceTime, PhaseSlot, StepMeasure, StepRow, StepStatistics, Store};

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

/// How a person wants the screen to be.
#[derive(Clone, Debug, Default)]
pub struct Preferences {
    /// The palette of colours.
    pub palette: Palette,
    /// The terminal's background.
    pub background: Background,
    /// The view to begin with.
    pub view: View,
    /// What the keys do.
    pub keys: KeyMap,
}

/// The clock by which phases are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PhaseClock {
    /// The device's, if there is one: when work was done.
    #[default]
    Device,
    /// The host's: when work was handed over, unless the program waits for it.
    Host,
}

impl PhaseClock {
    pub(super) fn other(self) -> Self {
        match self {
            Self::Device => Self::Host,
            Self::Host => Self::Device,
        }
    }
}

/// The phases of a store, by the clock that is shown.
#[derive(Clone, Copy)]
pub struct ClockedPhases<'a> {
    store: &'a Store,
    clock: PhaseClock,
    measure: StepMeasure,
}

impl<'a> ClockedPhases<'a> {
    pub(super) fn new(store: &'a Store, clock: PhaseClock, measure: StepMeasure) -> Self {
        Self { store, clock, measure }
    }

    /// The store with these phases.
    pub(super) fn store(&self) -> &'a Store {
        self.store
    }

    /// The device, where phases are shown by its clock now.
    pub fn device(&self) -> Option<&'a DeviceTime> {
        self.timed_device().filter(|_| self.clock == PhaseClock::Device)
    }

    /// The device, if it has reported times.
    pub fn timed_device(&self) -> Option<&'a DeviceTime> {
        self.store.device().filter(|device| device.steps().total() > 0)
    }

    /// Figures over all steps.
    pub fn statistics(&self) -> &'a StepStatistics {
        self.device().map_or(self.store.statistics(), DeviceTime::statistics)
    }

    /// The row of a step; `None` if the device has not reported it.
    pub fn row(&self, ordinal: u64) -> Option<StepRow<'a>> {
        self.by_clock(self.store.steps().known_row(ordinal)?)
    }

    /// A row of the host by this clock; `None` if the device has not reported that step.
    pub fn by_clock(&self, row: StepRow<'a>) -> Option<StepRow<'a>> {
        match self.device() {
            Some(device) => device.row(row.step()),
            None => Some(row),
        }
    }

    /// How long a step took, by the selected measure, in nanoseconds. `None` if the device has not reported it, or the
    /// step has no such number.
    pub fn step_ns(&self, row: StepRow<'a>) -> Option<u64> {
        // A device has no batches: the unit of work is from the host's row.
        self.measure.scale(&row, self.by_clock(row)?.period_ns())
    }

    /// The clock, in a few words; `None` if there is only one.
    pub fn describe_clock(&self) -> Option<String> {
        let device = self.timed_device()?;
        Some(match self.device() {
            Some(device) => device.describe_clock(),
            None => device.describe_host_clock().to_owned(),
        })
    }

    /// By which clock phases are not shown, in a few words, with the row of a step by it.
    pub fn other_clock(&self, ordinal: u64) -> Option<(String, StepRow<'a>)> {
        let device = self.timed_device()?;
        let row = self.store.steps().known_row(ordinal)?;
        match self.device() {
            Some(_) => Some((device.describe_host_clock().to_owned(), row)),
            None => Some((device.describe_clock(), device.row(row.step())?)),
        }
    }
}
