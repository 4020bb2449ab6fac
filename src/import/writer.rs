//! Writes a recording from events in the order of their times, such as those of a step of a table.

use std::collections::HashMap;
use std::io::{self, Write};

use super::mapping::{self, Mapping, Role};
use super::rows::MeasuredStep;
use gnntop_wire::{
    Anchor, AnyMetric, BlockEncoder, Counter, Definition, End, Event, Fact, NameId, NameKind, Origin, Place, Reported,
    Sample, SessionInfo, SignalId, SignalKind, SignalSource, Span, StepId, TrackId, TrackRole, put_anchor,
    put_definitions, put_end, put_segment,
};

/// Start of the recording's times: the first step's data wait may be before it.
pub(super) const START_NS: u64 = 1_000_000_000;
/// Blocks hold this much of the stream's time.
const BLOCK_NS: u64 = 1_000_000_000;
/// What is ready is written out beyond this many bytes.
const WRITE_LEN: usize = 1 << 20;

/// A recording that is being written.
pub(super) struct Writer<W: Write> {
    out: W,
    ready: Vec<u8>,
    names: HashMap<(NameKind, String), NameId>,
    tracks: Vec<BlockEncoder>,
    signals: u32,
    /// Wall-clock time of [`START_NS`].
    wall_ns: u64,
    flushed_ns: u64,
    newest_ns: u64,
    /// Events written.
    pub(super) events: u64,
}

/// The publisher's name.
pub(super) struct RecordingHead {
    /// The session's name.
    pub name: String,
    /// The command line.
    pub command: String,
    /// What imported it.
    pub publisher: &'static str,
    /// What it was imported from.
    pub origin: Origin,
    /// Identifies this recording; the same for the same input.
    pub session_id: u128,
    /// Wall-clock time of [`START_NS`] in nanoseconds since 1970; 0 if unknown.
    pub wall_ns: u64,
    /// Its place in a run of several ranks.
    pub place: Option<Place>,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(out: W, head: RecordingHead) -> Self {
        let RecordingHead { name, command, publisher, origin, session_id, wall_ns, place } = head;
        let mut writer = Self {
            out,
            ready: Vec::new(),
            names: HashMap::new(),
            tracks: Vec::new(),
            signals: 0,
            wall_ns,
            flushed_ns: START_NS,
            newest_ns: START_NS,
            events: 0,
        };
        let info = SessionInfo {
            session_id,
            name,
            command,
            publisher: format!("{publisher} {}", env!("CARGO_PKG_VERSION")),
            origin,
            start: writer.anchor(START_NS),
            place: place.map(Box::new),
            ..SessionInfo::default()
        };
        put_segment(&mut writer.ready, &info);
        writer
    }

    fn anchor(&self, t_ns: u64) -> Anchor {
        let wall_ns = if self.wall_ns == 0 { 0 } else { self.wall_ns.saturating_add(t_ns - START_NS) };
        Anchor { monotonic_ns: t_ns, wall_ns, boot_ns: t_ns }
    }

    pub(super) fn track(&mut self, role: TrackRole, text: &str) -> TrackId {
        let id = TrackId(self.tracks.len() as u32 + 1);
        self.tracks.push(BlockEncoder::packed(id));
        self.define(&Definition::Track { id, role, thread_id: 0, text: text.to_owned() });
        id
    }

    pub(super) fn name(&mut self, kind: NameKind, text: &str) -> NameId {
        if let Some(id) = self.names.get(&(kind, text.to_owned())) {
            return *id;
        }
        let id = NameId(self.names.len() as u32 + 1);
        self.names.insert((kind, text.to_owned()), id);
        self.define(&Definition::Name { id, kind, text: text.to_owned() });
        id
    }

    /// The id of a name which may have a known meaning; otherwise of this kind.
    pub(super) fn reported(&mut self, otherwise: NameKind, text: &str) -> NameId {
        let what = Reported::from_text(text, |phase| self.name(NameKind::Phase, phase));
        self.name(what.map_or(otherwise, NameKind::Reported), text)
    }

    pub(super) fn signal(&mut self, metric: AnyMetric, source: SignalSource) -> SignalId {
        let id = SignalId(self.signals);
        self.signals += 1;
        self.define(&Definition::Signal { id, metric, source, device: String::new() });
        id
    }

    pub(super) fn fact(&mut self, fact: Fact) {
        self.define(&Definition::Fact(fact));
    }

    fn define(&mut self, definition: &Definition) {
        put_definitions(&mut self.ready, [definition]);
    }

