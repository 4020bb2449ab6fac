//! Translates the ids and times of a later start of the run to those of the first, under which the store keeps one history.

use std::collections::HashMap;

use gnntop_wire::past::{DurationSeries, PastEntry, PastTotals, Slice, SlowStep, StepFigures};
use gnntop_wire::{
    Anchor, AnyMetric, BlockInfo, Definition, DeviceSpan, Event, EventSink, Item, NameId, NameKind, SignalId, Span,
    TrackId, TrackRole,
};

/// Ids of one kind, and the store's id for each.
#[derive(Clone, Debug)]
struct IdMap<K> {
    /// By id in the stream: the store's id; `u32::MAX` before its definition.
    to: Vec<u32>,
    /// Ids that the store knows, until they are taken.
    known: HashMap<K, Vec<u32>>,
    /// The next id that the store does not know.
    next: u32,
    /// Ids from here on are not kept by the store.
    max: u32,
}

impl<K: std::hash::Hash + Eq> IdMap<K> {
    const UNKNOWN: u32 = u32::MAX;

    fn new(known: impl Iterator<Item = (K, u32)>, most: usize) -> Self {
        let (mut by_key, mut next) = (HashMap::<K, Vec<u32>>::new(), 0);
        for (key, id) in known {
            by_key.entry(key).or_default().push(id);
            next = next.max(id.saturating_add(1));
        }
        by_key.values_mut().for_each(|ids| ids.reverse());
        Self { to: Vec::new(), known: by_key, next, max: u32::try_from(most).unwrap_or(u32::MAX) }
    }

    /// Defines an id; a repeated definition gives the same result.
    fn define(&mut self, id: u32, key: K) -> u32 {
        if id >= self.max {
            return Self::UNKNOWN;
        }
        let at = id as usize;
        if at >= self.to.len() {
            self.to.resize(at + 1, Self::UNKNOWN);
        }
        if self.to[at] == Self::UNKNOWN {
            self.to[at] = self.get_or_insert(key);
        }
        self.to[at]
    }

    /// The store's id for this key, or a new one.
    fn get_or_insert(&mut self, key: K) -> u32 {
        let known = self.known.get_mut(&key).and_then(Vec::pop);
        known.unwrap_or_else(|| {
            self.next = self.next.saturating_add(1);
            self.next - 1
        })
    }

    #[inline]
    fn get(&self, id: u32) -> u32 {
        self.to.get(id as usize).copied().unwrap_or(Self::UNKNOWN)
    }
}

