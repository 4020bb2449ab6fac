//! Whose clock phases are shown by: the device's, where the program has one timed, or the host's.

use super::App;
use gnntop_analysis::store::{DeviceTime, StepRow, StepStatistics};

/// Whose clock phases are shown by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PhaseClock {
    /// The device's, where there is one: when work was done.
    #[default]
    Device,
    /// The host's: when work was handed over, unless the program waits for it.
    Host,
}

impl App {
    /// The device, where phases are shown by its clock now.
    pub fn shown_device(&self) -> Option<&DeviceTime> {
        self.timed_device().filter(|_| self.phase_clock == PhaseClock::Device)
    }

    /// The device, where it has told times.
    pub fn timed_device(&self) -> Option<&DeviceTime> {
        self.run.store().device().filter(|device| device.steps().total() > 0)
    }

    /// Figures over all steps, by the clock that is shown.
    pub fn phase_statistics(&self) -> &StepStatistics {
        self.shown_device().map_or(self.run.store().statistics(), DeviceTime::statistics)
    }

    /// The row of a step by the clock that is shown; `None` where the device told nothing of it, or not yet.
    pub fn phase_row(&self, ordinal: u64) -> Option<StepRow<'_>> {
        self.by_clock(self.run.store().steps().known_row(ordinal)?)
    }

    /// A row of the host by the clock that is shown; `None` where the device told nothing of that step, or not yet.
    pub fn by_clock<'a>(&'a self, row: StepRow<'a>) -> Option<StepRow<'a>> {
        match self.shown_device() {
            Some(device) => device.row(row.step()),
            None => Some(row),
        }
    }

    /// How long a step took by the clock that is shown, as steps are measured now, in nanoseconds. `None` where the device
    /// told nothing of it, or the step does not tell the number that it is measured by.
    pub fn step_ns(&self, row: StepRow<'_>) -> Option<u64> {
        // A device knows nothing of batches: what it is measured by comes from the host's row.
        self.window.measure().part(&row, self.by_clock(row)?.period_ns())
    }

    /// The clock that is shown, in a few words; `None` where there is but one.
    pub fn clock_in_words(&self) -> Option<String> {
        let device = self.timed_device()?;
        Some(match self.shown_device() {
            Some(device) => device.clock_in_words(),
            None => device.host_clock_in_words().to_owned(),
        })
    }

    /// By which clock phases are not shown, in a few words, with the row of a step by it.
    pub fn other_clock(&self, ordinal: u64) -> Option<(String, StepRow<'_>)> {
        let device = self.timed_device()?;
        let row = self.run.store().steps().known_row(ordinal)?;
        match self.shown_device() {
            Some(_) => Some((device.host_clock_in_words().to_owned(), row)),
            None => Some((device.clock_in_words(), device.row(row.step())?)),
        }
    }

    pub(super) fn toggle_clock(&mut self) {
        self.phase_clock = match self.phase_clock {
            PhaseClock::Device => PhaseClock::Host,
            PhaseClock::Host => PhaseClock::Device,
        };
        self.forget_figures();
    }
}
