//! Marks from separate tables, and when they were.

use std::io::Write;

use gnntop_wire::{Event, Mark, NameKind};

use super::columns::choose_for_marks;
use super::mapping::{Mapping, Role};
use super::options::MarkFile;
use super::outcome::{ImportError, ImportSummary};
use super::rows::{TableRows, positions};
use super::survey::{Numbering, Survey};
use super::table::{COUNT, TIME, Table};
use super::writer::{START_NS, Writer};
use gnntop_analysis::figures::count;

/// Marks that are read at the most: about 80 MB of memory.
const MAX_MARKS: usize = 1_000_000;

/// One mark: at a time, or somewhere in or after a step.
struct MarkRow {
    file: usize,
    line: u64,
    step: Option<u64>,
    end_ns: Option<f64>,
    duration_ns: Option<f64>,
}

/// A mark at its time.
pub(super) struct PlacedMark<'a> {
    pub(super) t_ns: u64,
    pub(super) name: &'a str,
    pub(super) value: Option<f64>,
    pub(super) took_ns: Option<u64>,
}

impl PlacedMark<'_> {
    pub(super) fn event<W: Write>(&self, writer: &mut Writer<W>) -> Event {
        let Self { t_ns, name, value, took_ns } = *self;
        Event::Mark(Mark { name: writer.reported(NameKind::Text, name), t_ns, value, took_ns })
    }
}

/// Places marks, and counts those without a place.
struct MarkPlacer<'a> {
    files: &'a [MarkFile],
    placed: Vec<PlacedMark<'a>>,
    /// For each file and reason, how many marks were left out, and the first of them.
    lost: Vec<(usize, &'static str, u64, String)>,
}

impl<'a> MarkPlacer<'a> {
    fn put(&mut self, mark: &MarkRow, t_ns: u64) {
        let name = self.files.get(mark.file).map_or("", |file| file.name.as_str());
        let took_ns = mark.duration_ns.filter(|ns| *ns >= 0.0).map(|ns| ns as u64);
        self.placed.push(PlacedMark { t_ns, name, value: None, took_ns });
    }

    fn lose(&mut self, mark: &MarkRow, reason: &'static str) {
        match self.lost.iter_mut().find(|(file, known, ..)| (*file, *known) == (mark.file, reason)) {
            Some((_, _, lost, _)) => *lost += 1,
            None => {
                let step = mark.step.map_or_else(String::new, |step| format!(" (step {step})"));
                self.lost.push((mark.file, reason, 1, format!("line {}{step}", mark.line)));
            }
        }
    }

    fn warnings(&self) -> impl Iterator<Item = String> + '_ {
        self.lost.iter().filter_map(|(file, reason, lost, first)| {
            let path = self.files.get(*file)?.path.display();
            let marks = if *lost == 1 { "1 mark was".to_owned() } else { format!("{} marks were", count(*lost)) };
            Some(format!("{path}, {first}: {marks} left out: {reason}"))
        })
    }
}

const NO_TIMES: &str = "the steps have no time stamps, and the mark has no step";
const NOT_THEN: &str = "they are far outside the run: do they use the table's clock, and are they from this run?";
const NO_STEP: &str = "the table has no such step: are they from this run?";
const NO_PLACE: &str = "they have neither a time nor a step";

