//! Marks from tables of their own, and when they were.

use std::io::Write;

use gnntop_wire::{Event, Mark, NameKind};

use super::error::ImportError;
use super::layout::Survey;
use super::mapping::{Mapping, Role};
use super::rows::{Rows, positions};
use super::table::Table;
use super::writer::{START_NS, Writer};

/// Marks that are read at the most: about 60 MB of memory.
const MAX_MARKS: usize = 1_000_000;

/// Events in a table of their own, such as garbage collections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkFile {
    /// What the marks are called.
    pub name: String,
    /// The table: with a column `step` or `step_idx`, or `timestamp_s`, and maybe a duration.
    pub path: std::path::PathBuf,
}

/// One mark: at a time, or somewhere in or after a step.
struct Marked<'a> {
    name: &'a str,
    step: Option<u64>,
    end_ns: Option<f64>,
    duration_ns: Option<f64>,
}

/// A mark at its time, with its value in milliseconds.
pub(super) struct Placed<'a> {
    pub(super) t_ns: u64,
    pub(super) name: &'a str,
    pub(super) value: Option<f64>,
}

impl Placed<'_> {
    pub(super) fn event<W: Write>(&self, writer: &mut Writer<W>) -> Event {
        Event::Mark(Mark { name: writer.name(NameKind::Text, self.name), t_ns: self.t_ns, value: self.value })
    }
}

/// Reads the marks and finds their times, in whose order they come.
pub(super) fn place<'a>(
    files: &'a [MarkFile],
    rows: &Rows<'_>,
    survey: &Survey,
) -> Result<Vec<Placed<'a>>, ImportError> {
    let mut marks = Vec::new();
    for file in files {
        read(file, &mut marks)?;
    }
    let (mut placed, mut by_step) = (Vec::new(), Vec::new());
    for mark in marks {
        let value = mark.duration_ns.map(|ns| ns / 1e6);
        match mark.end_ns.filter(|_| survey.has_times) {
            Some(end_ns) => {
                let t_ns = START_NS as f64 + end_ns - survey.zero_ns;
                placed.extend((t_ns >= 0.0).then_some(Placed { t_ns: t_ns as u64, name: mark.name, value }));
            }
            None => by_step.extend(mark.step.map(|step| (step, mark))),
        }
    }
    if !by_step.is_empty() {
        by_step.sort_by_key(|(step, _)| *step);
        place_in_steps(&by_step, rows, survey, &mut placed)?;
    }
    placed.sort_by_key(|mark| mark.t_ns);
    Ok(placed)
}

/// Places marks of which only the steps are known: where their step was long, or after the step.
fn place_in_steps<'a>(
    marks: &[(u64, Marked<'a>)],
    rows: &Rows<'_>,
    survey: &Survey,
    placed: &mut Vec<Placed<'a>>,
) -> Result<(), ImportError> {
    let (mut marks, mut layout, mut number) = (marks.iter().peekable(), survey.layout(), 0);
    rows.each(|step| {
        number += 1;
        let id = if survey.is_numbered { step.step } else { number };
        let (_, end_ns) = layout.lay(step);
        while marks.next_if(|(of, _)| *of < id).is_some() {}
        while let Some((_, mark)) = marks.next_if(|(of, _)| *of == id) {
            let half_ns = mark.duration_ns.unwrap_or(0.0) / 2.0;
            let shows = half_ns > 0.0 && step.duration_ns - survey.usual_ns >= half_ns;
            // Without time stamps there is no time between steps in which it could lie.
            let t_ns = if shows || !survey.has_times { end_ns } else { end_ns + 1 };
            placed.push(Placed { t_ns, name: mark.name, value: mark.duration_ns.map(|ns| ns / 1e6) });
        }
        Ok(())
    })
}

fn read<'a>(file: &'a MarkFile, marks: &mut Vec<Marked<'a>>) -> Result<(), ImportError> {
    let table = Table::open(&file.path)?;
    let guessed = Mapping::guess(&table.columns);
    let columns = positions(&table, &guessed)?;
    let at = |role: &Role| columns.iter().find(|(mapping, _)| mapping.role == *role).copied();
    let (step, end, duration) = (at(&Role::Step), at(&Role::End), at(&Role::Duration));
    let nothing = |reason: &str| ImportError::Nothing { path: table.path().to_owned(), reason: reason.to_owned() };
    if step.is_none() && end.is_none() {
        return Err(nothing("has neither a column step nor timestamp_s: when its marks were is not known"));
    }
    table.each(|row| {
        let number = |column: Option<(&Mapping, usize)>, wanted| match column {
            Some((mapping, at)) => Ok(row.number(at, 0.0, wanted)?.map(|n| n * mapping.scale.factor)),
            None => Ok::<Option<f64>, ImportError>(None),
        };
        if marks.len() == MAX_MARKS {
            return Err(nothing("more than 1,000,000 marks: leave some out"));
        }
        marks.push(Marked {
            name: &file.name,
            step: number(step, "step")?.map(|n| n as u64),
            end_ns: number(end, "time")?,
            duration_ns: number(duration, "time")?,
        });
        Ok(())
    })
}
