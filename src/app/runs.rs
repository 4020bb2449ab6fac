//! The table of many runs: which are shown, in which order, and what was last read of them.

use std::path::Path;

use super::questions::Questions;
use crate::runs_table::{Column, FittedColumn, Order, fit};
use gnntop_analysis::many_runs::RunRow;
use gnntop_analysis::source::catalog::{CatalogEntry, EntryKind};

/// Columns of the screen before the table: the mark of the selected run.
const MARK: u16 = 1;

/// The runs to look at.
#[derive(Clone, Debug, Default)]
pub(super) struct RunsTable {
    /// Whether there is a table to come back to.
    is_offered: bool,
    rows: Vec<RunRow>,
    /// Why there may be more, or why the rows are old.
    problem: Option<String>,
    order: Order,
    /// The filter that is set again when a person comes back.
    filter: String,
}

impl RunsTable {
    /// A table in this order, with this filter.
    pub(super) fn new(order: Order) -> Self {
        Self { is_offered: true, order, ..Self::default() }
    }

    pub(super) fn is_offered(&self) -> bool {
        self.is_offered
    }

    pub(super) fn order(&self) -> Order {
        self.order
    }

    pub(super) fn set_order(&mut self, order: Order) {
        self.order = order;
    }

    pub(super) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// All of them, in no order.
    pub(super) fn all(&self) -> &[RunRow] {
        &self.rows
    }

    /// Those that pass the filter, in order.
    pub(super) fn shown(&self, filter: &Questions) -> Vec<&RunRow> {
        let mut rows: Vec<&RunRow> = self.rows.iter().filter(|row| passes(row, filter.filter())).collect();
        self.order.sort(&mut rows);
        rows
    }

    /// Sorts by the next column that a screen of this width shows.
    pub(super) fn sort_by_next(&mut self, filter: &Questions, width: u16) {
        let columns = columns(&self.shown(filter), width);
        let columns: Vec<Column> = columns.iter().map(|fitted| fitted.column).collect();
        self.order = self.order.next(&columns);
    }

    /// The run at `at` of those that are shown, else the last one.
    pub(super) fn row(&self, at: usize, filter: &Questions) -> Option<&RunRow> {
        let rows = self.shown(filter);
        rows.get(at).or(rows.last()).copied()
    }

    /// The line of the run with this path.
    pub(super) fn line_of(&self, path: &Path, filter: &Questions) -> Option<usize> {
        self.shown(filter).iter().position(|row| row.path == path)
    }

    /// Takes in what is known now; keeps the rows if that is only why there are no new ones.
    pub(super) fn set(&mut self, rows: Option<Vec<RunRow>>, problem: Option<String>) {
        self.problem = problem;
        if let Some(rows) = rows {
            self.rows = rows;
        }
    }

    /// A run is opened: keeps the filter until a person comes back.
    pub(super) fn keep_filter(&mut self, filter: &str) {
        filter.clone_into(&mut self.filter);
    }

    pub(super) fn take_filter(&mut self) -> String {
        std::mem::take(&mut self.filter)
    }
}

/// The columns of the table that a screen of this width has room for.
pub(super) fn columns(rows: &[&RunRow], width: u16) -> Vec<FittedColumn> {
    fit(rows, usize::from(width.saturating_sub(MARK)))
}

/// Whether a run is meant by a part of its name, user, host, state, bound, finding or command.
pub fn passes(row: &RunRow, filter: &str) -> bool {
    let filter = filter.to_lowercase();
    let has = |text: &str| text.to_lowercase().contains(&filter);
    let columns = [Column::Name, Column::User, Column::State, Column::Bound, Column::Finding];
    let is_in_column = |column: &Column| column.text(row).is_some_and(|text| has(&text));
    filter.is_empty() || columns.iter().any(is_in_column) || row.hosts.iter().any(|host| has(host)) || has(&row.command)
}

/// The run as something that can be opened.
pub(super) fn entry(row: &RunRow) -> CatalogEntry {
    CatalogEntry {
        kind: if row.is_live() { EntryKind::Live } else { EntryKind::Ended },
        name: row.name.clone(),
        pid: Some(row.pid),
        command: row.command.clone(),
        size_bytes: 0,
        age: None,
        started: None,
        folder: None,
        latest: None,
        path: row.path.clone(),
    }
}
