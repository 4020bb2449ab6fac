//! The rows of a table as steps, read from the file each time: tables may be larger than the memory.

use std::cell::{Cell, OnceCell};

use gnntop_wire::BatchShape;

use super::columns::Columns;
use super::guess::PreviousRow;
use super::mapping::{Mapping, Role};
use super::options::{CsvOptions, matches};
use super::order::Order;
use super::outcome::ImportError;
use super::table::{COUNT, NUMBER, READING, TIME, Table, TableRow};

/// Names of phases that a column may have.
const MAX_PHASES: usize = 64;
/// Phases of this name are the step itself.
const WHOLE: [&str; 4] = ["step", "total", "iteration", "batch"];

/// A first row later than this after the start, three years, counts from another one, such as 1970.
const LONGEST_FIRST_NS: f64 = 1e17;
/// The longest wait of a first row that is believed where its column counts since the start.
const FIRST_WAIT_NS: f64 = 60e9;

/// Columns that distinguish runs or ranks, which must not be in one recording.
const APART: [&str; 6] = ["run", "run_num", "run_id", "run_name", "rank", "global_rank"];

/// One step of the table. Times are nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct MeasuredStep {
    /// Its line; the first of its rows.
    pub(super) line: u64,
    /// The table's own number, or else that of the row.
    pub(super) step: u64,
    pub(super) epoch: u64,
    pub(super) start_ns: Option<f64>,
    pub(super) end_ns: Option<f64>,
    pub(super) duration_ns: f64,
    pub(super) before_ns: Vec<f64>,
    pub(super) phase_ns: Vec<f64>,
    pub(super) batch: BatchShape,
    pub(super) loss: Option<f64>,
    pub(super) values: Vec<Option<f64>>,
    /// What columns that count since the start were at.
    pub(super) cumulative: PreviousRow,
}

impl MeasuredStep {
    /// Its duration with that of the phases before it.
    pub(super) fn lead_ns(&self) -> f64 {
        self.duration_ns + self.before_ns.iter().sum::<f64>()
    }

    fn clear(&mut self, number: u64, line: u64) {
        let (before_ns, phase_ns, values) =
            (std::mem::take(&mut self.before_ns), std::mem::take(&mut self.phase_ns), std::mem::take(&mut self.values));
        let mut running = std::mem::take(&mut self.cumulative);
        running.fallen = None;
        *self = Self { step: number, line, before_ns, phase_ns, values, cumulative: running, ..Self::default() };
        self.before_ns.clear();
        self.phase_ns.clear();
        self.values.clear();
    }
}

