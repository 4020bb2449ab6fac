//! Step times over the run, for a figure.

use gnntop_analysis::store::{StepColumn, Store};

/// Columns of a trace; more steps share one.
const COLUMNS: usize = 600;

/// The steps of one column of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracePoint {
    /// The first step's ordinal.
    pub first: u64,
    /// Its number, as the program counts.
    pub step: u64,
    /// Time of the step that takes longest.
    pub worst_ns: u64,
    /// Time of the median step.
    pub median_ns: u64,
}

/// The steps from `skip` on, a point for each column.
pub(in crate::report) fn trace(store: &Store, skip: u64) -> Vec<TracePoint> {
    let columns = store.steps().columns(skip..u64::MAX, COLUMNS);
    let step = |ordinal: u64| store.steps().known_row(ordinal).map_or(ordinal, |row| row.step().0);
    let point = |column: &StepColumn<'_>| TracePoint {
        first: column.first,
        step: step(column.first),
        worst_ns: column.worst.period_ns(),
        median_ns: column.median.period_ns(),
    };
    columns.iter().map(point).collect()
}
