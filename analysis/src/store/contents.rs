//! Everything known about one session: where each part is kept, and the methods that return it.
//!
//! A stream may be read by two threads at once: one takes the durations by the names of spans, and boxes, the other everything
//! else. Both decode all of it; what they do with it takes longer.

use std::borrow::Cow;
use std::ops::Range;

use gnntop_wire::{Item, NameId, Open, PhaseMemory, Reported, Rival, TrackId};

use super::attempts::Attempts;
use super::ids::names::NameTable;
use super::ids::phases::{Phase, Phases};
use super::instants::{Marks, Newest};
use super::limits::{EventSelection, Limits};
use super::losses::Losses;
use super::memory::allocations::Memory;
use super::sampled_stacks::SampledStacks;
use super::session::{SessionState, StoredSession};
use super::signals::meters::Meters;
use super::signals::signal::{CounterSeries, Counters, Signals};
use super::spans::distribution::{Distribution, SpanStatistics, Spans};
use super::stacks::Stacks;
use super::steps::device::DeviceTime;
use super::steps::statistics::StepStatistics;
use super::steps::table::StepTable;
use super::tracks::{Track, Tracks};
use super::translation::Translation;
use crate::stream::Sink;

/// Stacks get the limit of marks divided by this.
const STACKS_SHARE: usize = 8;
/// The same for other programs that use the CPU.
const RIVALS_SHARE: usize = 8;
/// A device's steps get the limit of the host's divided by this.
const DEVICE_SHARE: usize = 4;
/// An open span is shown for this long after the publisher last reported it.
const OPEN_FOR_NS: u64 = 2_000_000_000;

/// The part of a session known only by summaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastExtent {
    /// Its steps: the first ones of the session, or of each start of it.
    pub steps: u64,
    /// Time of its newest event.
    pub last_ns: u64,
}

/// Everything known about one session. See the [module](crate::store).
#[derive(Clone, Debug)]
pub struct Store {
    pub(super) session: StoredSession,
    pub(super) names: NameTable,
    pub(super) tracks: Tracks,
    pub(super) phases: Phases,
    pub(super) steps: StepTable,
    pub(super) statistics: StepStatistics,
    pub(super) device: Option<Box<DeviceTime>>,
    pub(super) spans: Spans,
    pub(super) signals: Signals,
    pub(super) meters: Meters,
    pub(super) counters: Counters,
    /// The losses of steps; its name is none of the session's.
    pub(super) step_loss: CounterSeries,
    pub(super) loss_points: usize,
    pub(super) marks: Marks,
    pub(super) rivals: Newest<Rival>,
    pub(super) stacks: Stacks,
    pub(super) sampled: SampledStacks,
    pub(super) memory: Memory,
    pub(super) losses: Losses,
    pub(super) attempts: Attempts,
    /// Translates the ids and times of the current start; `None` for the first.
    pub(super) translation: Option<Box<Translation>>,
    /// The events that are taken.
    pub(super) selection: EventSelection,
    /// Steps kept of a device.
    pub(super) device_rows: usize,
    pub(super) first_ns: Option<u64>,
    pub(super) now_ns: u64,
    /// Whether figures over the time before this start's events were applied.
    pub(super) has_past: bool,
    /// The part of all starts known by such figures.
    pub(super) past: Option<PastExtent>,
    /// Whether the current items belong to another session or an unreadable segment.
    pub(super) is_foreign: bool,
    pub(super) revision: u64,
}

impl Store {
    /// An empty store with the default [`Limits`].
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    /// An empty store with these limits.
    pub fn with_limits(limits: Limits) -> Self {
        Self {
            session: StoredSession::default(),
            names: NameTable::new(limits.names),
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
            step_loss: CounterSeries::new(NameId::NONE),
            loss_points: limits.series_points,
            marks: Marks::new(limits.marks),
            rivals: Newest::new(limits.marks / RIVALS_SHARE),
            stacks: Stacks::new(limits.marks / STACKS_SHARE),
            sampled: SampledStacks::default(),
            memory: Memory::new(limits.allocations, limits.series_points),
            losses: Losses::default(),
            attempts: Attempts::default(),
            translation: None,
            selection: limits.selection,
            first_ns: None,
            now_ns: 0,
            has_past: false,
            past: None,
            is_foreign: false,
            revision: 0,
        }
    }

