//! The last steps one by one, with their phases and what was in their batches, for a figure.

use gnntop_analysis::store::{StepRow, Store};

/// Steps that are drawn one by one.
const STEPS: u64 = 60;

/// One step of the figure.
#[derive(Clone, Debug, PartialEq)]
pub struct StepParts {
    /// The step's number.
    pub step: u64,
    /// Its phases in the report's order, with the gap, in nanoseconds.
    pub parts_ns: Vec<u64>,
    /// What was in its batch, in the unit of [`Breakdown::size_unit`].
    pub size: Option<u64>,
}

/// The last steps by phase and size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Breakdown {
    /// The phases.
    pub phases: Vec<String>,
    /// What sizes count: `edges` if the program reports them, else nodes, graphs or seeds.
    pub size_unit: &'static str,
    /// The steps, oldest first.
    pub steps: Vec<StepParts>,
}

impl Breakdown {
    /// The last steps from `skip` on.
    pub(in crate::report) fn of(store: &Store, skip: u64) -> Self {
        let phases = store.phases();
        let first = skip.max(store.steps().total().saturating_sub(STEPS));
        let rows: Vec<StepRow<'_>> = store.steps().rows(first..u64::MAX).collect();
        let (size_unit, size) = unit(&rows);
        let part = |row: &StepRow<'_>| StepParts {
            step: row.step().0,
            parts_ns: phases.iter().map(|phase| row.phase_ns(phase.slot)).collect(),
            size: size(row),
        };
        let names = phases.iter().map(|phase| phase.text.clone()).collect();
        Self { phases: names, size_unit, steps: rows.iter().map(part).collect() }
    }
}

type Size = fn(&StepRow<'_>) -> Option<u64>;

/// The first of these sizes that any step reports.
fn unit(rows: &[StepRow<'_>]) -> (&'static str, Size) {
    let sizes: [(&'static str, Size); 4] = [
        ("edges", |row| row.batch().edges),
        ("nodes", |row| row.batch().nodes),
        ("graphs", |row| row.batch().graphs),
        ("seeds", |row| row.batch().seeds),
    ];
    let told = sizes.iter().find(|(_, size)| rows.iter().any(|row| size(row).is_some()));
    *told.unwrap_or(&sizes[0])
}