    /// Adds an event. Events come in the order of their times, as far as the input has them.
    pub(super) fn event(&mut self, track: TrackId, event: &Event) -> io::Result<()> {
        self.newest_ns = self.newest_ns.max(event.t_ns());
        if event.t_ns() >= self.flushed_ns.saturating_add(BLOCK_NS) {
            self.flush()?;
            self.flushed_ns = event.t_ns();
            let anchor = self.anchor(event.t_ns());
            put_anchor(&mut self.ready, &anchor);
        }
        self.events += 1;
        let Some(encoder) = self.tracks.get_mut(track.0 as usize - 1) else { return Ok(()) };
        if !encoder.push(event) {
            encoder.finish(0, &mut self.ready);
            encoder.push(event);
            self.write_out()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        for encoder in &mut self.tracks {
            encoder.finish(0, &mut self.ready);
        }
        self.write_out()
    }

    /// Writes what is ready, once it is worth it.
    fn write_out(&mut self) -> io::Result<()> {
        if self.ready.len() >= WRITE_LEN {
            self.out.write_all(&self.ready)?;
            self.ready.clear();
        }
        Ok(())
    }

    /// Ends the recording.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.flush()?;
        let anchor = self.anchor(self.newest_ns);
        put_anchor(&mut self.ready, &anchor);
        put_end(&mut self.ready, &End { t_ns: self.newest_ns, reason: "imported".to_owned() });
        self.out.write_all(&self.ready)?;
        self.out.flush()?;
        Ok(self.events)
    }
}

/// Where the values of a column go.
pub(super) enum ColumnSink {
    Signal(SignalId),
    Total(SignalId, f64),
    Counter(NameId),
}

impl ColumnSink {
    /// The sinks of the columns that have values.
    pub(super) fn for_mappings<'a, W: Write>(
        writer: &mut Writer<W>,
        mappings: impl Iterator<Item = &'a Mapping>,
    ) -> Vec<Self> {
        mappings.filter_map(|mapping| Self::for_mapping(writer, mapping)).collect()
    }

    fn for_mapping<W: Write>(writer: &mut Writer<W>, mapping: &Mapping) -> Option<Self> {
        let source = SignalSource::Column(mapping.column.clone());
        let unit = mapping.scale.map(|scale| scale.unit);
        let mut signal = |name: &str, kind| writer.signal(mapping::column_metric(name, unit, kind), source.clone());
        Some(match &mapping.role {
            Role::Signal(name) => Self::Signal(signal(name, SignalKind::Gauge)),
            Role::Cumulative(name) => Self::Signal(signal(name, SignalKind::Counter)),
            Role::Total(name) => Self::Total(signal(name, SignalKind::Counter), 0.0),
            Role::Counter(name) => Self::Counter(writer.reported(NameKind::Counter, name)),
            _ => return None,
        })
    }

    /// The reading at the beginning of the first step: what is added up begins at nothing, else the first step's part
    /// would be missing.
    pub(super) fn at_start(&self, t_ns: u64) -> Option<Event> {
        match self {
            Self::Total(signal, sum) => Some(sample(*signal, t_ns, *sum)),
            Self::Signal(_) | Self::Counter(_) => None,
        }
    }

    /// A value at the end of its step.
    pub(super) fn event(&mut self, value: f64, t_ns: u64) -> Event {
        match self {
            Self::Signal(signal) => sample(*signal, t_ns, value),
            Self::Total(signal, sum) => {
                *sum += value;
                sample(*signal, t_ns, *sum)
            }
            Self::Counter(name) => Event::Counter(Counter { name: *name, t_ns, value }),
        }
    }
}

fn sample(signal: SignalId, t_ns: u64, value: f64) -> Event {
    Event::Sample(Sample { signal, t_ns, value: value.round() as i64 })
}

/// The phases of steps: those before them, and those inside.
pub(super) struct PhaseNames {
    pub(super) before_step: Vec<NameId>,
    pub(super) inside_step: Vec<NameId>,
    /// What remains of a step of which only waits for data are known.
    pub(super) rest: Option<NameId>,
}

impl PhaseNames {
    /// Lays the phases before a step against its start and those inside it one after the other, cut at its end.
    pub(super) fn push_spans(
        &self,
        step: &MeasuredStep,
        id: StepId,
        (start_ns, end_ns): (u64, u64),
        events: &mut Vec<Event>,
    ) {
        let lead_ns: f64 = step.before_ns.iter().sum();
        let mut t_ns = start_ns.saturating_sub(lead_ns as u64);
        let before = self.before_step.iter().zip(&step.before_ns).map(|span| (span, start_ns));
        let all = before.chain(self.inside_step.iter().zip(&step.phase_ns).map(|span| (span, end_ns)));
        for ((name, ns), limit_ns) in all {
            let begin_ns = t_ns;
            t_ns = begin_ns.saturating_add(*ns as u64).min(limit_ns).max(begin_ns);
            if t_ns > begin_ns {
                events.push(Event::Span(Span { name: *name, start_ns: begin_ns, end_ns: t_ns, step: id }));
            }
        }
        let begin_ns = t_ns.max(start_ns);
        if let Some(name) = self.rest.filter(|_| end_ns > begin_ns) {
            events.push(Event::Span(Span { name, start_ns: begin_ns, end_ns, step: id }));
        }
    }
}

/// The tracks of a recording of a table.
pub(super) struct TableTracks {
    pub(super) steps: TrackId,
    pub(super) values: TrackId,
}
