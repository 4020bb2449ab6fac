//! The entry point: takes apart the items of a stream and passes each to its place.
//!
//! Nearly everything that arrives is spans, so a span costs one table look-up, one histogram and, for a phase on the
//! training track, one push. Nothing is hashed or allocated for it.

use gnntop_history::{Tiled, Tiling};
use gnntop_wire::{
    BlockInfo, Definition, Event, EventSink, Events, Item, Mark, NameId, Open, Span, Step, TrackId, TrackRole,
};

use super::contents::Store;
use super::ids::names::{Route, assign_slot};
use super::instants::StoredMark;
use super::limits::EventSelection;
use super::signals::series::Series;
use super::signals::signal::Signal;
use super::spans::lanes::Lane;
use super::steps::device::DeviceTime;
use super::steps::step_row::Period;
use super::translation::Translated;

/// How far events may be ahead of the newest anchor, which comes every second: one day.
const MAX_AHEAD_NS: u64 = 86_400_000_000_000;

/// The beginning of a frame's name in which Python calls what was registered for its exit.
const EXIT_FUNCTIONS: &str = "finalize._exitfunc (";

/// What a block adds to its track, at hand while the block is read.
pub(super) struct BlockState {
    track: usize,
    /// Taken out of the track; `None` if its phases are not tiled.
    tiling: Option<Box<Tiling>>,
    /// Taken out of the track; `None` before its first span, or if there are too many tracks.
    lane: Option<Box<Lane>>,
    lane_capacity: usize,
    /// Whether durations by name and boxes are taken, and whether everything else is.
    pub(super) wants_spans: bool,
    wants_rest: bool,
    /// Whether its thread is a loader.
    is_ahead: bool,
    open: Option<Open>,
    last_ns: u64,
    /// When the block's first span or step began, which is before its first event.
    begin_ns: u64,
    pub(super) spans: u64,
    steps: u64,
    backward_times: u64,
}

impl Store {
    /// Applies the next item of the stream.
    pub fn apply(&mut self, item: Item<'_>) {
        self.revision += 1;
        let item = match &mut self.translation {
            Some(translation) => translation.item(item),
            None => item,
        };
        match item {
            Item::Segment(info) => {
                self.is_foreign = !self.session.apply_segment(info);
                self.losses.foreign_segments += u64::from(self.is_foreign);
            }
            Item::Newer { major } => {
                self.is_foreign = true;
                self.losses.newer_format = self.losses.newer_format.max(Some(major));
            }
            Item::Damage(damage) => self.losses.add_damage(damage),
            Item::Unknown => self.losses.unknown_frames += 1,
            _ if self.is_foreign => {}
            Item::Definitions(definitions) => definitions.into_iter().for_each(|d| self.define(d)),
            Item::Anchor(anchor) => {
                let suspended_ns = self.session.suspended_ns();
                self.session.apply_anchor(anchor);
                if self.session.suspended_ns() > suspended_ns {
                    self.meters.suspended();
                }
                self.note_time(anchor.monotonic_ns);
            }
            Item::Block(info, events) => self.apply_block(&info, events),
            Item::Past(entries) => self.apply_past(entries),
            Item::End(end) => {
                self.note_time(end.t_ns);
                self.session.apply_end(end);
            }
        }
    }

    /// Notes that the source could not read `count` segments in time.
    pub fn note_lost_segments(&mut self, count: u64) {
        self.revision += 1;
        self.losses.lost_segments = self.losses.lost_segments.saturating_add(count);
    }

    /// Notes that a segment of another session was left out.
    pub fn note_foreign_segment(&mut self) {
        self.revision += 1;
        self.losses.foreign_segments += 1;
    }

    /// Notes whether the publishing process is alive, if the source can tell.
    pub fn note_publisher(&mut self, alive: bool) {
        self.revision += u64::from(self.session.note_publisher(alive));
    }

    /// The latest plausible time: one absurd time would make everything else infinitely old.
    fn horizon_ns(&self) -> u64 {
        self.session.last_anchor().map_or(u64::MAX, |anchor| anchor.monotonic_ns.saturating_add(MAX_AHEAD_NS))
    }

    pub(super) fn note_time(&mut self, t_ns: u64) {
        self.now_ns = self.now_ns.max(t_ns);
        self.first_ns = Some(self.first_ns.map_or(t_ns, |first| first.min(t_ns)));
    }

    fn define(&mut self, definition: Definition) {
        match definition {
            Definition::Name { id, kind, text } => {
                self.sampled.define(id, kind);
                self.losses.names_not_kept += u64::from(!self.names.define(id, kind, text));
            }
            Definition::Track { id, role, thread_id, text } => {
                if matches!(role, TrackRole::Device | TrackRole::SynchronisedDevice) {
                    let is_synchronised = role == TrackRole::SynchronisedDevice;
                    let new = || Box::new(DeviceTime::new(id, is_synchronised, self.device_rows));
                    self.device.get_or_insert_with(new).follow(id);
                }
                self.losses.tracks_not_kept += u64::from(!self.tracks.define(id, role, thread_id, text));
            }
            Definition::Signal { id, metric, source, device } => {
                let signal = Signal { id, metric, source, device, series: Series::new() };
                self.meters.define(&signal);
                self.losses.signals_not_kept += u64::from(!self.signals.define(signal));
            }
            Definition::Fact(fact) => self.set_fact(fact),
            _ => {}
        }
    }

