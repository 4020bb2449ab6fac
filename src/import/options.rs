//! What a person says about a table that the table does not: what columns mean, which rows count, which rank of which run
//! it is of, and numbers that hold for the whole run.

use gnntop_wire::Place;

use super::mapping::Mapping;
use super::outcome::ImportError;
use super::table::{Table, TableRow};

/// Events in a separate table, such as garbage collections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkFile {
    /// What the marks are called.
    pub name: String,
    /// The table: with a column `step` or `step_idx`, or a time stamp, and maybe a duration.
    pub path: std::path::PathBuf,
}

/// What is given besides the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CsvOptions {
    /// The meaning of columns, besides those with plain names.
    pub columns: Vec<Mapping>,
    /// Columns to ignore, whatever their names.
    pub ignored: Vec<String>,
    /// The separator of columns; guessed by default.
    pub separator: Option<u8>,
    /// Events in separate tables.
    pub marks: Vec<MarkFile>,
    /// Columns that must have these values for a row to count.
    pub only: Vec<(String, String)>,
    /// Graphs, or other samples, in every step's batch.
    pub batch_size: Option<u64>,
    /// The measured rank's place in its run.
    pub place: Option<Place>,
    /// Numbers of the whole run, such as `micro-batches`, which become marks at its start.
    pub facts: Vec<(String, f64)>,
}

/// The name of a number about one stage of a pipeline, counted from 0.
pub fn stage_fact(name: &str, stage: usize) -> String {
    format!("{name} of stage {stage}")
}

impl CsvOptions {
    /// The conditions, with the places of their columns.
    pub(super) fn conditions<'g>(&'g self, table: &Table) -> Result<Vec<(usize, &'g str)>, ImportError> {
        self.only.iter().map(|(column, value)| Ok((table.position(column)?, value.as_str()))).collect()
    }
}

/// Whether a row counts.
pub(super) fn matches(row: &TableRow<'_>, conditions: &[(usize, &str)]) -> bool {
    conditions.iter().all(|(at, value)| row.text(*at) == *value)
}
