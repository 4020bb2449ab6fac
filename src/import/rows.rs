//! The rows of a table as steps, read anew each time they are gone through: tables may be larger than the memory.

use gnntop_wire::BatchShape;

use super::error::ImportError;
use super::given::{Given, counts};
use super::mapping::{Mapping, Role, Scale};
use super::table::{Row, Table};

/// No step takes longer, and no table spans more: a hundred years.
const LONGEST_NS: f64 = 3.2e18;

/// One step, as the table tells it. Times are nanoseconds.
pub(super) struct Measured {
    pub(super) step: u64,
    pub(super) epoch: u64,
    pub(super) end_ns: Option<f64>,
    pub(super) duration_ns: f64,
    pub(super) before_ns: Vec<f64>,
    pub(super) phase_ns: Vec<f64>,
    pub(super) batch: BatchShape,
    pub(super) loss: Option<f64>,
    pub(super) values: Vec<Option<f64>>,
}

impl Measured {
    /// Its duration with that of the phases before it.
    pub(super) fn lead_ns(&self) -> f64 {
        self.duration_ns + self.before_ns.iter().sum::<f64>()
    }
}

/// The rows that count.
pub(super) struct Rows<'a> {
    table: &'a Table,
    columns: Vec<(&'a Mapping, usize)>,
    conditions: Vec<(usize, &'a str)>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(table: &'a Table, mappings: &'a [Mapping], given: &'a Given) -> Result<Self, ImportError> {
        Ok(Self { table, columns: positions(table, mappings)?, conditions: given.conditions(table)? })
    }

    /// Hands every step to `take`, with the number that its row gives it, or else the row's own.
    pub(super) fn each(&self, mut take: impl FnMut(&Measured) -> Result<(), ImportError>) -> Result<(), ImportError> {
        let mut number = 0;
        self.table.each(|row| {
            if !counts(row, &self.conditions) {
                return Ok(());
            }
            number += 1;
            take(&measured(row, &self.columns, number)?)
        })
    }
}

/// Where the columns are that mappings name.
pub(super) fn positions<'a>(table: &Table, mappings: &'a [Mapping]) -> Result<Vec<(&'a Mapping, usize)>, ImportError> {
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