    fn apply_block(&mut self, info: &BlockInfo, mut events: Events<'_>) {
        let Some(state) = self.begin_block(info) else { return };
        let horizon_ns = self.horizon_ns();
        let translation = self.translation.take();
        let mut block = BlockSink { store: self, state, track: info.track, horizon_ns };
        match &translation {
            Some(by) => events.decode_into(&mut Translated { by, to: &mut block }),
            None => events.decode_into(&mut block),
        }
        let BlockSink { state, .. } = block;
        self.translation = translation;
        self.losses.broken_blocks += u64::from(!events.is_exhausted());
        self.end_block(info, state);
    }

    /// Follows the track's sequence numbers; `None` if there is no room for the track.
    fn begin_block(&mut self, info: &BlockInfo) -> Option<BlockState> {
        let Some(index) = self.tracks.index(info.track) else {
            self.losses.events_not_kept = self.losses.events_not_kept.saturating_add(info.count);
            return None;
        };
        if info.base_ns <= self.horizon_ns() {
            self.note_time(info.base_ns);
        }
        self.tracks.prepare_tiling(index);
        let lane_capacity = self.tracks.lane_capacity();
        let track = self.tracks.get_mut(index);
        let missing = track.begin_block(info);
        self.losses.dropped_events = self.losses.dropped_events.saturating_add(missing.dropped);
        self.losses.missed_events = self.losses.missed_events.saturating_add(missing.missed);
        self.losses.repeated_blocks += u64::from(missing.is_repeated);
        Some(BlockState {
            track: index,
            tiling: track.tiling.take(),
            lane: track.lane.take(),
            lane_capacity,
            wants_spans: self.selection != EventSelection::WithoutSpans,
            wants_rest: self.selection != EventSelection::SpansAlone,
            is_ahead: track.role == TrackRole::Loader,
            open: track.open.take(),
            last_ns: track.last_ns.unwrap_or(0),
            begin_ns: u64::MAX,
            spans: 0,
            steps: 0,
            backward_times: 0,
        })
    }

    fn end_block(&mut self, info: &BlockInfo, state: BlockState) {
        let is_believed =
            info.base_ns <= self.horizon_ns() && state.begin_ns.saturating_add(MAX_AHEAD_NS) >= info.base_ns;
        if is_believed && state.begin_ns < info.base_ns {
            self.note_time(state.begin_ns);
        }
        self.losses.backward_times += state.backward_times;
        let track = self.tracks.get_mut(state.track);
        track.events = track.events.saturating_add(info.count);
        track.spans += state.spans;
        track.steps += state.steps;
        track.last_ns = Some(state.last_ns);
        track.tiling = state.tiling;
        track.lane = state.lane;
        track.open = state.open;
    }

    #[inline]
    fn add_span(&mut self, state: &mut BlockState, span: &Span) {
        state.spans += 1;
        state.begin_ns = state.begin_ns.min(span.start_ns);
        let route = match self.names.route(span.name) {
            Some(route) if route.statistics != Route::UNASSIGNED => route,
            _ => match self.assign_statistics(span.name) {
                Some(route) => route,
                None => return,
            },
        };
        if state.wants_spans {
            let ns = span.end_ns.saturating_sub(span.start_ns);
            self.spans.record(route.statistics, (state.track, span.start_ns, ns), state.is_ahead);
            self.add_box(state, span);
        }
        if route.is_phase
            && state.wants_rest
            && let Some(tiling) = &mut state.tiling
        {
            let slot = match route.slot {
                Some(slot) => slot,
                None => assign_slot(&mut self.names, &mut self.phases, span.name),
            };
            tiling.phase(slot.0, span.start_ns, span.end_ns);
            self.meters.phase(slot.index(), span.start_ns, span.end_ns);
        }
        state.close_open(span.start_ns, span.end_ns);
    }

    /// Keeps a span as a box of its track.
    #[inline]
    pub(super) fn add_box(&mut self, state: &mut BlockState, span: &Span) {
        match &mut state.lane {
            Some(lane) => lane.push(span, state.lane_capacity),
            None => self.open_lane(state, span),
        }
    }

    /// Creates a track's lane at its first span.
    #[cold]
    fn open_lane(&mut self, state: &mut BlockState, span: &Span) {
        self.tracks.prepare_lane(state.track);
        state.lane_capacity = self.tracks.lane_capacity();
        state.lane = self.tracks.get_mut(state.track).lane.take();
        if let Some(lane) = &mut state.lane {
            lane.push(span, state.lane_capacity);
        }
    }