/// The store's ids when another start begins.
pub(super) struct KnownIds<'a> {
    pub(super) names: Vec<(u32, NameKind, &'a str)>,
    pub(super) tracks: Vec<(u32, TrackRole, &'a str)>,
    pub(super) signals: Vec<(u32, &'a AnyMetric)>,
    /// Most names, tracks and signals that the store keeps.
    pub(super) max: [usize; 3],
}

/// Translates the ids and times of one start to those of the store.
#[derive(Clone, Debug)]
pub(super) struct Translation {
    names: IdMap<(NameKind, String)>,
    tracks: IdMap<(u8, String)>,
    signals: IdMap<AnyMetric>,
    /// To be added to its times, in nanoseconds.
    offset_ns: i64,
    /// Steps of the run before this start.
    steps_before: u64,
}

impl Translation {
    pub(super) fn new(known: &KnownIds<'_>, offset_ns: i64, steps_before: u64) -> Self {
        let [names, tracks, signals] = known.max;
        let name_keys = known.names.iter().map(|(id, kind, text)| ((*kind, (*text).to_owned()), *id));
        let track_keys = known.tracks.iter().map(|(id, role, text)| ((*role as u8, (*text).to_owned()), *id));
        let signal_keys = known.signals.iter().map(|(id, metric)| ((*metric).clone(), *id));
        let mut name_ids = IdMap::new(name_keys, names);
        // The first id means "no name".
        name_ids.next = name_ids.next.max(1);
        Self {
            names: name_ids,
            tracks: IdMap::new(track_keys, tracks),
            signals: IdMap::new(signal_keys, signals),
            offset_ns,
            steps_before,
        }
    }

    /// The store's id for a name that is not the program's.
    pub(super) fn define_name(&mut self, text: &str) -> NameId {
        NameId(self.names.get_or_insert((NameKind::Text, text.to_owned())))
    }

    #[inline]
    pub(super) fn time(&self, t_ns: u64) -> u64 {
        t_ns.saturating_add_signed(self.offset_ns)
    }

    #[inline]
    fn name(&self, id: NameId) -> NameId {
        if id == NameId::NONE { id } else { NameId(self.names.get(id.0)) }
    }

    fn track(&self, id: TrackId) -> TrackId {
        TrackId(self.tracks.get(id.0))
    }

    fn signal(&self, id: SignalId) -> SignalId {
        SignalId(self.signals.get(id.0))
    }

    /// Translates an item for the store; [`Translated`] translates events one by one.
    pub(super) fn item<'a>(&mut self, item: Item<'a>) -> Item<'a> {
        match item {
            Item::Definitions(all) => Item::Definitions(all.into_iter().map(|one| self.definition(one)).collect()),
            Item::Anchor(anchor) => Item::Anchor(self.anchor(anchor)),
            Item::Block(info, events) => {
                let (track, base_ns) = (self.track(info.track), self.time(info.base_ns));
                Item::Block(BlockInfo { track, base_ns, ..info }, events)
            }
            Item::Past(entries) => Item::Past(entries.into_iter().map(|past| self.past(past)).collect()),
            Item::End(mut end) => {
                end.t_ns = self.time(end.t_ns);
                Item::End(end)
            }
            other => other,
        }
    }

    pub(super) fn anchor(&self, anchor: Anchor) -> Anchor {
        Anchor { monotonic_ns: self.time(anchor.monotonic_ns), boot_ns: self.time(anchor.boot_ns), ..anchor }
    }

    fn definition(&mut self, mut definition: Definition) -> Definition {
        match &mut definition {
            Definition::Name { id, kind, text } => {
                match kind {
                    NameKind::Path(caller) => *caller = self.name(*caller),
                    NameKind::Reported(what) => {
                        if let Some(phase) = what.phase_mut() {
                            *phase = self.name(*phase);
                        }
                    }
                    _ => (),
                }
                id.0 = self.names.define(id.0, (*kind, text.clone()));
            }
            Definition::Track { id, role, text, .. } => id.0 = self.tracks.define(id.0, (*role as u8, text.clone())),
            Definition::Signal { id, metric, .. } => id.0 = self.signals.define(id.0, metric.clone()),
            _ => (),
        }
        definition
    }

    #[inline]
    fn span(&self, span: &Span) -> Span {
        let (start_ns, end_ns) = (self.time(span.start_ns), self.time(span.end_ns));
        Span { name: self.name(span.name), start_ns, end_ns, step: span.step }
    }

    fn event(&self, event: &Event) -> Event {
        let mut event = *event;
        match &mut event {
            Event::Span(span) => *span = self.span(span),
            Event::Step(e) => (e.start_ns, e.end_ns) = (self.time(e.start_ns), self.time(e.end_ns)),
            Event::Counter(e) => (e.name, e.t_ns) = (self.name(e.name), self.time(e.t_ns)),
            Event::Mark(e) => (e.name, e.t_ns) = (self.name(e.name), self.time(e.t_ns)),
            Event::Open(e) => {
                (e.name, e.since_ns, e.t_ns) = (self.name(e.name), self.time(e.since_ns), self.time(e.t_ns));
            }
            Event::Sample(e) => (e.signal, e.t_ns) = (self.signal(e.signal), self.time(e.t_ns)),
            Event::Absent(e) => {
                (e.signal, e.t_ns, e.reason) = (self.signal(e.signal), self.time(e.t_ns), self.name(e.reason));
            }
            Event::Allocation(e) => (e.phase, e.t_ns) = (self.name(e.phase), self.time(e.t_ns)),
            Event::PhaseMemory(e) => (e.phase, e.t_ns) = (self.name(e.phase), self.time(e.t_ns)),
            Event::DeviceSpan(e) => self.device_span(e),
            Event::StackFrame(e) => (e.name, e.t_ns) = (self.name(e.name), self.time(e.t_ns)),
            Event::StackSample(e) => (e.path, e.t_ns) = (self.name(e.path), self.time(e.t_ns)),
            Event::Rival(e) => (e.name, e.t_ns) = (self.name(e.name), self.time(e.t_ns)),
            _ => (),
        }
        event
    }

    fn device_span(&self, span: &mut DeviceSpan) {
        span.name = self.name(span.name);
        let times = [&mut span.start_ns, &mut span.end_ns, &mut span.issued_start_ns, &mut span.issued_end_ns];
        times.into_iter().for_each(|t_ns| *t_ns = self.time(*t_ns));
    }

    fn past(&self, past: PastEntry) -> PastEntry {
        match past {
            PastEntry::Totals(mut whole) => {
                self.totals(&mut whole);
                PastEntry::Totals(whole)
            }
            PastEntry::Durations(DurationSeries::Phase(name), durations) => {
                PastEntry::Durations(DurationSeries::Phase(self.name(name)), durations)
            }
            PastEntry::Durations(DurationSeries::Span { name, ahead_ns }, durations) => {
                PastEntry::Durations(DurationSeries::Span { name: self.name(name), ahead_ns }, durations)
            }
            PastEntry::Slice(mut slice) => {
                self.slice(&mut slice);
                PastEntry::Slice(slice)
            }
            PastEntry::Slow(mut slow) => {
                let SlowStep { figures, spans } = &mut *slow;
                self.figures(figures);
                spans.iter_mut().for_each(|span| *span = self.span(span));
                PastEntry::Slow(slow)
            }
            other => other,
        }
    }

    fn totals(&self, whole: &mut PastTotals) {
        (whole.first_ns, whole.last_ns) = (self.time(whole.first_ns), self.time(whole.last_ns));
        for end in &mut whole.tracks {
            (end.track, end.last_ns) = (self.track(end.track), self.time(end.last_ns));
        }
        if let Some(unfinished) = &mut whole.unfinished {
            unfinished.track = self.track(unfinished.track);
            unfinished.last_end_ns = self.time(unfinished.last_end_ns);
            for (name, start_ns, end_ns) in &mut unfinished.phases {
                (*name, *start_ns, *end_ns) = (self.name(*name), self.time(*start_ns), self.time(*end_ns));
            }
        }
        for memory in &mut whole.memory {
            (memory.phase, memory.t_ns) = (self.name(memory.phase), self.time(memory.t_ns));
        }
        for (signal, readings) in &mut whole.signals {
            (*signal, readings.last_ns) = (self.signal(*signal), self.time(readings.last_ns));
        }
        for (name, readings) in &mut whole.counters {
            (*name, readings.last_ns) = (self.name(*name), self.time(readings.last_ns));
        }
    }

    fn slice(&self, slice: &mut Slice) {
        (slice.from_ns, slice.to_ns) = (self.time(slice.from_ns), self.time(slice.to_ns));
        slice.first_ordinal = slice.first_ordinal.saturating_add(self.steps_before);
        slice.phases.iter_mut().for_each(|(name, _)| *name = self.name(*name));
        [&mut slice.worst, &mut slice.median].into_iter().flatten().for_each(|figures| self.figures(figures));
        for (signal, readings) in &mut slice.signals {
            (*signal, readings.last_ns) = (self.signal(*signal), self.time(readings.last_ns));
        }
        for (name, readings) in &mut slice.counters {
            (*name, readings.last_ns) = (self.name(*name), self.time(readings.last_ns));
        }
        for rival in &mut slice.rivals {
            (rival.name, rival.t_ns) = (self.name(rival.name), self.time(rival.t_ns));
        }
        for (track, mark) in &mut slice.marks {
            (*track, mark.name, mark.t_ns) = (self.track(*track), self.name(mark.name), self.time(mark.t_ns));
        }
    }

    fn figures(&self, figures: &mut StepFigures) {
        figures.ordinal = figures.ordinal.saturating_add(self.steps_before);
        figures.period_start_ns = self.time(figures.period_start_ns);
        figures.step.start_ns = self.time(figures.step.start_ns);
        figures.step.end_ns = self.time(figures.step.end_ns);
        figures.phases.iter_mut().for_each(|(name, _)| *name = self.name(*name));
    }
}

/// Passes on events, translated for the store.
pub(super) struct Translated<'a, S> {
    pub(super) by: &'a Translation,
    pub(super) to: &'a mut S,
}

impl<S: EventSink> EventSink for Translated<'_, S> {
    #[inline]
    fn span(&mut self, span: &Span) {
        self.to.span(&self.by.span(span));
    }

    fn other(&mut self, event: &Event) {
        self.to.other(&self.by.event(event));
    }
}