/// The rows that count.
pub(super) struct TableRows<'a> {
    pub(super) table: Table,
    columns: Vec<(&'a Mapping, usize)>,
    conditions: Vec<(usize, &'a str)>,
    batch_size: Option<u64>,
    /// In a table with a row for each phase: the column with their names, and these.
    long: Option<(usize, Vec<String>)>,
    /// Which of a step's values add up.
    are_totals: Vec<bool>,
    /// A column that distinguishes runs or ranks, and its first value.
    apart: Option<(usize, OnceCell<String>)>,
    /// The column of durations.
    duration: Option<usize>,
    /// Rows without one, on the last way through: what a logger writes of a validation is no step.
    without_time: Cell<u64>,
}

impl<'a> TableRows<'a> {
    pub(super) fn new(table: Table, columns: &'a Columns, given: &'a CsvOptions) -> Result<Self, ImportError> {
        let places = positions(&table, &columns.mappings)?;
        let conditions = given.conditions(&table)?;
        let named = places.iter().find(|(mapping, _)| columns.is_long && mapping.role == Role::PhaseName);
        let long = match named {
            Some((_, at)) => Some((*at, phase_names(&table, *at, &conditions)?)),
            None => None,
        };
        let is_total = |mapping: &Mapping| match mapping.role {
            Role::Total(_) => Some(true),
            Role::Signal(_) | Role::Cumulative(_) | Role::Counter(_) => Some(false),
            _ => None,
        };
        let are_totals = columns.mappings.iter().filter_map(is_total).collect();
        let is_free = |at: &usize| {
            let column = &table.columns()[*at];
            APART.contains(&column.to_lowercase().as_str())
                && !given.ignored.contains(column)
                && !given.only.iter().any(|(only, _)| only == column)
                && !columns.mappings.iter().any(|mapping| mapping.column == *column)
        };
        let apart = (0..table.columns().len()).find(is_free).map(|at| (at, OnceCell::new()));
        let duration = places.iter().find(|(mapping, _)| mapping.role == Role::Duration).map(|(_, at)| *at);
        let (batch_size, without_time) = (given.batch_size, Cell::new(0));
        Ok(Self { table, columns: places, conditions, batch_size, long, are_totals, apart, duration, without_time })
    }

    /// Whether a row counts: it fits what was asked for, and has a time.
    fn counts(&self, row: &TableRow<'_>) -> bool {
        if !matches(row, &self.conditions) {
            return false;
        }
        let has_time = self.duration.is_none_or(|at| !row.text(at).is_empty());
        self.without_time.set(self.without_time.get() + u64::from(!has_time));
        has_time
    }

    /// Rows that were left out on the last way through, as they have no duration.
    pub(super) fn without_time(&self) -> u64 {
        self.without_time.get()
    }

    /// An order of the counted rows, by their values.
    pub(super) fn order_by(&self, key: impl Fn(&MeasuredStep) -> u64) -> Result<Order, ImportError> {
        let (mut step, mut number) = (MeasuredStep::default(), 0);
        self.table.order_by(|row| {
            if !self.counts(row) {
                return Ok(None);
            }
            number += 1;
            self.read(row, number, &mut step)?;
            Ok(Some(key(&step)))
        })
    }

    /// Refuses a row of another run or rank than those before.
    fn keep_apart(&self, row: &TableRow<'_>) -> Result<(), ImportError> {
        let Some((at, first)) = &self.apart else { return Ok(()) };
        let (column, here) = (&self.table.columns()[*at], row.text(*at));
        let first = first.get_or_init(|| here.to_owned());
        if first == here {
            return Ok(());
        }
        Err(self.table.useless(format!(
            "line {}: {column} is {here:?}, but {first:?} in the rows before: import them separately, the first with --only {column}={first}, or say --ignore {column} if that makes no difference",
            row.line
        )))
    }

    /// Whether a row is a phase, and steps have several.
    pub(super) fn is_long(&self) -> bool {
        self.long.is_some()
    }

    /// Whether a column has this role.
    pub(super) fn has(&self, role: &Role) -> bool {
        self.column(role).is_some()
    }

    /// The column that has this role.
    pub(super) fn column(&self, role: &Role) -> Option<&'a Mapping> {
        self.columns.iter().find(|(mapping, _)| mapping.role == *role).map(|(mapping, _)| *mapping)
    }

    /// The name of a column.
    pub(super) fn name(&self, at: usize) -> &str {
        self.table.columns().get(at).map_or("", String::as_str)
    }

    /// The columns that are used.
    pub(super) fn mappings(&self) -> impl Iterator<Item = &'a Mapping> + '_ {
        self.columns.iter().map(|(mapping, _)| *mapping)
    }

    /// The phases inside a step, in the order in which [`MeasuredStep`] has them.
    pub(super) fn phases(&self) -> Vec<&str> {
        match &self.long {
            Some((_, names)) => names.iter().map(String::as_str).collect(),
            None => self
                .mappings()
                .filter_map(|mapping| if let Role::Phase(name) = &mapping.role { Some(name.as_str()) } else { None })
                .collect(),
        }
    }

    /// Hands every step to `take`, with the number that its row gives it, or else the row's own.
    pub(super) fn each(
        &self,
        mut take: impl FnMut(&MeasuredStep) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        self.without_time.set(0);
        match &self.long {
            Some((at, names)) => self.each_of_phases(*at, names, take),
            None => {
                let (mut number, mut step) = (0, MeasuredStep::default());
                self.table.each(|row| {
                    if self.counts(row) {
                        number += 1;
                        self.read(row, number, &mut step)?;
                        take(&step)?;
                    }
                    Ok(())
                })
            }
        }
    }

    /// Reads rows that are phases: those of one step follow each other.
    fn each_of_phases(
        &self,
        at: usize,
        names: &[String],
        mut take: impl FnMut(&MeasuredStep) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        let (mut row_step, mut step, mut whole_ns) = (MeasuredStep::default(), None::<MeasuredStep>, None);
        let mut number = 0;
        self.table.each(|row| {
            if !self.counts(row) {
                return Ok(());
            }
            self.read(row, number + 1, &mut row_step)?;
            let goes_on = |step: &MeasuredStep| (step.epoch, step.step) == (row_step.epoch, row_step.step);
            if !step.as_ref().is_some_and(goes_on) {
                if let Some(done) = step.take() {
                    take(&finish_step(done, whole_ns.take()))?;
                }
                number += 1;
                let phase_ns = vec![0.0; names.len()];
                let values = vec![None; row_step.values.len()];
                step = Some(MeasuredStep {
                    duration_ns: 0.0,
                    phase_ns,
                    values,
                    end_ns: None,
                    start_ns: None,
                    ..row_step.clone()
                });
            }
            if let Some(step) = &mut step {
                merge(step, &row_step, &self.are_totals);
                match names.iter().position(|name| name == row.text(at)) {
                    Some(phase) => step.phase_ns[phase] += row_step.duration_ns,
                    None if row.text(at).is_empty() => (),
                    None => whole_ns = Some(row_step.duration_ns),
                }
            }
            Ok(())
        })?;
        step.map_or(Ok(()), |done| take(&finish_step(done, whole_ns)))
    }

    fn read(&self, row: &TableRow<'_>, number: u64, step: &mut MeasuredStep) -> Result<(), ImportError> {
        self.keep_apart(row)?;
        step.clear(number, row.line);
        step.batch.graphs = self.batch_size;
        for (mapping, at) in &self.columns {
            let (at, factor) = (*at, mapping.factor());
            let count = || Ok::<Option<u64>, ImportError>(row.number(at, 1.0, &COUNT)?.map(|n| n as u64));
            let time = |step: &mut MeasuredStep, limit_ns| match row.number(at, factor, &TIME)? {
                Some(ns) => Ok::<f64, ImportError>(step.cumulative.increase(mapping, at, ns, limit_ns)),
                None => Ok(0.0),
            };
            match &mapping.role {
                Role::Step => step.step = count()?.unwrap_or(number),
                Role::Epoch => step.epoch = count()?.unwrap_or(0),
                Role::Start => step.start_ns = Some(stamp(row, at, factor)?),
                Role::End => step.end_ns = Some(stamp(row, at, factor)?),
                Role::Duration => {
                    let ns = row.needed(at, factor, &TIME)?;
                    step.duration_ns = step.cumulative.increase(mapping, at, ns, LONGEST_FIRST_NS);
                }
                Role::Loss => step.loss = row.loss(at),
                Role::Graphs => step.batch.graphs = count()?,
                Role::Nodes => step.batch.nodes = count()?,
                Role::Edges => step.batch.edges = count()?,
                Role::Seeds => step.batch.seeds = count()?,
                Role::PhaseName => (),
                Role::Before(_) => {
                    let ns = time(step, FIRST_WAIT_NS)?;
                    step.before_ns.push(ns);
                }
                Role::Phase(_) => {
                    let ns = time(step, f64::MAX)?;
                    step.phase_ns.push(ns);
                }
                Role::Signal(_) | Role::Total(_) | Role::Cumulative(_) => {
                    step.values.push(row.number(at, factor, &READING)?)
                }
                Role::Counter(_) => step.values.push(row.number(at, factor, &NUMBER)?),
            }
        }
        match (step.start_ns, step.end_ns) {
            (Some(start_ns), None) => step.end_ns = Some(start_ns + step.duration_ns),
            (Some(start_ns), Some(end_ns)) if end_ns < start_ns => {
                return Err(self.table.useless(format!("line {}: the step ends before it begins", row.line)));
            }
            (Some(start_ns), Some(end_ns)) => step.duration_ns = end_ns - start_ns,
            _ => (),
        }
        Ok(())
    }
}