    /// Adds a name to the span statistics; `None` if there is no room for it.
    #[cold]
    pub(super) fn assign_statistics(&mut self, name: NameId) -> Option<Route> {
        if self.names.route_mut(name).is_none() {
            self.losses.events_not_kept += 1;
            return None;
        }
        let statistics = self.spans.assign(name, &self.names);
        let route = self.names.route_mut(name)?;
        route.statistics = statistics;
        Some(*route)
    }

    fn add_step(&mut self, state: &mut BlockState, step: &Step) {
        state.steps += 1;
        state.begin_ns = state.begin_ns.min(step.start_ns);
        state.close_open(step.start_ns, step.end_ns);
        if !state.wants_rest {
            return;
        }
        let last = self.steps.last().map_or(0, |row| row.step().0);
        if !self.tracks.claim_steps(state.track, step.step.0, last) {
            self.losses.steps_elsewhere += 1;
            return;
        }
        let tiling = state.tiling.get_or_insert_with(|| Box::new(Tiling::new()));
        let tiled = tiling.step(step.step.0, step.start_ns, step.end_ns);
        self.losses.missing_steps = self.losses.missing_steps.saturating_add(tiled.missing_steps);
        self.losses.untiled_ns = self.losses.untiled_ns.saturating_add(tiled.untiled_ns);
        let phase_ns = &tiling.phase_ns()[..self.phases.slots()];
        let Tiled { start_ns, period_ns, gap_ns, .. } = tiled;
        self.steps.push(step, &Period { start_ns, period_ns, gap_ns, phase_ns });
        self.attempts.note_step(start_ns, step.end_ns);
        if let Some(loss) = step.loss {
            self.step_loss.push(step.end_ns, loss, self.loss_points);
        }
        if let Some(row) = self.steps.last() {
            self.statistics.add(&row);
            let track = self.tracks.get_mut(state.track).id;
            self.memory.end_step(track, row.ordinal(), row.period_start_ns(), row.end_ns());
        }
    }

    fn add_other(&mut self, state: &mut BlockState, track: TrackId, event: Event) {
        if !state.wants_rest {
            return;
        }
        let is_kept = match event {
            Event::Sample(sample) => {
                if let Some(signal) = self.signals.get(sample.signal) {
                    self.meters.sample(signal, sample.t_ns, sample.value);
                }
                self.signals.sample(sample.signal, sample.t_ns, sample.value)
            }
            Event::Absent(absent) => {
                self.meters.absent(absent.signal);
                self.signals.absent(absent.signal, absent.t_ns, absent.reason)
            }
            Event::Counter(counter) => self.counters.push(counter.name, counter.t_ns, counter.value),
            Event::PhaseMemory(memory) => self.memory.add_phase(memory),
            Event::Allocation(allocation) => {
                self.memory.add_allocation(track, allocation);
                true
            }
            Event::StackSample(sample) => self.sampled.count(sample.path, sample.count),
            Event::StackFrame(frame) => {
                let is_exit = self.name(frame.name).starts_with(EXIT_FUNCTIONS);
                self.stacks.push(&frame, is_exit)
            }
            Event::Rival(rival) => {
                self.rivals.push(rival);
                true
            }
            Event::Mark(Mark { name, t_ns, value, took_ns }) => {
                self.marks.push(StoredMark { track, name, t_ns, value, took_ns });
                true
            }
            Event::Open(open) => {
                state.open = Some(open);
                true
            }
            _ => false,
        };
        self.losses.events_not_kept += u64::from(!is_kept);
    }
}

/// A block being added to the store.
struct BlockSink<'a> {
    store: &'a mut Store,
    state: BlockState,
    track: TrackId,
    horizon_ns: u64,
}

impl EventSink for BlockSink<'_> {
    #[inline]
    fn span(&mut self, span: &Span) {
        self.state.note_time(self.store, span.end_ns, self.horizon_ns);
        self.store.add_span(&mut self.state, span);
    }

    fn other(&mut self, event: &Event) {
        self.state.note_time(self.store, event.t_ns(), self.horizon_ns);
        match event {
            Event::Step(step) => self.store.add_step(&mut self.state, step),
            Event::DeviceSpan(span) => self.store.add_device_span(&mut self.state, self.track, span),
            other => self.store.add_other(&mut self.state, self.track, *other),
        }
    }
}

impl BlockState {
    /// Notes the time of an event.
    #[inline]
    fn note_time(&mut self, store: &mut Store, t_ns: u64, horizon_ns: u64) {
        self.backward_times += u64::from(t_ns < self.last_ns);
        self.last_ns = t_ns;
        store.losses.implausible_times += u64::from(t_ns > horizon_ns);
        store.now_ns = if t_ns <= horizon_ns { store.now_ns.max(t_ns) } else { store.now_ns };
    }

    /// Notes that a span or step has ended, which closes the open span if it was this one or inside it.
    #[inline]
    fn close_open(&mut self, start_ns: u64, end_ns: u64) {
        if self.open.is_some_and(|open| start_ns <= open.since_ns && end_ns >= open.t_ns) {
            self.open = None;
        }
    }
}