    /// The part of the session known only by summaries; `None` if every event was read.
    pub fn past(&self) -> Option<PastExtent> {
        self.past
    }

    /// Changes with every item applied: nothing needs to be redrawn while it stays the same.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The publisher, its clocks, and whether it is still publishing.
    pub fn session(&self) -> &StoredSession {
        &self.session
    }

    /// The newest time seen in the stream, on the clock of all events; 0 before the first.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// The earliest time seen; `None` before the first.
    pub fn first_ns(&self) -> Option<u64> {
        self.first_ns
    }

    /// Time from the earliest to the newest time seen.
    pub fn elapsed_ns(&self) -> u64 {
        self.first_ns.map_or(0, |first| self.now_ns.saturating_sub(first))
    }

    /// The text of a name: `(no name)` for [`NameId::NONE`], `(unknown name)` if there was no room for it.
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

    /// The track whose steps and phases are shown; `None` before the first step.
    pub fn training_track(&self) -> Option<&Track> {
        self.tracks.main()
    }

    /// All phases seen so far in display order: the standard ones first, then by appearance, the gap last.
    pub fn phases(&self) -> &[Phase] {
        self.phases.shown()
    }

    /// The time from the earliest to the newest event.
    pub fn session_ns(&self) -> Range<u64> {
        self.first_ns().unwrap_or(0)..self.now_ns()
    }

    /// The phase with this name, or the gap by [`GAP`](super::GAP).
    pub fn phase(&self, text: &str) -> Option<&Phase> {
        self.phases.shown().iter().rev().find(|phase| phase.text == text)
    }

    /// The text of a phase's name; `None` for every other name, however it is spelt.
    pub fn phase_text(&self, name: NameId) -> Option<&str> {
        self.names.route(name)?.is_phase.then(|| self.name(name))
    }

    /// The most recent steps.
    pub fn steps(&self) -> &StepTable {
        &self.steps
    }

    /// Running figures over all steps, kept or not.
    pub fn statistics(&self) -> &StepStatistics {
        &self.statistics
    }

