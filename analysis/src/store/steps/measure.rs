//! Measures of a step: its time, or its time per unit of work, which shows that a small batch was small.

use serde::Serialize;

use super::statistics::BatchTotals;
use super::step_row::StepRow;

/// A measure of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepMeasure {
    /// Its period.
    #[default]
    Period,
    /// Its period divided by the graphs in its batch.
    Graph,
    /// Its period divided by the seed nodes in its batch.
    Seed,
    /// Its period divided by thousands of nodes in its batch.
    ThousandNodes,
    /// Its period divided by thousands of directed edges in its batch.
    ThousandEdges,
}

impl StepMeasure {
    /// All measures.
    pub const ALL: [Self; 5] = [Self::Period, Self::Graph, Self::Seed, Self::ThousandNodes, Self::ThousandEdges];

    /// The measure in nanoseconds; `None` if the step does not report the divisor, or it is 0.
    pub fn value(self, row: &StepRow<'_>) -> Option<u64> {
        self.scale(row, row.period_ns())
    }

    /// `ns` of the step's time in this measure, in nanoseconds.
    pub fn scale(self, row: &StepRow<'_>, ns: u64) -> Option<u64> {
        let batch = row.batch();
        let (pieces, of) = match self {
            Self::Period => return Some(ns),
            Self::Graph => (batch.graphs, 1),
            Self::Seed => (batch.seeds, 1),
            Self::ThousandNodes => (batch.nodes, 1000),
            Self::ThousandEdges => (batch.edges, 1000),
        };
        let pieces = pieces.filter(|pieces| *pieces > 0)?;
        u64::try_from(u128::from(ns) * of / u128::from(pieces)).ok()
    }

    /// Whether any step reported the divisor.
    pub fn is_known(self, all: &BatchTotals) -> bool {
        let total = match self {
            Self::Period => return true,
            Self::Graph => all.graphs,
            Self::Seed => all.seeds,
            Self::ThousandNodes => all.nodes,
            Self::ThousandEdges => all.edges,
        };
        total.sum > 0
    }

    /// Name of the unit of work; `None` for the whole step.
    pub fn unit_name(self) -> Option<&'static str> {
        match self {
            Self::Period => None,
            Self::Graph => Some("graph"),
            Self::Seed => Some("seed"),
            Self::ThousandNodes => Some("1,000 nodes"),
            Self::ThousandEdges => Some("1,000 edges"),
        }
    }
}
