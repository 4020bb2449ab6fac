//! The events of a step, as they go into the recording.

use std::io::Write;

use gnntop_wire::{
    Counter, Event, NameId, NameKind, Sample, SignalId, SignalKind, SignalSource, Span, StepId, TrackId,
};

use super::mapping::{Mapping, Role};
use super::metric;
use super::rows::MeasuredStep;
use super::writer::Writer;

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
        let mut signal = |name: &str, kind| writer.signal(metric::column_metric(name, unit, kind), source.clone());
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
    }
}

/// The tracks of a recording of a table.
pub(super) struct TableTracks {
    pub(super) steps: TrackId,
    pub(super) values: TrackId,
}
