//! Everything known about one session, in bounded memory.
//!
//! A [`Store`] is fed the items of one stream through [`Store::apply`], be it a live session or a recording: it
//! does not know and does not care. It never trusts the stream: ids index bounded tables, times may go backwards,
//! and whatever finds no room is counted in [`Losses`].
//!
//! ```text
//! Item ─▶ Store ─┬─ session.rs     who publishes, clocks, state
//!                ├─ names.rs, tracks.rs, phases.rs   what ids mean
//!                ├─ tiling.rs ─▶ steps.rs (rows), reduced.rs (older ones) ─▶ statistics.rs (running figures),
//!                │                                        columns.rs (for bars), measure.rs (per graph, per edge)
//!                ├─ device.rs (its steps, by its clock), device_memory.rs (its memory)
//!                ├─ spans.rs, distribution.rs        durations by name
//!                ├─ lanes.rs                         each track's spans as boxes in time
//!                ├─ signals.rs, series.rs ─▶ hardware.rs (as people read them), resample.rs (for charts)
//!                ├─ meters.rs (lines of energy counters) ─▶ components.rs (sources) ─▶ joules.rs (energy by component, under assumptions)
//!                ├─ memory.rs, instants.rs           allocations; marks
//!                │    └▶ growth.rs, trend.rs         whether memory leaks
//!                └─ losses.rs     what is missing
//! ```
//!
//! Lanes and series keep the newest in full; `history.rs` holds what is left of the rest.

mod columns;
mod components;
mod device;
mod device_memory;
mod distribution;
mod feed;
mod growth;
mod hardware;
mod history;
mod instants;
mod joules;
mod lanes;
mod losses;
mod measure;
mod memory;
mod meters;
mod names;
mod phases;
mod recent;
mod reduced;
mod resample;
mod series;
mod session;
mod signals;
mod spans;
mod statistics;
mod steps;
mod tiling;
mod tracks;
mod trend;

use gnntop_wire::{NameId, Open, TrackId};

pub use columns::StepColumn;
pub use device::DeviceTime;
pub use device_memory::DeviceMemory;
pub use distribution::{Distribution, LONGEST_NS, SIGNIFICANT_DIGITS};
pub use growth::{Growth, GrowthOf};
pub use hardware::{Absence, CpuUse, Hardware, RATE_WINDOW_NS, Reading};
pub use instants::{Instant, Marks};
pub use joules::{ComponentEnergy, ComponentKind, EnergyBook, Scope};
pub use lanes::{Busy, Lane, LaneBox, Reduced};
pub use losses::Losses;
pub use measure::Measure;
pub use memory::{Allocated, Memory, Peak, StepEnd};
pub use phases::{GAP, MAX_PHASES, Phase, PhaseSlot};
pub use recent::Throughput;
pub use resample::{Bin, TimeColumns};
pub use series::{Point, Series, Summary, Value};
pub use session::{ClockStep, Session, SessionState};
pub use signals::{CounterSeries, Signal, Signals};
pub use spans::SpanStatistics;
pub use statistics::{BatchTotals, StepStatistics, Total};
pub use steps::{StepRow, StepTable};
pub use tracks::Track;
pub use trend::{FEWEST_POINTS, Trend};

use meters::Meters;
use names::Names;
use phases::Phases;
use signals::Counters;
use spans::Spans;
use tracks::Tracks;

/// A device's steps are kept for a part of the host's.
const DEVICE_SHARE: usize = 4;
/// An open span is shown for this long after the publisher last said that it is open.
const OPEN_FOR_NS: u64 = 2_000_000_000;

/// How much a store keeps. Everything beyond is reduced to counts and running figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Names; each of them at most 1 KiB long, and all together at most 16 MiB.
    pub names: usize,
    /// Tracks.
    pub tracks: usize,
    /// Signals.
    pub signals: usize,
    /// Counters.
    pub counters: usize,
    /// Rows of the step table. It may hold up to 4,096 more.
    pub step_rows: usize,
    /// Groups of older steps, each reduced to its worst and its median step.
    pub step_groups: usize,
    /// Span names that have percentiles.
    pub span_histograms: usize,
    /// Points of a signal or counter; with very many of these, fewer.
    pub series_points: usize,
    /// Marks.
    pub marks: usize,
    /// Single allocations.
    pub allocations: usize,
    /// Spans that all tracks together keep as boxes, 24 bytes each; more only until the older tracks are next written to.
    pub boxes: usize,
}

impl Limits {
    /// The limits of each of so many stores that together keep about as much as one with these. No share is so small that
    /// nothing can be seen: the newest steps, and about a minute of readings.
    pub fn shared_by(self, stores: usize) -> Self {
        let share = |whole: usize, least: usize| (whole / stores.max(1)).max(least.min(whole));
        Self {
            names: share(self.names, 1 << 12),
            tracks: share(self.tracks, 1 << 8),
            signals: share(self.signals, 1 << 8),
            counters: share(self.counters, 1 << 6),
            step_rows: share(self.step_rows, 1 << 12),
            step_groups: share(self.step_groups, 1 << 8),
            span_histograms: share(self.span_histograms, 1 << 6),
            series_points: share(self.series_points, 600),
            marks: share(self.marks, 1 << 9),
            allocations: share(self.allocations, 1 << 9),
            boxes: share(self.boxes, 1 << 13),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            names: 1 << 16,
            tracks: 1 << 12,
            signals: 1 << 12,
            counters: 1 << 10,
            step_rows: 1 << 18,
            step_groups: 1 << 13,
            span_histograms: 512,
            series_points: 18_000,
            marks: 1 << 14,
            allocations: 1 << 14,
            boxes: 1 << 18,
        }
    }
}

