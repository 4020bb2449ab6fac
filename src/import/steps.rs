//! From a table with a row for each step to a recording.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::Path;

use gnntop_analysis::store::SignalOrigin;
use gnntop_wire::{
    BatchShape, Counter, Event, Mark, NameId, NameKind, Sample, SignalId, SignalKind, Span, Step, StepId, TrackRole,
};

use super::error::ImportError;
use super::given::{Given, counts};
use super::mapping::{Mapping, Role, Scale};
use super::table::{Row, Table};
use super::writer::{Head, START_NS, Writer};

const PUBLISHER: &str = "gnntop import csv";
/// No step takes longer, and no table spans more: a hundred years.
const LONGEST_NS: f64 = 3.2e18;

/// Events in a table of their own, such as garbage collections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkFile {
    /// What the marks are called.
    pub name: String,
    /// The table: with a column `step` or `step_idx`, or `timestamp_s`, and maybe a duration.
    pub path: std::path::PathBuf,
}

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

/// One step, as the table tells it. Times are nanoseconds.
struct Measured {
    step: u64,
    epoch: u64,
    end_ns: Option<f64>,
    duration_ns: f64,
    before_ns: Vec<f64>,
    phase_ns: Vec<f64>,
    batch: BatchShape,
    loss: Option<f64>,
    values: Vec<Option<f64>>,
}

/// One mark: at a time, or somewhere in or after a step.
struct Marked {
    step: Option<u64>,
    end_ns: Option<f64>,
    duration_ns: Option<f64>,
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
    let mut table = Table::open(path)?;
    let mut mappings = complete(mappings, &table.columns);
    if !mappings.iter().any(|mapping| mapping.role == Role::Duration) {
        let reason = "no column tells how long a step took: name it with --column duration=COLUMN:UNIT".to_owned();
        return Err(ImportError::Nothing { path: table.path().to_owned(), reason });
    }
    mappings.sort_by_key(|mapping| !matches!(mapping.role, Role::Before(_) | Role::Phase(_)));
    let mut steps = Vec::new();
    let columns = positions(&table, &mappings)?;
    let conditions = given.conditions(&table)?;
    table.each(|row| {
        if !counts(row, &conditions) {
            return Ok(());
        }
        steps.push(measured(row, &columns, steps.len() as u64 + 1)?);
        Ok(())
    })?;
    if steps.is_empty() {
        return Err(ImportError::Nothing {
            path: table.path().to_owned(),
            reason: if given.only.is_empty() { "no rows below the head" } else { "no rows that count" }.to_owned(),
        });
    }
    renumber(&mut steps);
    let laid = Laid::of(&steps);
    let facts = given.facts.iter().map(|(name, value)| (START_NS, name.clone(), Some(*value)));
    let marks: Vec<_> = facts.chain(place_marks(marks, &steps, &laid)?).collect();
    let mut notes: Vec<String> = mappings.iter().map(note).collect();
    if !laid.has_times {
        notes.push("no time stamps: steps follow each other, and the time between them is not known".to_owned());
    }
    let name = path.file_stem().map_or_else(|| "imported".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let gaps = if laid.has_times { "" } else { "; no time stamps: the time between steps is not known" };
    let head = Head {
        name,
        command: format!("imported from {}{gaps}", path.display()),
        publisher: PUBLISHER,
        session_id: session_id(path, &steps),
        wall_ns: laid.wall_ns,
        place: given.place.clone(),
    };
    let events = write(Writer::new(out, head), &mappings, &steps, &laid, &marks)?;
    Ok(Imported { steps: steps.len() as u64, events, notes })
}

/// The given mappings, and guesses for roles and columns that they leave open.
fn complete(given: &[Mapping], columns: &[String]) -> Vec<Mapping> {
    let open = |guess: &Mapping| !given.iter().any(|known| known.role == guess.role || known.column == guess.column);
    given.iter().cloned().chain(Mapping::guess(columns).into_iter().filter(open)).collect()
}

fn note(mapping: &Mapping) -> String {
    format!("{} is {:?}", mapping.column, mapping.role).to_lowercase()
}

fn positions<'a>(table: &Table, mappings: &'a [Mapping]) -> Result<Vec<(&'a Mapping, usize)>, ImportError> {
    mappings.iter().map(|mapping| Ok((mapping, table.position(&mapping.column)?))).collect()
}

