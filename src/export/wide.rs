//! One row a step, for a data frame: a column for each phase beside the step's number, batch, loss and rank.
//!
//! A recording is read twice: the first time for the names of its phases, the second time row by row, in bounded memory.

use std::io::{self, Write};
use std::ops::{Range, RangeInclusive};

use gnntop_wire::{BatchShape, Item};

use super::row_groups::{ColumnValues, ParquetCell, ParquetColumn, RowGroups};
use super::rows::quoted;
use gnntop_analysis::ranks::{Run, RunMember};
use gnntop_analysis::store::{GAP, StepRow};
use gnntop_analysis::stream::Sink;

/// Columns before those of the phases.
const HEAD: [&str; 7] = ["rank", "step", "epoch", "start_ns", "end_ns", "step_ns", "period_ns"];
/// Columns after them.
const TAIL: [&str; 5] = ["graphs", "nodes", "edges", "seeds", "loss"];

/// A form of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WideForm {
    /// For a sheet, pandas, DuckDB.
    Csv,
    /// The same in typed columns.
    Parquet,
}

/// Which rows are wanted.
#[derive(Clone, Debug)]
pub struct RowFilter {
    /// One rank of a run; all where `None`.
    pub rank: Option<u32>,
    /// The program's numbers of steps; all where `None`.
    pub steps: Option<Range<u64>>,
    /// What the step must overlap, on the publisher's clock.
    pub window_ns: RangeInclusive<u64>,
}

impl RowFilter {
    fn has(&self, row: &StepRow<'_>, rank: Option<u32>) -> bool {
        let of_rank = self.rank.is_none() || rank.is_none() || self.rank == rank;
        let of_steps = self.steps.as_ref().is_none_or(|steps| steps.contains(&row.step().0));
        of_rank && of_steps && row.end_ns() >= *self.window_ns.start() && row.start_ns() <= *self.window_ns.end()
    }
}

/// The phases of all ranks of a run, in the order of the screen; the gap is the last.
pub fn phases(run: &Run) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let known = run.members().iter().flat_map(|member| member.store.phases());
    for phase in known.filter(|phase| !phase.is_gap()) {
        if !names.contains(&phase.text) {
            names.push(phase.text.clone());
        }
    }
    names.push(GAP.to_owned());
    names
}

/// Takes what a source yields and writes a row for each step.
pub struct WideExporter<'w> {
    run: Run,
    phases: Vec<String>,
    wanted: RowFilter,
    table: Box<dyn RowWriter + 'w>,
    /// For each session of the run, its steps that are through.
    through: Vec<u64>,
    written: u64,
    error: Option<io::Error>,
}

impl<'w> WideExporter<'w> {
    /// A table with these phases as columns.
    pub fn new(form: WideForm, out: impl Write + Send + 'w, phases: Vec<String>, wanted: RowFilter) -> Self {
        let heads = column_names(&phases);
        let table: Box<dyn RowWriter + 'w> = match form {
            WideForm::Csv => Box::new(WideCsv { out, heads: Some(heads) }),
            WideForm::Parquet => {
                let rising = ["step", "start_ns", "end_ns"];
                Box::new(RowGroups::new(out, "step", columns(heads), &rising))
            }
        };
        Self { run: Run::default(), phases, wanted, table, through: Vec::new(), written: 0, error: None }
    }

    /// Ends the file. Returns how many rows were written.
    ///
    /// # Errors
    /// When anything could not be written, now or before.
    pub fn finish(mut self) -> io::Result<u64> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.table.end().map(|()| self.written),
        }
    }

    /// Writes the steps that have arrived.
    fn write(&mut self) -> io::Result<()> {
        self.through.resize(self.run.members().len(), 0);
        for (member, through) in self.run.members().iter().zip(&mut self.through) {
            let total = member.store.steps().total();
            let rank = member.place().map(|place| place.rank);
            for row in member.store.steps().rows(*through..total) {
                if row.ordinal() != *through {
                    return Err(io::Error::other("a block of the recording has more steps than are held at once"));
                }
                *through += 1;
                if self.wanted.has(&row, rank) {
                    self.table.row(cells(member, &row, &self.phases))?;
                    self.written += 1;
                }
            }
        }
        Ok(())
    }
}

