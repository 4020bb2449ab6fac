//! Takes the items of a stream and keeps their figures.

use std::collections::BTreeMap;

use gnntop_wire::past::{PastEntry, PastTotals, StepFigures};
use gnntop_wire::{
    BlockInfo, Definition, Event, Events, FactKey, Item, NameId, NameKind, PhaseMemory, SessionInfo, SignalKind, Span,
    Step, TrackId, TrackRole,
};

use crate::merge::add_sum;
use crate::readings::LastReadings;
use crate::series::AllDurations;
use crate::slices::{Slices, sums};
use crate::slowest::Slowest;
use crate::tiling::{MAX_PHASES, Tiled};
use crate::tracks::Tracks;

/// Most names kept.
const MAX_NAMES: u32 = 1 << 16;
/// Most definitions repeated.
const MAX_DEFINITIONS: usize = 1 << 17;
/// Most phases with memory totals.
const MAX_ACCOUNTS: usize = 256;
/// Longest plausible span: a day.
const BELIEVED_NS: u64 = 86_400_000_000_000;

/// The subject of a definition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Defined {
    Name(u32),
    Track(u32),
    Signal(u32),
    Fact(FactKey),
}

/// Finished slices and slow steps, each returned once.
#[derive(Debug, Default)]
pub struct Closed {
    /// Seconds.
    pub seconds: Vec<PastEntry>,
    /// Minutes, and the slowest steps of finished hours.
    pub minutes: Vec<PastEntry>,
}

/// Figures over all items applied, in bounded memory.
#[derive(Debug)]
pub struct Digest {
    info: Option<SessionInfo>,
    definitions: BTreeMap<Defined, Definition>,
    /// By id of the name: its slot, if it is a phase.
    phases: Vec<Option<u8>>,
    is_phase: Vec<bool>,
    /// By slot.
    pub(crate) phase_names: Vec<NameId>,
    pub(crate) tracks: Tracks,
    pub(crate) totals: PastTotals,
    pub(crate) has_begun: bool,
    /// The next event passed on its own, if it directly follows the last one: track, number and drops.
    expected: Option<(TrackId, u64, u64)>,
    /// Steps of the past that it continues.
    pub(crate) steps_before: Option<u64>,
    pub(crate) durations: AllDurations,
    pub(crate) last: LastReadings,
    pub(crate) slices: Slices,
    pub(crate) slowest: Slowest,
}

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

impl Digest {
    /// A digest of nothing yet.
    pub fn new() -> Self {
        Self::with_slowest(0)
    }

    /// An empty digest. Keeps this many of the slowest steps of the whole run with all their spans, besides those of
    /// each hour with their longest.
    pub fn with_slowest(steps: usize) -> Self {
        Self {
            info: None,
            definitions: BTreeMap::new(),
            phases: Vec::new(),
            is_phase: Vec::new(),
            phase_names: Vec::new(),
            tracks: Tracks::default(),
            totals: PastTotals::default(),
            has_begun: false,
            expected: None,
            steps_before: None,
            durations: AllDurations::new(),
            last: LastReadings::default(),
            slices: Slices::default(),
            slowest: Slowest::with_capacity(steps),
        }
    }

    /// Applies the next item of the stream.
    pub fn apply(&mut self, item: Item<'_>) {
        match item {
            Item::Segment(info) => {
                self.totals.next_segment = info.segment + 1;
                self.info = Some(info);
            }
            Item::Definitions(definitions) => definitions.into_iter().for_each(|definition| self.define(definition)),
            Item::Anchor(anchor) => self.note_time(anchor.monotonic_ns),
            Item::Block(info, events) => self.apply_block(&info, events),
            Item::Past(entries) => entries.into_iter().for_each(|past| self.resume(past)),
            _ => (),
        }
    }

    /// The publisher, as of the last segment; `None` before the first.
    pub fn info(&self) -> Option<&SessionInfo> {
        self.info.as_ref()
    }

