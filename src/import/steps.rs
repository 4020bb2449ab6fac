//! From a table with a row for each step, or for each phase of one, to a recording.
//!
//! The table is read twice, once to survey it and once to write it; once more where rows are out of order, where marks are
//! given by their steps, and where a row is a phase.

use std::io::Write;
use std::path::Path;

use gnntop_analysis::figures::{count, counted};
use gnntop_wire::phase::LOADING;
use gnntop_wire::{Event, NameKind, Origin, Step, StepId, TrackRole};

use super::columns::Columns;
use super::mapping::{Mapping, Role};
use super::marks::{self, PlacedMark};
use super::options::CsvOptions;
use super::outcome::{ImportError, ImportSummary};
use super::rows::{MeasuredStep, TableRows};
use super::survey::{self, Numbering, Survey};
use super::table::Table;
use super::warnings;
use super::writer::{ColumnSink, PhaseNames, RecordingHead, START_NS, TableTracks, Writer};

const PUBLISHER: &str = "gnntop import csv";
/// What a step does besides waiting for data, if the table says no more.
const REST: &str = "compute";

/// The result of an import.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// Steps.
    pub steps: u64,
    /// Events.
    pub events: u64,
    /// What was used, left out, guessed and doubted.
    pub account: ImportSummary,
}

/// Imports the table at `path`, with the columns that `given` names and others that have plain names.
///
/// Rows are steps, or phases of them. A step is before its time stamp if it has one; without, steps follow each other
/// and the time between them is not known. Phases follow each other from the step's start. A mark that has only a step's
/// number is inside that step if its duration shows there, else after it.
///
/// # Errors
/// If a file cannot be read, is not such a table or contradicts itself, or the recording cannot be written.
pub fn csv(path: &Path, given: &CsvOptions, out: impl Write) -> Result<Imported, ImportError> {
    let mut account = ImportSummary::default();
    let table = Table::open(path, given.separator)?;
    let columns = Columns::choose(&table, given, &mut account)?;
    if given.batch_size.is_some() && columns.mappings.iter().any(|mapping| mapping.role == Role::Graphs) {
        return Err(table.useless("--batch-size conflicts with the column of graphs: give one of them"));
    }
    account.guessed.push(table.form());
    let mut rows = TableRows::new(table, &columns, given)?;
    let mut survey = survey::read_in_order(&mut rows, path, &mut account.warnings)?;
    if survey.steps == 0 {
        return Err(rows.table.useless(if given.only.is_empty() {
            "no rows below the header"
        } else {
            "no rows match --only"
        }));
    }
    account.warnings.extend(warnings::warnings(&survey, &rows)?);
    summarize_times(&mut survey, &rows, &mut account);
    summarize_rows(&survey, &rows, given, &mut account);
    let facts =
        given.facts.iter().map(|(name, value)| PlacedMark { t_ns: START_NS, name, value: Some(*value), took_ns: None });
    let marks: Vec<PlacedMark<'_>> =
        facts.chain(marks::place_marks(&given.marks, &rows, &survey, &mut account)?).collect();
    let writer = Writer::new(out, head(path, &survey, given));
    let events = write(writer, &rows, &survey, &marks)?;
    Ok(Imported { steps: survey.steps, events, account })
}

