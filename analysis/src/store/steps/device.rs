//! What a device did when, by its own clock: its phases tile its steps like the host's.
//!
//! Host and device are never mixed: a step has a row here and one in the host's table, and every figure on the screen says
//! which it is from. A step of the device runs from the end of the previous step to its own end; its time outside all
//! phases is the device's gap.

use gnntop_history::{Tiled, Tiling};
use gnntop_wire::{DeviceSpan, NameId, Step, StepId, TrackId};

use crate::figures::duration;

use super::statistics::StepStatistics;
use super::step_row::{Period, StepRow};
use super::table::StepTable;
use crate::store::ids::phases::PhaseSlot;

/// The device that the training thread submits work to.
#[derive(Clone, Debug)]
pub struct DeviceTime {
    track: TrackId,
    /// Whether it belongs to an earlier start of the run: the current start has not named its device yet.
    is_previous_attempt: bool,
    is_synchronised: bool,
    steps: StepTable,
    statistics: StepStatistics,
    tiling: Tiling,
    last_step: u64,
    newest_error_ns: Option<u64>,
    largest_error_ns: u64,
}

impl DeviceTime {
    /// The device whose stream has this track; keeps at least `step_rows` steps.
    pub(in crate::store) fn new(track: TrackId, is_synchronised: bool, step_rows: usize) -> Self {
        Self {
            track,
            is_previous_attempt: false,
            is_synchronised,
            steps: StepTable::new(step_rows, 0),
            statistics: StepStatistics::default(),
            tiling: Tiling::new(),
            last_step: 0,
            newest_error_ns: None,
            largest_error_ns: 0,
        }
    }

    /// The track of the device's stream.
    pub fn track(&self) -> TrackId {
        self.track
    }

    /// Whether the training thread waits for the device at both ends of every phase, so that the host's clock shows the
    /// device's time.
    pub fn is_synchronised(&self) -> bool {
        self.is_synchronised
    }

    /// Its most recent steps. They have only the host's numbers, and their own times and phases.
    pub fn steps(&self) -> &StepTable {
        &self.steps
    }

    /// Running figures over all its steps.
    pub fn statistics(&self) -> &StepStatistics {
        &self.statistics
    }