fn stamp(row: &TableRow<'_>, at: usize, factor: f64) -> Result<f64, ImportError> {
    row.stamp(at, factor)?.ok_or_else(|| row.no_stamp(at))
}

/// Adds a row's values to its step; `are_totals` says which of them add up.
fn merge(step: &mut MeasuredStep, row: &MeasuredStep, are_totals: &[bool]) {
    let starts_ns = row.start_ns.or_else(|| row.end_ns.map(|end_ns| end_ns - row.duration_ns));
    step.start_ns = step.start_ns.into_iter().chain(starts_ns).reduce(f64::min);
    step.end_ns = step.end_ns.into_iter().chain(row.end_ns).reduce(f64::max);
    step.loss = row.loss.or(step.loss);
    for ((kept, new), is_total) in step.values.iter_mut().zip(&row.values).zip(are_totals) {
        *kept = match (*kept, *new) {
            (Some(sum), Some(new)) if *is_total => Some(sum + new),
            (kept, new) => new.or(kept),
        };
    }
}

/// A step as long as its own row says, else as long as from its first phase to its last, else as its phases together.
fn finish_step(mut step: MeasuredStep, whole_ns: Option<f64>) -> MeasuredStep {
    let spanned_ns = step.start_ns.zip(step.end_ns).map(|(start_ns, end_ns)| end_ns - start_ns);
    step.duration_ns = whole_ns.or(spanned_ns).unwrap_or_else(|| step.phase_ns.iter().sum());
    step
}

/// Where the columns are that mappings name.
pub(super) fn positions<'a>(table: &Table, mappings: &'a [Mapping]) -> Result<Vec<(&'a Mapping, usize)>, ImportError> {
    mappings.iter().map(|mapping| Ok((mapping, table.position(&mapping.column)?))).collect()
}

/// The names of phases that a column has, as they come.
fn phase_names(table: &Table, at: usize, conditions: &[(usize, &str)]) -> Result<Vec<String>, ImportError> {
    let mut names: Vec<String> = Vec::new();
    table.each(|row| {
        let name = row.text(at);
        let is_new = !name.is_empty() && !WHOLE.contains(&name) && !names.iter().any(|known| known == name);
        if !matches(row, conditions) || !is_new {
            return Ok(());
        }
        if names.len() == MAX_PHASES {
            let (column, line) = (&table.columns()[at], row.line);
            let reason = format!(
                "line {line}: {column} names more than {MAX_PHASES} phases: --ignore {column} makes each row a step"
            );
            return Err(table.useless(reason));
        }
        names.push(name.to_owned());
        Ok(())
    })?;
    Ok(names)
}