/// Everything known about one session. See the [module](self).
#[derive(Clone, Debug)]
pub struct Store {
    session: Session,
    names: Names,
    tracks: Tracks,
    phases: Phases,
    steps: StepTable,
    statistics: StepStatistics,
    device: Option<Box<DeviceTime>>,
    spans: Spans,
    signals: Signals,
    meters: Meters,
    counters: Counters,
    marks: Marks,
    memory: Memory,
    losses: Losses,
    /// Steps that are kept of a device.
    device_rows: usize,
    first_ns: Option<u64>,
    now_ns: u64,
    /// Whether the items that come now belong to another session or an unreadable segment.
    is_foreign: bool,
    revision: u64,
}

impl Store {
    /// An empty store with the default [`Limits`].
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    /// An empty store that keeps this much.
    pub fn with_limits(limits: Limits) -> Self {
        Self {
            session: Session::default(),
            names: Names::new(limits.names),
            tracks: Tracks::new(limits.tracks, limits.boxes),
            phases: Phases::new(),
            steps: StepTable::new(limits.step_rows, limits.step_groups),
            statistics: StepStatistics::default(),
            device: None,
            device_rows: limits.step_rows / DEVICE_SHARE,
            spans: Spans::new(limits.span_histograms),
            signals: Signals::new(limits.signals, limits.series_points),
            meters: Meters::default(),
            counters: Counters::new(limits.counters, limits.series_points),
            marks: Marks::new(limits.marks),
            memory: Memory::new(limits.allocations, limits.series_points),
            losses: Losses::default(),
            first_ns: None,
            now_ns: 0,
            is_foreign: false,
            revision: 0,
        }
    }

    /// Changes with every item that was applied: nothing needs to be drawn again while it stays the same.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Who publishes, on which clocks, and whether it still does.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The newest time seen in the stream, on the clock of all events; 0 before the first.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Where the picture begins: the earliest time seen, `None` before the first.
    pub fn first_ns(&self) -> Option<u64> {
        self.first_ns
    }

    /// Time that the picture covers, from the earliest to the newest time seen.
    pub fn elapsed_ns(&self) -> u64 {
        self.first_ns.map_or(0, |first| self.now_ns.saturating_sub(first))
    }

    /// The text of a name: `(no name)` for [`NameId::NONE`], `(unknown name)` where there was no room for it.
    pub fn name(&self, id: NameId) -> &str {
        match self.names.text(id) {
            Some(text) => text,
            None if id == NameId::NONE => "(no name)",
            None => "(unknown name)",
        }
    }

    /// All tracks, in the order in which they appeared.
    pub fn tracks(&self) -> &[Track] {
        self.tracks.all()
    }

    /// The track with this id.
    pub fn track(&self, id: TrackId) -> Option<&Track> {
        self.tracks.get(id)
    }

    /// The track whose steps and phases are shown, `None` before the first step.
    pub fn training_track(&self) -> Option<&Track> {
        self.tracks.main()
    }

    /// All phases seen so far in display order: the standard ones first, then by appearance, the gap last.
    pub fn phases(&self) -> &[Phase] {
        self.phases.shown()
    }

    /// The phase with this name, or the gap by [`GAP`].
    pub fn phase(&self, text: &str) -> Option<&Phase> {
        self.phases.shown().iter().rev().find(|phase| phase.text == text)
    }

    /// The most recent steps.
    pub fn steps(&self) -> &StepTable {
        &self.steps
    }

    /// Running figures over all steps, kept or not.
    pub fn statistics(&self) -> &StepStatistics {
        &self.statistics
    }

    /// What the device did that the training thread hands its work to; `None` where the program does not time one.
    pub fn device(&self) -> Option<&DeviceTime> {
        self.device.as_deref()
    }

    /// Durations of all spans by name, phases included, over all tracks, in the order of appearance.
    pub fn spans(&self) -> &[SpanStatistics] {
        self.spans.all()
    }

    /// A percentile by name: of a phase's time per step, of the `gap`, of the whole `step`, else of the spans of that
    /// name. `quantile` lies between 0 and 1. `None` where nothing of that name was recorded.
    pub fn percentile(&self, name: &str, quantile: f64) -> Option<u64> {
        self.distribution(name)?.percentile(quantile)
    }

    /// The durations by name, as [`Store::percentile`] looks them up.
    pub fn distribution(&self, name: &str) -> Option<&Distribution> {
        if name == "step" && self.statistics.steps() > 0 {
            return Some(self.statistics.period());
        }
        let phase = self.phase(name).and_then(|phase| self.statistics.phase(phase.slot));
        let span = || self.spans().iter().find(|span| self.name(span.name) == name).map(|span| &span.durations);
        phase.or_else(span)
    }

    /// Measured signals with their readings.
    pub fn signals(&self) -> &Signals {
        &self.signals
    }

    /// Hardware readings as people read them.
    pub fn hardware(&self) -> Hardware<'_> {
        Hardware::new(self)
    }

    /// The program's counters, such as the depth of a queue, in the order of appearance.
    pub fn counters(&self) -> &[CounterSeries] {
        self.counters.all()
    }

    /// Named instants.
    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    /// What the program's allocator told.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// What is missing.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// What is open on each track now, so that a slow or hung phase shows while it lasts. In a session that
    /// stopped: what was open then.
    pub fn open_spans(&self) -> impl Iterator<Item = (&Track, &Open)> {
        let is_fresh = |open: &&Open| self.now_ns.saturating_sub(open.t_ns) <= OPEN_FOR_NS;
        self.tracks().iter().filter_map(move |track| Some((track, track.open.as_ref().filter(is_fresh)?)))
    }
}

impl Default for Store {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod joules_tests;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