impl Sink for WideExporter<'_> {
    fn apply(&mut self, item: Item<'_>) {
        let has_events = matches!(item, Item::Block(..));
        self.run.apply(item);
        if has_events && self.error.is_none() {
            self.error = self.write().err();
        }
    }

    fn reset(&mut self) {}

    fn select_session(&mut self, session_id: u128) {
        self.run.select_session(session_id);
    }
}

/// The name of every column. Phases have `_` for spaces, and their unit; one with the name of another column gets
/// `phase_` before it.
fn column_names(phases: &[String]) -> Vec<String> {
    let mut heads: Vec<String> = HEAD.map(str::to_owned).into();
    for phase in phases {
        let mut head = format!("{}_ns", phase.replace(char::is_whitespace, "_"));
        while heads.contains(&head) {
            head = format!("phase_{head}");
        }
        heads.push(head);
    }
    heads.extend(TAIL.map(str::to_owned));
    heads
}

fn columns(heads: Vec<String>) -> Vec<ParquetColumn> {
    let values = |head: &str| if head == "loss" { ColumnValues::doubles() } else { ColumnValues::unsigned() };
    heads.into_iter().map(|head| ParquetColumn::new(&head, values(&head))).collect()
}

/// A step as a row.
fn cells(member: &RunMember, row: &StepRow<'_>, phases: &[String]) -> Vec<Option<ParquetCell>> {
    let BatchShape { graphs, nodes, edges, seeds } = row.batch();
    let rank = member.place().map(|place| u64::from(place.rank));
    let head = [
        rank,
        Some(row.step().0),
        Some(row.epoch()),
        Some(row.start_ns()),
        Some(row.end_ns()),
        Some(row.work_ns()),
        Some(row.period_ns()),
    ];
    let ns = |name: &String| Some(member.store.phase(name).map_or(0, |phase| row.phase_ns(phase.slot)));
    let numbers = head.into_iter().chain(phases.iter().map(ns)).chain([graphs, nodes, edges, seeds]);
    numbers.map(|number| number.map(ParquetCell::unsigned)).chain([row.loss().map(ParquetCell::Double)]).collect()
}

/// What rows are written into.
pub(super) trait RowWriter {
    fn row(&mut self, cells: Vec<Option<ParquetCell>>) -> io::Result<()>;
    fn end(&mut self) -> io::Result<()>;
}

struct WideCsv<W: Write> {
    out: W,
    /// Until they are written.
    heads: Option<Vec<String>>,
}

impl<W: Write> WideCsv<W> {
    fn head(&mut self) -> io::Result<()> {
        let Some(heads) = self.heads.take() else { return Ok(()) };
        let heads: Vec<_> = heads.iter().map(|head| quoted(head)).collect();
        writeln!(self.out, "{}", heads.join(","))
    }
}

impl<W: Write> RowWriter for WideCsv<W> {
    fn row(&mut self, cells: Vec<Option<ParquetCell>>) -> io::Result<()> {
        self.head()?;
        let text = |cell: Option<ParquetCell>| match cell {
            Some(ParquetCell::Integer(n)) => n.cast_unsigned().to_string(),
            Some(ParquetCell::Double(value)) if value.is_finite() => value.to_string(),
            Some(ParquetCell::Double(_) | ParquetCell::Text(_)) | None => String::new(),
        };
        let texts: Vec<String> = cells.into_iter().map(text).collect();
        writeln!(self.out, "{}", texts.join(","))
    }

    fn end(&mut self) -> io::Result<()> {
        self.head()?;
        self.out.flush()
    }
}

impl<W: Write + Send> RowWriter for RowGroups<W> {
    fn row(&mut self, cells: Vec<Option<ParquetCell>>) -> io::Result<()> {
        self.push(cells)
    }

    fn end(&mut self) -> io::Result<()> {
        self.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_columns_have_the_same_name() {
        let phases = ["data wait", "data_wait", "step", "gap"].map(str::to_owned);
        let heads = column_names(&phases);
        assert_eq!(heads[7..11], ["data_wait_ns", "phase_data_wait_ns", "phase_step_ns", "gap_ns"]);
    }
}