fn measured(row: &Row<'_>, columns: &[(&Mapping, usize)], number: u64) -> Result<Measured, ImportError> {
    let mut step = Measured {
        step: number,
        epoch: 0,
        end_ns: None,
        duration_ns: 0.0,
        before_ns: Vec::new(),
        phase_ns: Vec::new(),
        batch: BatchShape::default(),
        loss: None,
        values: Vec::new(),
    };
    for (mapping, at) in columns {
        let Scale { factor, .. } = mapping.scale;
        let time = || Ok::<f64, ImportError>((row.needed(*at, 0.0, "time")? * factor).min(LONGEST_NS));
        let some_time =
            || Ok::<f64, ImportError>((row.number(*at, 0.0, "time")?.unwrap_or(0.0) * factor).min(LONGEST_NS));
        let count = || Ok::<Option<u64>, ImportError>(row.number(*at, 0.0, "count")?.map(|n| n as u64));
        match &mapping.role {
            Role::Step => step.step = count()?.unwrap_or(number),
            Role::Epoch => step.epoch = count()?.unwrap_or(0),
            Role::End => step.end_ns = Some(time()?),
            Role::Duration => step.duration_ns = time()?,
            Role::Loss => step.loss = row.text(*at).parse().ok(),
            Role::Graphs => step.batch.graphs = count()?,
            Role::Nodes => step.batch.nodes = count()?,
            Role::Edges => step.batch.edges = count()?,
            Role::Seeds => step.batch.seeds = count()?,
            Role::Before(_) => step.before_ns.push(some_time()?),
            Role::Phase(_) => step.phase_ns.push(some_time()?),
            Role::Signal(_) | Role::Total(_) | Role::Counter(_) => {
                step.values.push(row.number(*at, f64::MIN, "number")?.map(|value| value * factor));
            }
        }
    }
    Ok(step)
}

/// Numbers the steps by their rows where their own numbers start over or begin at 0.
fn renumber(steps: &mut [Measured]) {
    let is_good =
        steps.first().is_some_and(|first| first.step > 0) && steps.windows(2).all(|pair| pair[0].step < pair[1].step);
    if !is_good {
        steps.iter_mut().zip(1..).for_each(|(step, number)| step.step = number);
    }
}

/// Where steps lie on the recording's clock.
struct Laid {
    /// Start and end of each step.
    steps: Vec<(u64, u64)>,
    has_times: bool,
    /// Time stamp of [`START_NS`], in nanoseconds.
    zero_ns: f64,
    wall_ns: u64,
}

impl Laid {
    fn of(steps: &[Measured]) -> Self {
        let has_times = steps.iter().all(|step| step.end_ns.is_some())
            && steps.windows(2).all(|pair| pair[0].end_ns <= pair[1].end_ns);
        let lead_ns = |step: &Measured| step.duration_ns + step.before_ns.iter().sum::<f64>();
        let first_end_ns = steps.first().and_then(|step| step.end_ns).filter(|_| has_times);
        let zero_ns = first_end_ns.unwrap_or(0.0) - steps.first().map_or(0.0, lead_ns);
        let mut t_ns = START_NS as f64;
        let mut lay = |step: &Measured| {
            let earliest_ns = t_ns;
            let end_ns = match step.end_ns {
                Some(end_ns) if has_times => START_NS as f64 + end_ns - zero_ns,
                _ => earliest_ns + lead_ns(step),
            };
            // Where a time stamp and a duration disagree, the step before keeps its end.
            let start_ns = (end_ns - step.duration_ns).max(earliest_ns).min(end_ns);
            t_ns = end_ns;
            (start_ns as u64, end_ns as u64)
        };
        let laid = steps.iter().map(&mut lay).collect();
        // Seconds since some start are no wall clock; the year 2001 is 1e18 ns.
        let wall_ns = if has_times && zero_ns > 1e18 { zero_ns as u64 } else { 0 };
        Self { steps: laid, has_times, zero_ns, wall_ns }
    }
}

/// Reads the marks and finds their times, with their value in milliseconds.
fn place_marks(
    files: &[MarkFile],
    steps: &[Measured],
    laid: &Laid,
) -> Result<Vec<(u64, String, Option<f64>)>, ImportError> {
    let mut durations: Vec<f64> = steps.iter().map(|step| step.duration_ns).collect();
    let middle = durations.len() / 2;
    let usual_ns = *durations.select_nth_unstable_by(middle, f64::total_cmp).1;
    let mut marks = Vec::new();
    for file in files {
        for mark in read_marks(file)? {
            if let Some(t_ns) = mark_time(&mark, steps, laid, usual_ns) {
                marks.push((t_ns, file.name.clone(), mark.duration_ns.map(|ns| ns / 1e6)));
            }
        }
    }
    marks.sort_by_key(|mark| mark.0);
    Ok(marks)
}