/// Reads the marks and finds their times, by which they are sorted.
pub(super) fn place_marks<'a>(
    files: &'a [MarkFile],
    rows: &TableRows<'_>,
    survey: &Survey,
    account: &mut ImportSummary,
) -> Result<Vec<PlacedMark<'a>>, ImportError> {
    let mut marks = Vec::new();
    for (at, file) in files.iter().enumerate() {
        read(at, file, &mut marks, account)?;
    }
    let (mut placing, mut by_step) = (MarkPlacer { files, placed: Vec::new(), lost: Vec::new() }, Vec::new());
    // A mark further after the run than the run is long belongs to another run.
    let latest_ns = START_NS as f64 + 2.0 * survey.elapsed_ns() + 2.0 * survey.usual_ns() + 1e9;
    for mark in marks {
        match (mark.end_ns, survey.zero_ns(), mark.step) {
            (Some(end_ns), Some(zero_ns), _) => match START_NS as f64 + end_ns - zero_ns {
                t_ns if (0.0..=latest_ns).contains(&t_ns) => placing.put(&mark, t_ns as u64),
                _ => placing.lose(&mark, NOT_THEN),
            },
            (_, _, Some(_)) => by_step.push(mark),
            (Some(_), None, None) => placing.lose(&mark, NO_TIMES),
            (None, _, None) => placing.lose(&mark, NO_PLACE),
        }
    }
    if !by_step.is_empty() {
        by_step.sort_by_key(|mark| mark.step);
        if rows.has(&Role::Step) && survey.numbering() == Numbering::Rows {
            account.guessed.push("a mark's step is a row number, because the steps' own numbers start over".to_owned());
        }
        place_in_steps(&by_step, rows, survey, &mut placing)?;
    }
    account.warnings.extend(placing.warnings());
    placing.placed.sort_by_key(|mark| mark.t_ns);
    Ok(placing.placed)
}

/// Places marks of which only the steps are known, by the table's own numbers: where their step was long, or after the
/// step.
fn place_in_steps(
    marks: &[MarkRow],
    rows: &TableRows<'_>,
    survey: &Survey,
    placing: &mut MarkPlacer<'_>,
) -> Result<(), ImportError> {
    let (mut marks, mut layout, mut row) = (marks.iter().peekable(), survey.layout(), 0);
    rows.each(|step| {
        row += 1;
        let own = if survey.numbering() == Numbering::Rows { row } else { step.step };
        let (_, end_ns) = layout.place(step);
        while let Some(mark) = marks.next_if(|mark| mark.step < Some(own)) {
            placing.lose(mark, NO_STEP);
        }
        while let Some(mark) = marks.next_if(|mark| mark.step == Some(own)) {
            let half_ns = mark.duration_ns.unwrap_or(0.0) / 2.0;
            let shows = half_ns > 0.0 && step.duration_ns - survey.usual_ns() >= half_ns;
            // Without time stamps there is no time between steps for it.
            placing.put(mark, if shows || !survey.has_times { end_ns } else { end_ns + 1 });
        }
        Ok(())
    })?;
    marks.for_each(|mark| placing.lose(mark, NO_STEP));
    Ok(())
}

fn read(at: usize, file: &MarkFile, marks: &mut Vec<MarkRow>, account: &mut ImportSummary) -> Result<(), ImportError> {
    let table = Table::open(&file.path, None)?;
    let guessed = choose_for_marks(&table, account)?;
    let columns = positions(&table, &guessed)?;
    let place_of = |role: &Role| columns.iter().find(|(mapping, _)| mapping.role == *role).copied();
    let (step, end, duration) = (place_of(&Role::Step), place_of(&Role::End), place_of(&Role::Duration));
    if step.is_none() && end.is_none() {
        return Err(table.useless("has neither a column step nor timestamp_s, so its marks have no time"));
    }
    table.each(|row| {
        if marks.len() == MAX_MARKS {
            return Err(table.useless("more than 1,000,000 marks: leave some out"));
        }
        marks.push(MarkRow {
            file: at,
            line: row.line,
            step: column(step, |mapping, at| row.number(at, mapping.factor(), &COUNT))?.map(|n| n as u64),
            end_ns: column(end, |mapping, at| row.stamp(at, mapping.factor()))?,
            duration_ns: column(duration, |mapping, at| row.number(at, mapping.factor(), &TIME))?,
        });
        Ok(())
    })
}

fn column(
    column: Option<(&Mapping, usize)>,
    read: impl Fn(&Mapping, usize) -> Result<Option<f64>, ImportError>,
) -> Result<Option<f64>, ImportError> {
    column.map_or(Ok(None), |(mapping, at)| read(mapping, at))
}
