//! From a table with a row for each step to a recording.
//!
//! The table is read twice, once to survey it and once to write it, and three times where marks are given by their steps.

use std::io::Write;
use std::path::Path;

use gnntop_analysis::store::SignalOrigin;
use gnntop_wire::{Counter, Event, NameId, NameKind, Sample, SignalId, SignalKind, Span, Step, StepId, TrackRole};

use super::error::ImportError;
use super::given::Given;
use super::layout::Survey;
use super::mapping::{Mapping, Role};
use super::marks::{self, MarkFile, Placed};
use super::rows::{Measured, Rows};
use super::table::Table;
use super::writer::{Head, START_NS, Writer};

const PUBLISHER: &str = "gnntop import csv";
/// What came of an import.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// Steps.
    pub steps: u64,
    /// Events.
    pub events: u64,
    /// How the columns were understood, one a line.
    pub notes: Vec<String>,
}

/// Imports the table at `path`, with the columns that `mappings` name and, beyond them, those whose names are plain.
///
/// Rows are steps. A step lies before its time stamp if there is one; without, steps follow each other and the time
/// between them is not known. Phases follow each other from the step's start. A mark that has only a step's number
/// lies inside that step if its duration shows there, else after it. `given` says which rows count, and more.
///
/// # Errors
/// When a file cannot be read or is no such table, or the recording cannot be written.
pub fn csv(
    path: &Path,
    mappings: &[Mapping],
    marks: &[MarkFile],
    given: &Given,
    out: impl Write,
) -> Result<Imported, ImportError> {
    let table = Table::open(path)?;
    let mut mappings = complete(mappings, &table.columns);
    if !mappings.iter().any(|mapping| mapping.role == Role::Duration) {
        let reason = "no column tells how long a step took: name it with --column duration=COLUMN:UNIT".to_owned();
        return Err(ImportError::Nothing { path: table.path().to_owned(), reason });
    }
    mappings.sort_by_key(|mapping| !matches!(mapping.role, Role::Before(_) | Role::Phase(_)));
    let rows = Rows::new(&table, &mappings, given)?;
    let survey = Survey::of(&rows, path, !marks.is_empty())?;
    if survey.steps == 0 {
        return Err(ImportError::Nothing {
            path: table.path().to_owned(),
            reason: if given.only.is_empty() { "no rows below the head" } else { "no rows that count" }.to_owned(),
        });
    }
    let facts = given.facts.iter().map(|(name, value)| Placed { t_ns: START_NS, name, value: Some(*value) });
    let marks: Vec<Placed<'_>> = facts.chain(marks::place(marks, &rows, &survey)?).collect();
    let mut notes: Vec<String> = mappings.iter().map(note).collect();
    if !survey.has_times {
        notes.push("no time stamps: steps follow each other, and the time between them is not known".to_owned());
    }
    let name = path.file_stem().map_or_else(|| "imported".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let gaps = if survey.has_times { "" } else { "; no time stamps: the time between steps is not known" };
    let head = Head {
        name,
        command: format!("imported from {}{gaps}", path.display()),
        publisher: PUBLISHER,
        session_id: survey.session_id,
        wall_ns: survey.wall_ns,
        place: given.place.clone(),
    };
    let events = write(Writer::new(out, head), &mappings, &rows, &survey, &marks)?;
    Ok(Imported { steps: survey.steps, events, notes })
}

/// The given mappings, and guesses for roles and columns that they leave open.
fn complete(given: &[Mapping], columns: &[String]) -> Vec<Mapping> {
    let open = |guess: &Mapping| !given.iter().any(|known| known.role == guess.role || known.column == guess.column);
    given.iter().cloned().chain(Mapping::guess(columns).into_iter().filter(open)).collect()
}

fn note(mapping: &Mapping) -> String {
    format!("{} is {:?}", mapping.column, mapping.role).to_lowercase()
}

/// Where the values of a mapping go.
enum Sink {
    Signal(SignalId),
    Total(SignalId, f64),
    Counter(NameId),
}

fn sinks<W: Write>(writer: &mut Writer<W>, mappings: &[Mapping]) -> Vec<Sink> {
    let sink = |mapping: &Mapping| {
        let source = SignalOrigin::Column(&mapping.column).to_string();
        Some(match &mapping.role {
            Role::Signal(name) => Sink::Signal(writer.signal(name, mapping.scale.unit, SignalKind::Gauge, &source)),
            Role::Total(name) => {
                Sink::Total(writer.signal(name, mapping.scale.unit, SignalKind::Counter, &source), 0.0)
            }
            Role::Counter(name) => Sink::Counter(writer.name(NameKind::Counter, name)),
            _ => return None,
        })
    };
    mappings.iter().filter_map(sink).collect()
}

fn write<W: Write>(
    mut writer: Writer<W>,
    mappings: &[Mapping],
    rows: &Rows<'_>,
    survey: &Survey,
    marks: &[Placed<'_>],
) -> Result<u64, ImportError> {
    let main = writer.track(TrackRole::Training, "steps");
    let is_value = |mapping: &Mapping| matches!(mapping.role, Role::Signal(_) | Role::Total(_) | Role::Counter(_));
    let sensors = if mappings.iter().any(is_value) { writer.track(TrackRole::Sensors, "columns") } else { main };
    let phase = |mapping: &Mapping| match &mapping.role {
        Role::Before(name) => Some((true, name.clone())),
        Role::Phase(name) => Some((false, name.clone())),
        _ => None,
    };
    let phases: Vec<(bool, NameId)> =
        mappings.iter().filter_map(phase).map(|(before, name)| (before, writer.name(NameKind::Phase, &name))).collect();
    let named = |is_before: bool| phases.iter().filter(move |p| p.0 == is_before).map(|p| p.1).collect::<Vec<NameId>>();
    let (before, inside) = (named(true), named(false));
    let mut sinks = sinks(&mut writer, mappings);
    let (mut marks, mut layout, mut number) = (marks.iter().peekable(), survey.layout(), 0);
    rows.each(|step| {
        number += 1;
        let id = StepId(if survey.is_numbered { step.step } else { number });
        let (start_ns, end_ns) = layout.lay(step);
        let mut events = phases_of(step, id, (&before, &inside), (start_ns, end_ns));
        while let Some(mark) = marks.next_if(|mark| mark.t_ns <= end_ns) {
            events.push(mark.event(&mut writer));
        }
        events.sort_by_key(Event::t_ns);
        for event in &events {
            writer.event(main, event)?;
        }
        let Measured { epoch, batch, loss, .. } = *step;
        writer.event(main, &Event::Step(Step { step: id, epoch, start_ns, end_ns, batch, loss, usage: None }))?;
        for (sink, value) in sinks.iter_mut().zip(&step.values) {
            if let Some(value) = value {
                writer.event(sensors, &value_event(sink, *value, end_ns))?;
            }
        }
        Ok(())
    })?;
    for mark in marks {
        let event = mark.event(&mut writer);
        writer.event(main, &event)?;
    }
    Ok(writer.finish()?)
}

fn value_event(sink: &mut Sink, value: f64, t_ns: u64) -> Event {
    match sink {
        Sink::Signal(signal) => Event::Sample(Sample { signal: *signal, t_ns, value: value.round() as i64 }),
        Sink::Total(signal, sum) => {
            *sum += value;
            Event::Sample(Sample { signal: *signal, t_ns, value: sum.round() as i64 })
        }
        Sink::Counter(name) => Event::Counter(Counter { name: *name, t_ns, value }),
    }
}

/// Lays the phases before a step against its start and those inside it one after the other, cut at its end.
fn phases_of(
    step: &Measured,
    id: StepId,
    (before, inside): (&[NameId], &[NameId]),
    (start_ns, end_ns): (u64, u64),
) -> Vec<Event> {
    let lead_ns: f64 = step.before_ns.iter().sum();
    let mut t_ns = start_ns.saturating_sub(lead_ns as u64);
    let before = before.iter().zip(&step.before_ns).map(|span| (span, start_ns));
    let all = before.chain(inside.iter().zip(&step.phase_ns).map(|span| (span, end_ns)));
    let mut events = Vec::new();
    for ((name, ns), limit_ns) in all {
        let begin_ns = t_ns;
        t_ns = begin_ns.saturating_add(*ns as u64).min(limit_ns).max(begin_ns);
        if t_ns > begin_ns {
            events.push(Event::Span(Span { name: *name, start_ns: begin_ns, end_ns: t_ns, step: id }));
        }
    }
    events
}