fn read_marks(file: &MarkFile) -> Result<Vec<Marked>, ImportError> {
    let mut table = Table::open(&file.path)?;
    let guessed = Mapping::guess(&table.columns);
    let columns = positions(&table, &guessed)?;
    let at = |role: &Role| columns.iter().find(|(mapping, _)| mapping.role == *role).copied();
    let (step, end, duration) = (at(&Role::Step), at(&Role::End), at(&Role::Duration));
    if step.is_none() && end.is_none() {
        let reason = "has neither a column step nor timestamp_s: when its marks were is not known".to_owned();
        return Err(ImportError::Nothing { path: table.path().to_owned(), reason });
    }
    let mut marks = Vec::new();
    table.each(|row| {
        let number = |column: Option<(&Mapping, usize)>, wanted| match column {
            Some((mapping, at)) => Ok(row.number(at, 0.0, wanted)?.map(|n| n * mapping.scale.factor)),
            None => Ok::<Option<f64>, ImportError>(None),
        };
        marks.push(Marked {
            step: number(step, "step")?.map(|n| n as u64),
            end_ns: number(end, "time")?,
            duration_ns: number(duration, "time")?,
        });
        Ok(())
    })?;
    Ok(marks)
}

/// When a mark was: at its own time, or where its step was long, or after the step.
fn mark_time(mark: &Marked, steps: &[Measured], laid: &Laid, usual_ns: f64) -> Option<u64> {
    if let (Some(end_ns), true) = (mark.end_ns, laid.has_times) {
        let t_ns = START_NS as f64 + end_ns - laid.zero_ns;
        return (t_ns >= 0.0).then_some(t_ns as u64);
    }
    let index = steps.binary_search_by_key(&mark.step?, |step| step.step).ok()?;
    let (_, end_ns) = laid.steps[index];
    let half_ns = mark.duration_ns.unwrap_or(0.0) / 2.0;
    let shows = half_ns > 0.0 && steps[index].duration_ns - usual_ns >= half_ns;
    // Without time stamps there is no time between steps in which it could lie.
    Some(if shows || !laid.has_times { end_ns } else { end_ns + 1 })
}

fn session_id(path: &Path, steps: &[Measured]) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, path, steps.len()).hash(&mut hasher);
        steps.iter().for_each(|step| (step.step, step.duration_ns.to_bits()).hash(&mut hasher));
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
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
    steps: &[Measured],
    laid: &Laid,
    marks: &[(u64, String, Option<f64>)],
) -> Result<u64, ImportError> {
    let main = writer.track(TrackRole::Training, "steps");
    let has_values = steps.iter().any(|step| !step.values.is_empty());
    let sensors = if has_values { writer.track(TrackRole::Sensors, "columns") } else { main };
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
    let mut marks = marks.iter().peekable();
    for (step, (start_ns, end_ns)) in steps.iter().zip(&laid.steps) {
        let mut events = phases_of(step, (&before, &inside), (*start_ns, *end_ns));
        while let Some((t_ns, text, value)) = marks.next_if(|mark| mark.0 <= *end_ns) {
            events.push(Event::Mark(Mark { name: writer.name(NameKind::Text, text), t_ns: *t_ns, value: *value }));
        }
        events.sort_by_key(Event::t_ns);
        for event in &events {
            writer.event(main, event)?;
        }
        let Measured { epoch, batch, loss, .. } = *step;
        let (step_id, start_ns, end_ns) = (StepId(step.step), *start_ns, *end_ns);
        writer.event(main, &Event::Step(Step { step: step_id, epoch, start_ns, end_ns, batch, loss, usage: None }))?;
        for (sink, value) in sinks.iter_mut().zip(&step.values) {
            if let Some(value) = value {
                writer.event(sensors, &value_event(sink, *value, end_ns))?;
            }
        }
    }
    for (t_ns, text, value) in marks {
        let name = writer.name(NameKind::Text, text);
        writer.event(main, &Event::Mark(Mark { name, t_ns: *t_ns, value: *value }))?;
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
fn phases_of(step: &Measured, (before, inside): (&[NameId], &[NameId]), (start_ns, end_ns): (u64, u64)) -> Vec<Event> {
    let lead_ns: f64 = step.before_ns.iter().sum();
    let mut t_ns = start_ns.saturating_sub(lead_ns as u64);
    let before = before.iter().zip(&step.before_ns).map(|span| (span, start_ns));
    let all = before.chain(inside.iter().zip(&step.phase_ns).map(|span| (span, end_ns)));
    let mut events = Vec::new();
    for ((name, ns), limit_ns) in all {
        let begin_ns = t_ns;
        t_ns = begin_ns.saturating_add(*ns as u64).min(limit_ns).max(begin_ns);
        if t_ns > begin_ns {
            events.push(Event::Span(Span { name: *name, start_ns: begin_ns, end_ns: t_ns, step: StepId(step.step) }));
        }
    }
    events
}
