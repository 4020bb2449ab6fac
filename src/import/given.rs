//! What a person says about a table that the table does not: which rows count, which rank of which run it is of, and
//! numbers that hold for the whole run.

use gnntop_wire::Place;

use super::error::ImportError;
use super::table::{Row, Table};

/// What is said beside the columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    /// Columns that must have these values for a row to count.
    pub only: Vec<(String, String)>,
    /// Where the rank that was measured stands in its run.
    pub place: Option<Place>,
    /// Numbers of the whole run, such as `micro-batches`, which become marks at its start.
    pub facts: Vec<(String, f64)>,
}

impl Given {
    /// The conditions, with the places of their columns.
    pub(super) fn conditions<'g>(&'g self, table: &Table) -> Result<Vec<(usize, &'g str)>, ImportError> {
        self.only.iter().map(|(column, value)| Ok((table.position(column)?, value.as_str()))).collect()
    }
}

/// Whether a row counts.
pub(super) fn counts(row: &Row<'_>, conditions: &[(usize, &str)]) -> bool {
    conditions.iter().all(|(at, value)| row.text(*at) == *value)
}