fn head(path: &Path, survey: &Survey, given: &CsvOptions) -> RecordingHead {
    let name = path.file_stem().map_or_else(|| "imported".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let gaps = if survey.has_times { "" } else { "; no time stamps: the time between steps is not known" };
    RecordingHead {
        name,
        command: format!("imported from {}{gaps}", path.display()),
        publisher: PUBLISHER,
        origin: Origin::Table,
        session_id: survey.session_id,
        wall_ns: survey.wall_ns(),
        place: given.place.clone(),
    }
}

/// How the time stamps were interpreted.
fn summarize_times(survey: &mut Survey, rows: &TableRows<'_>, account: &mut ImportSummary) {
    let stamps = rows.column(&Role::End).or_else(|| rows.column(&Role::Start)).map(|mapping| mapping.column.as_str());
    let follow = "steps follow one after the other, and the time between them is unknown";
    account.guessed.push(match stamps {
        None => format!("there are no time stamps: {follow}"),
        Some(stamps) if survey.is_coarse() => {
            survey.has_times = false;
            format!("{stamps} has only whole seconds, and steps are shorter: {follow}")
        }
        Some(stamps) if survey.wall_ns() > 0 => format!("{stamps} is the time of day"),
        Some(stamps) => format!("{stamps} counts from an arbitrary start, so the time of day is unknown"),
    });
}

/// How the rows were interpreted.
fn summarize_rows(survey: &Survey, rows: &TableRows<'_>, given: &CsvOptions, account: &mut ImportSummary) {
    if rows.is_long() {
        account.guessed.push(format!("a row is a phase of a step: {}", rows.phases().join(", ")));
    }
    if rows.has(&Role::Step) {
        match (survey.numbering(), survey.numbers.first_fall) {
            (Numbering::Own(0), _) => (),
            (Numbering::Own(more), _) => {
                account
                    .guessed
                    .push(format!("steps are counted from 0 in the table: here their numbers are {more} higher"));
            }
            (Numbering::Rows, fall) => {
                let line = fall.map_or_else(String::new, |fall| format!(" (line {})", fall.line));
                account
                    .guessed
                    .push(format!("steps are numbered by their rows, because their own numbers start over{line}"));
            }
        }
    }
    account.guessed.extend(
        given.batch_size.map(|size| {
            format!("each step has {} graphs, also the last of an epoch, which may have fewer", count(size))
        }),
    );
    let left_out = rows.table.left_out();
    if left_out.comments > 0 {
        let lines = if left_out.comments == 1 { "line" } else { "lines" };
        account.left_out.push(format!("{} {lines} of comment", count(left_out.comments)));
    }
    if rows.without_time() > 0 {
        let rows = counted(rows.without_time(), "row", "rows");
        account.left_out.push(format!("{rows} without a duration"));
    }
    if let Some(line) = left_out.cut_line {
        account.warnings.push(format!("line {line}, the last, is cut: it is left out"));
    }
}

/// Names the phases of the table's columns.
fn name_phases<W: Write>(writer: &mut Writer<W>, rows: &TableRows<'_>) -> PhaseNames {
    let mut phase = |name: &str| writer.name(NameKind::Phase, name);
    let before = |mapping: &Mapping| if let Role::Before(name) = &mapping.role { Some(name.clone()) } else { None };
    let (before, inside): (Vec<String>, _) = (rows.mappings().filter_map(before).collect(), rows.phases());
    let mut named = before.iter().map(String::as_str).chain(inside.iter().copied());
    // Without this, what the table has no column for would be outside every phase.
    let are_waits = before.len() + inside.len() > 0 && named.all(|name| LOADING.contains(&name));
    PhaseNames {
        before_step: before.iter().map(|name| phase(name)).collect(),
        inside_step: inside.iter().map(|name| phase(name)).collect(),
        rest: are_waits.then(|| phase(REST)),
    }
}

fn write<W: Write>(
    mut writer: Writer<W>,
    rows: &TableRows<'_>,
    survey: &Survey,
    marks: &[PlacedMark<'_>],
) -> Result<u64, ImportError> {
    let steps = writer.track(TrackRole::Training, "steps");
    let phases = name_phases(&mut writer, rows);
    let mut sinks = ColumnSink::for_mappings(&mut writer, rows.mappings());
    let values = if sinks.is_empty() { steps } else { writer.track(TrackRole::Sensors, "columns") };
    let tracks = TableTracks { steps, values };
    let (mut marks, mut layout, mut row) = (marks.iter().peekable(), survey.layout(), 0);
    let mut events = Vec::new();
    rows.each(|step| {
        row += 1;
        let id = StepId(survey.numbering().id(step, row));
        let (start_ns, end_ns) = layout.place(step);
        if row == 1 {
            let begins_ns = start_ns.saturating_sub(step.before_ns.iter().sum::<f64>() as u64);
            for event in sinks.iter().filter_map(|sink| sink.at_start(begins_ns)) {
                writer.event(tracks.values, &event)?;
            }
        }
        events.clear();
        phases.push_spans(step, id, (start_ns, end_ns), &mut events);
        while let Some(mark) = marks.next_if(|mark| mark.t_ns <= end_ns) {
            events.push(mark.event(&mut writer));
        }
        events.sort_by_key(Event::t_ns);
        let MeasuredStep { epoch, batch, loss, .. } = *step;
        events.push(Event::Step(Step {
            step: id,
            epoch,
            start_ns,
            end_ns,
            batch,
            loss,
            usage: None,
            is_traced: false,
        }));
        for event in &events {
            writer.event(tracks.steps, event)?;
        }
        for (sink, value) in sinks.iter_mut().zip(&step.values) {
            if let Some(value) = value {
                writer.event(tracks.values, &sink.event(*value, end_ns))?;
            }
        }
        Ok(())
    })?;
    for mark in marks {
        let event = mark.event(&mut writer);
        writer.event(tracks.steps, &event)?;
    }
    Ok(writer.finish()?)
}