    /// The device's row of the step that the program counts as `step`, if it is kept.
    pub fn row(&self, step: StepId) -> Option<StepRow<'_>> {
        self.steps.row(self.first_from(step)).filter(|row| row.step() == step)
    }

    /// The rows of the steps from `first` to `last`, both included.
    pub fn rows(&self, first: StepId, last: StepId) -> impl Iterator<Item = StepRow<'_>> {
        self.steps.rows(self.first_from(first)..u64::MAX).take_while(move |row| row.step() <= last)
    }

    /// Error of the device's times on the host's clock, as last reported; `None` before the first span.
    pub fn error_ns(&self) -> Option<u64> {
        self.newest_error_ns
    }

    /// The largest error so far.
    pub fn largest_error_ns(&self) -> u64 {
        self.largest_error_ns
    }

    /// Describes its clock and the error of it.
    pub fn describe_clock(&self) -> String {
        format!("device clock ± {}", duration(self.error_ns().unwrap_or(0)))
    }

    /// Describes the host's times of phases whose work it does.
    pub fn describe_host_clock(&self) -> &'static str {
        if self.is_synchronised { "host, waiting for the device" } else { "host: when work was handed over" }
    }

    /// The first kept row at or after `step`. Step numbers increase: if none is missing, the row is as far from the first
    /// row as its number is.
    fn first_from(&self, step: StepId) -> u64 {
        let (mut low, mut high) = (self.steps.kept_ordinals().start, self.steps.kept_ordinals().end);
        let first = self.steps.row(low).map_or(step, |row| row.step());
        let likely = low.saturating_add(step.0.saturating_sub(first.0));
        if self.steps.row(likely).is_some_and(|row| row.step() == step) {
            return likely;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.steps.row(middle).is_some_and(|row| row.step() < step) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Begins another start of the run.
    pub(in crate::store) fn begin_attempt(&mut self) {
        (self.tiling, self.is_previous_attempt) = (Tiling::new(), true);
    }

    /// Follows this track as the current start's device, if it is its first.
    pub(in crate::store) fn follow(&mut self, track: TrackId) {
        if std::mem::take(&mut self.is_previous_attempt) {
            self.track = track;
        }
    }

    pub(in crate::store) fn note_error(&mut self, error_ns: u64) {
        self.newest_error_ns = Some(error_ns);
        self.largest_error_ns = self.largest_error_ns.max(error_ns);
    }

    pub(in crate::store) fn phase(&mut self, slot: PhaseSlot, span: &DeviceSpan) {
        self.tiling.phase(slot.0, span.start_ns, span.end_ns);
    }

    /// Adds a whole step, whose phases came before it; `slots` phases are known.
    pub(in crate::store) fn step(&mut self, span: &DeviceSpan, slots: usize) {
        debug_assert_eq!(span.name, NameId::NONE, "a whole step has no name");
        if self.last_step.checked_add(1) != Some(span.step.0) {
            // Steps in between were untimed: their time does not belong to this one.
            self.tiling.note_loss();
        }
        self.last_step = span.step.0;
        let tiled = self.tiling.step(span.step.0, span.start_ns, span.end_ns);
        let Tiled { start_ns, period_ns, gap_ns, .. } = tiled;
        let period = Period { start_ns, period_ns, gap_ns, phase_ns: &self.tiling.phase_ns()[..slots] };
        let step = Step { step: span.step, start_ns: span.start_ns, end_ns: span.end_ns, ..Step::default() };
        self.steps.push(&step, &period);
        if let Some(row) = self.steps.last() {
            self.statistics.add(&row);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::store::Store;
    use gnntop_fixtures::device::DeviceRun;
    use gnntop_fixtures::{MS, START_NS, each_item};
    use gnntop_wire::StepId;

    fn store(run: &DeviceRun) -> Store {
        let mut store = Store::new();
        each_item(&run.bytes(), |item| store.apply(item));
        store
    }

    #[test]
    fn host_and_device_times_are_separate() {
        let store = store(&DeviceRun::default());
        let (device, forward) = (store.device().unwrap(), store.phase("forward").unwrap().slot);
        assert_eq!((device.steps().total(), store.steps().total()), (40, 40));
        let (there, here) = (device.row(StepId(7)).unwrap(), store.steps().row(6).unwrap());
        assert_eq!((there.step(), here.step()), (StepId(7), StepId(7)));
        assert_eq!((there.phase_ns(forward), here.phase_ns(forward)), (6 * MS, 600_000));
        assert_eq!((there.period_ns(), there.gap_ns()), (20 * MS, 2 * MS));
        assert_eq!(there.period_start_ns(), START_NS + 7 * 20 * MS + MS);
        let sum: u64 = store.phases().iter().map(|phase| there.phase_ns(phase.slot)).sum();
        assert_eq!(sum, there.period_ns(), "phases and gap tile the device's time");
        assert_eq!(store.percentile("forward", 0.5).unwrap() / 1000, 600, "the host's figures stay the host's");
        assert_eq!(store.spans().iter().find(|span| store.name(span.name) == "forward").unwrap().durations.count(), 40);
        assert_eq!((device.error_ns(), device.largest_error_ns()), (Some(12_300), 12_300));
        assert!(store.losses().is_complete(), "{:?}", store.losses());
        let lane = store.track(device.track()).unwrap().lane().unwrap();
        assert_eq!(lane.len(), 120, "its phases are boxes of its own track");
    }

    #[test]
    fn untimed_device_step_is_not_in_next_step() {
        let store = store(&DeviceRun { untimed: 9, ..DeviceRun::default() });
        let device = store.device().unwrap();
        assert!(device.row(StepId(9)).is_none());
        assert_eq!(device.row(StepId(10)).unwrap().period_ns(), 20 * MS);
        assert_eq!(device.rows(StepId(8), StepId(11)).map(|row| row.step().0).collect::<Vec<_>>(), [8, 10, 11]);
        assert_eq!(store.losses().dropped_events, 4);
    }

    #[test]
    fn device_memory_is_not_a_program_counter() {
        let store = store(&DeviceRun::default());
        let memory = store.device_memory().unwrap();
        assert_eq!(store.program_counters().count(), 0);
        assert_eq!(memory.fragmentation(), Some(0.85));
        assert_eq!(memory.phases.iter().map(|(name, ..)| *name).collect::<Vec<_>>(), ["forward", "backward"]);
        assert!(memory.phases.iter().all(|(.., reserved)| reserved.is_some()));
        let kinds: Vec<_> = memory.kinds.iter().map(|(name, ..)| *name).collect();
        assert_eq!(kinds, gnntop_wire::Purpose::ALL.map(gnntop_wire::Purpose::text));
        let without = DeviceRun { has_memory: false, ..DeviceRun::default() };
        let mut other = Store::new();
        each_item(&without.bytes(), |item| other.apply(item));
        assert!(other.device_memory().is_none());
    }
}