    /// All definitions so far.
    pub fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.definitions.values()
    }

    /// The slices and slow steps that have finished since the last call.
    pub fn take_closed(&mut self) -> Closed {
        let (seconds, minutes) = self.slices.take_closed();
        let slice = |slice| PastEntry::Slice(Box::new(slice));
        let slow = self.slowest.take_closed().into_iter().map(|slow| PastEntry::Slow(Box::new(slow)));
        Closed {
            seconds: seconds.into_iter().map(slice).collect(),
            minutes: minutes.into_iter().map(slice).chain(slow).collect(),
        }
    }

    /// Figures over the whole time, with the unfinished slices and slow steps. `files` says how many bytes of which files
    /// belong to them.
    pub fn past_entries(&self, files: Vec<(u64, u64)>) -> Vec<PastEntry> {
        let mut whole = self.totals.clone();
        whole.files = files;
        whole.tracks = self.tracks.ends();
        whole.unfinished = self.tracks.unfinished(&self.phase_names);
        whole.signals = self.last.signals();
        whole.counters = self.last.counters();
        let mut entries = vec![PastEntry::Totals(Box::new(whole))];
        entries.extend(self.durations.entries());
        let (seconds, minute) = self.slices.open();
        entries.extend(minute.into_iter().chain(seconds).map(|slice| PastEntry::Slice(Box::new(slice))));
        let slowest = self.slowest.with_all_spans().chain(self.slowest.open());
        entries.extend(slowest.map(|slow| PastEntry::Slow(Box::new(slow.clone()))));
        entries
    }

    fn note_time(&mut self, t_ns: u64) {
        let whole = &mut self.totals;
        whole.first_ns = if self.has_begun { whole.first_ns.min(t_ns) } else { t_ns };
        whole.last_ns = whole.last_ns.max(t_ns);
        self.has_begun = true;
    }

    fn define(&mut self, definition: Definition) {
        let key = match &definition {
            Definition::Name { id, kind, .. } => {
                self.note_kind(*id, *kind);
                Defined::Name(id.0)
            }
            Definition::Track { id, role, text, .. } => {
                self.tracks.define(*id, *role, text);
                Defined::Track(id.0)
            }
            Definition::Signal { id, metric, .. } => {
                self.last.define(*id, metric.kind() == SignalKind::Counter);
                Defined::Signal(id.0)
            }
            Definition::Fact(fact) => Defined::Fact(fact.key()),
            _ => return,
        };
        if self.definitions.len() < MAX_DEFINITIONS || self.definitions.contains_key(&key) {
            self.definitions.insert(key, definition);
        }
    }

    fn note_kind(&mut self, id: NameId, kind: NameKind) {
        if id.0 >= MAX_NAMES {
            return;
        }
        let at = id.0 as usize;
        if at >= self.is_phase.len() {
            self.is_phase.resize(at + 1, false);
            self.phases.resize(at + 1, None);
        }
        self.is_phase[at] = kind == NameKind::Phase;
    }

    /// The slot of a phase, assigned now if it has none; `None` for a span that is not a phase. Once all slots are taken,
    /// further phases share the last one.
    pub(crate) fn slot(&mut self, name: NameId) -> Option<u8> {
        let at = name.0 as usize;
        if !*self.is_phase.get(at)? {
            return None;
        }
        if self.phases[at].is_none() {
            if self.phase_names.len() < MAX_PHASES {
                self.phase_names.push(name);
            }
            self.phases[at] = Some(self.phase_names.len() as u8 - 1);
        }
        self.phases[at]
    }

    fn apply_block(&mut self, info: &BlockInfo, events: Events<'_>) {
        if self.tracks.begin_block(info).is_none() {
            return;
        }
        let mut begin_ns = info.base_ns;
        for event in events {
            self.totals.last_ns = self.totals.last_ns.max(event.t_ns());
            self.event(info.track, &event);
            if let Event::Span(Span { start_ns, .. }) | Event::Step(Step { start_ns, .. }) = event {
                begin_ns = begin_ns.min(start_ns);
            }
        }
        // An event that began long before it ended has a wrong clock.
        self.note_time(if info.base_ns - begin_ns <= BELIEVED_NS { begin_ns } else { info.base_ns });
    }

    /// Takes a single event of a track, with its number and the track's dropped events so far.
    pub fn push(&mut self, track: TrackId, seq: u64, dropped: u64, event: &Event) {
        if self.expected != Some((track, seq, dropped)) && self.tracks.begin(track, seq, dropped).is_none() {
            return;
        }
        self.expected = Some((track, seq.saturating_add(1), dropped));
        if let Some(track) = self.tracks.get(track) {
            track.end.next_seq = seq.saturating_add(1);
            track.end.events = track.end.events.saturating_add(1);
        }
        let t_ns = event.t_ns();
        let begin_ns = match event {
            Event::Span(Span { start_ns, .. }) | Event::Step(Step { start_ns, .. }) => *start_ns.min(&t_ns),
            _ => t_ns,
        };
        self.note_time(if t_ns - begin_ns <= BELIEVED_NS { begin_ns } else { t_ns });
        self.totals.last_ns = self.totals.last_ns.max(t_ns);
        self.event(track, event);
    }

    fn event(&mut self, track: TrackId, event: &Event) {
        match event {
            Event::Span(span) => self.span(track, span),
            Event::Step(step) => self.step(track, step),
            other => self.other(track, *other),
        }
    }

    fn span(&mut self, id: TrackId, span: &Span) {
        let slot = self.slot(span.name);
        let is_training = self.tracks.is_training(id);
        let Some(track) = self.tracks.get(id) else { return };
        track.end.spans += 1;
        track.end.last_ns = span.end_ns;
        let ns = span.end_ns.saturating_sub(span.start_ns);
        self.durations.span(span.name, ns, track.role == TrackRole::Loader);
        if let Some((tiling, slot)) = track.tiling.as_mut().zip(slot) {
            tiling.phase(slot, span.start_ns, span.end_ns);
        }
        if is_training && track.tiling.is_some() {
            self.slowest.span(span);
        }
    }

    fn step(&mut self, id: TrackId, step: &Step) {
        if !self.tracks.claim_steps(id, step.step.0) {
            return;
        }
        let Some(track) = self.tracks.get(id) else { return };
        track.end.steps += 1;
        track.end.last_ns = step.end_ns;
        let Some(tiling) = &mut track.tiling else { return };
        let Tiled { start_ns, gap_ns, .. } = tiling.step(step.step.0, step.start_ns, step.end_ns);
        let spent = self.phase_names.iter().zip(tiling.phase_ns()).filter(|(_, ns)| **ns > 0);
        let figures = StepFigures {
            ordinal: self.totals.steps,
            step: *step,
            period_start_ns: start_ns,
            gap_ns,
            phases: spent.map(|(name, ns)| (*name, *ns)).collect(),
        };
        // Steps by time, and their number, include those that a deep trace has slowed down.
        if !step.is_traced {
            self.durations.step(&figures);
            self.slowest.step(&figures);
            self.add_to_totals(step, figures.period_ns());
        } else {
            self.slowest.skip_step();
        }
        self.slices.step(&figures);
        self.totals.steps += 1;
    }

    fn add_to_totals(&mut self, step: &Step, period_ns: u64) {
        let whole = &mut self.totals;
        whole.epochs = match whole.epochs {
            _ if whole.steps == 0 => (step.epoch, step.epoch, 0),
            (first, last, changes) => (first, step.epoch, changes + u64::from(last != step.epoch)),
        };
        whole.batch.iter_mut().zip(sums(step, period_ns)).for_each(|(sum, next)| add_sum(sum, &next));
        if let Some(usage) = &step.usage {
            let sum = whole.usage.get_or_insert_default();
            sum.minor_faults = sum.minor_faults.saturating_add(usage.minor_faults);
            sum.major_faults = sum.major_faults.saturating_add(usage.major_faults);
            sum.voluntary_switches = sum.voluntary_switches.saturating_add(usage.voluntary_switches);
            sum.involuntary_switches = sum.involuntary_switches.saturating_add(usage.involuntary_switches);
        }
        if let Some(loss) = step.loss {
            whole.losses = Some((whole.losses.map_or(loss, |(first, _)| first), loss));
        }
    }

    fn other(&mut self, track: TrackId, event: Event) {
        match event {
            Event::Sample(sample) => {
                let value = sample.value as f64;
                let increase = self.last.signal(sample.signal, sample.t_ns, value);
                self.slices.signal(sample.signal, sample.t_ns, value, increase);
            }
            Event::Absent(absent) => self.last.absent(absent.signal),
            Event::Counter(counter) if counter.value.is_finite() => {
                let increase = self.last.counter(counter.name, counter.t_ns, counter.value);
                self.slices.counter(counter.name, counter.t_ns, counter.value, increase);
            }
            Event::Mark(mark) => self.slices.mark(track, mark),
            Event::Rival(rival) => self.slices.rival(rival),
            Event::PhaseMemory(memory) => self.memory(memory),
            _ => (),
        }
    }

    fn memory(&mut self, memory: PhaseMemory) {
        let all = &mut self.totals.memory;
        match all.iter().position(|known| known.phase == memory.phase) {
            Some(at) => all[at] = memory,
            None if all.len() < MAX_ACCOUNTS => all.push(memory),
            None => (),
        }
    }
}