    /// The same over the steps that are kept, without the first `skip` of the session.
    pub fn statistics_from(&self, skip: u64) -> Cow<'_, StepStatistics> {
        match skip {
            0 => Cow::Borrowed(&self.statistics),
            _ => Cow::Owned(StepStatistics::from_rows(self.steps.rows(skip..u64::MAX))),
        }
    }

    /// The epoch of the newest step, unless the session has ended well: more of its steps may have been to come.
    pub fn unfinished_epoch(&self) -> Option<u64> {
        let is_over = matches!(self.session.state(), SessionState::Ended(_));
        self.steps.last().filter(|_| !is_over).map(|row| row.epoch())
    }

    /// What the training thread's device did; `None` if the program does not time one.
    pub fn device(&self) -> Option<&DeviceTime> {
        self.device.as_deref()
    }

    /// Durations of all spans by name, phases included, over all tracks, in the order of appearance.
    pub fn spans(&self) -> &[SpanStatistics] {
        self.spans.all()
    }

    /// The durations of what has this name: of a phase by step, of other spans one by one.
    pub fn durations(&self, name: NameId) -> Option<&Distribution> {
        let route = self.names.route(name)?;
        let by_step = route.slot.and_then(|slot| self.statistics.phase(slot));
        by_step.or_else(|| self.spans().get(route.statistics as usize).map(|spans| &spans.durations))
    }

    /// A percentile by name: of a phase's time per step, of the `gap`, of the `step` from its own start, of the `period`
    /// with the gap before it, or else of the spans with that name. `quantile` is between 0 and 1. `None` if nothing with
    /// that name was recorded.
    pub fn percentile(&self, name: &str, quantile: f64) -> Option<u64> {
        self.distribution(name)?.percentile(quantile)
    }

    /// The durations by name, as [`Store::percentile`] looks them up.
    pub fn distribution(&self, name: &str) -> Option<&Distribution> {
        if self.statistics.steps() > 0 {
            match name {
                "step" => return Some(self.statistics.step()),
                "period" => return Some(self.statistics.period()),
                _ => (),
            }
        }
        let phase = self.phase(name).and_then(|phase| self.statistics.phase(phase.slot));
        let span = || self.spans().iter().find(|span| self.name(span.name) == name).map(|span| &span.durations);
        phase.or_else(span)
    }

    /// The measured signals and their readings.
    pub fn signals(&self) -> &Signals {
        &self.signals
    }

    /// The program's counters, such as the depth of a queue, in the order of appearance.
    pub fn counters(&self) -> &[CounterSeries] {
        self.counters.all()
    }

    /// What a span, counter or mark of this name says, if readers know that.
    pub fn reported(&self, name: NameId) -> Option<Reported> {
        self.names.kind(name)?.reported()
    }

    /// The counter that says this.
    pub fn counter_of(&self, what: Reported) -> Option<&CounterSeries> {
        self.counters().iter().find(|counter| self.reported(counter.name) == Some(what))
    }

    /// The marks.
    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    /// Which other programs used the CPU, and how many cores.
    pub fn rivals(&self) -> &Newest<Rival> {
        &self.rivals
    }

    /// The newest stacks taken while a phase took too long.
    pub fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    /// Stacks sampled continuously over the whole session.
    pub fn sampled(&self) -> &SampledStacks {
        &self.sampled
    }

    /// Memory as reported by the program's allocator.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The names of its phases, in their order.
    pub fn heap_phases(&self) -> impl Iterator<Item = &str> {
        let name = |phase: &PhaseMemory| match phase.phase {
            NameId::NONE => "outside phases",
            name => self.name(name),
        };
        self.memory.phases().iter().map(name)
    }

    /// What is missing.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// The open span of each track now, so that a slow or hung phase is visible while it lasts. If the session stopped: the
    /// spans open then.
    pub fn open_spans(&self) -> impl Iterator<Item = (&Track, &Open)> {
        let is_fresh = |open: &&Open| self.now_ns.saturating_sub(open.t_ns) <= OPEN_FOR_NS;
        self.tracks().iter().filter_map(move |track| Some((track, track.open.as_ref().filter(is_fresh)?)))
    }

    /// Takes durations by the names of spans, and boxes, from a store that has read the same stream for them alone
    /// ([`EventSelection`]). Returns whether it has: not where the two have read different events, or where a run was
    /// started again, because the ids of a later start depend on everything before it.
    pub fn take_spans_from(&mut self, other: Self) -> bool {
        if self.attempts.is_restarted() || !self.has_same_events(&other) {
            return false;
        }
        let Self { spans, names, tracks, .. } = other;
        self.spans = spans;
        self.names.take_statistics_from(&names);
        self.tracks.take_lanes_from(tracks);
        true
    }

    fn has_same_events(&self, other: &Self) -> bool {
        let read = |store: &Self| store.tracks.all().iter().map(|track| (track.id, track.events)).collect::<Vec<_>>();
        read(self) == read(other)
    }
}

impl Sink for Store {
    fn apply(&mut self, item: Item<'_>) {
        Self::apply(self, item);
    }

    fn reset(&mut self) {
        *self = Self::default();
    }

    fn add_lost_segments(&mut self, count: u64) {
        self.note_lost_segments(count);
    }

    fn set_publisher_alive(&mut self, alive: bool) {
        self.note_publisher(alive);
    }
}

impl Default for Store {
    fn default() -> Self {
        Self::new()
    }
}
