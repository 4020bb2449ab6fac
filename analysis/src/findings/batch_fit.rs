//! How much of a step's time the size of its batch explains.

use super::robust::{LinearFit, median, spread_indices};
use crate::store::StepRow;

/// Steps used for a fit.
const FITTED: usize = 8192;
/// A fit explains the time from this correlation on.
const EXPLAINS: f64 = 0.5;
/// A measure is better than an earlier one only if its correlation is larger by this.
const CLEARLY: f64 = 0.005;
/// A size that at least one in this many steps has is a choice and not chance.
const FULL_SHARE: usize = 3;

/// The measures of a batch that may explain its step's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BatchMeasure {
    Edges,
    Nodes,
    Graphs,
    Seeds,
}

impl BatchMeasure {
    pub(super) const ALL: [Self; 4] = [Self::Edges, Self::Nodes, Self::Graphs, Self::Seeds];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Edges => "edges",
            Self::Nodes => "nodes",
            Self::Graphs => "graphs",
            Self::Seeds => "seeds",
        }
    }

    pub(super) fn value(self, row: &StepRow<'_>) -> Option<u64> {
        let batch = row.batch();
        match self {
            Self::Edges => batch.edges,
            Self::Nodes => batch.nodes,
            Self::Graphs => batch.graphs,
            Self::Seeds => batch.seeds,
        }
    }
}

/// The batches of some steps.
#[derive(Clone, Debug, Default)]
pub(super) struct BatchFit {
    /// Graphs, or seeds, of a full batch, if most batches are equal.
    pub full: Option<u64>,
    /// For each step, whether its batch is smaller than a full one.
    pub is_partial: Vec<bool>,
    /// The measure that explains the time best, with the line in nanoseconds per unit.
    pub fit: Option<(BatchMeasure, LinearFit)>,
}

impl BatchFit {
    /// For rows with these times.
    pub(super) fn new(rows: &[StepRow<'_>], inside_ns: &[f64]) -> Self {
        let full = full_size(rows);
        let is_partial = rows.iter().map(|row| full.zip(batch_size(row)).is_some_and(|(full, n)| n < full)).collect();
        let indices = spread_indices(rows.len(), FITTED);
        let line = |measure: BatchMeasure| {
            let pair = |i: &usize| Some((measure.value(&rows[*i])? as f64, inside_ns[*i]));
            let pairs: Option<Vec<(f64, f64)>> = indices.iter().map(pair).collect();
            Some((measure, LinearFit::fit(&pairs?)?))
        };
        let lines = BatchMeasure::ALL.into_iter().filter_map(line);
        let best = lines.reduce(|best, next| if next.1.r > best.1.r + CLEARLY { next } else { best });
        Self { full, is_partial, fit: best.filter(|(_, line)| line.r >= EXPLAINS) }
    }

    /// Whether batch sizes explain why steps differ.
    pub(super) fn explains(&self) -> bool {
        self.fit.is_some() || self.is_partial.contains(&true)
    }

    /// The time that the batch of a row explains; `None` if it explains none.
    pub(super) fn explained_ns(&self, row: &StepRow<'_>) -> Option<f64> {
        let (measure, line) = self.fit?;
        Some(line.at(measure.value(row)? as f64)).filter(|ns| *ns > 0.0)
    }

    /// For each row, the time that its batch explains, or else the median of rows whose batch is as full.
    pub(super) fn by_shape_ns(&self, rows: &[StepRow<'_>], inside_ns: &[f64]) -> Vec<f64> {
        let class_ns = |partial: bool| {
            let of_class = |(row, is): (usize, &bool)| (*is == partial).then(|| inside_ns[row]);
            median(&mut self.is_partial.iter().enumerate().filter_map(of_class).collect::<Vec<f64>>()).unwrap_or(1.0)
        };
        let classes = if self.fit.is_none() { [class_ns(false), class_ns(true)] } else { [1.0, 1.0] };
        let of = |(row, partial): (&StepRow<'_>, &bool)| {
            self.explained_ns(row).unwrap_or(classes[usize::from(*partial)]).max(1.0)
        };
        rows.iter().zip(&self.is_partial).map(of).collect()
    }
}

/// The number that is chosen as the batch size: graphs, or the seeds of a sampled batch. Nodes and edges of a full
/// batch vary by themselves.
pub(super) fn batch_size(row: &StepRow<'_>) -> Option<u64> {
    row.batch().graphs.or(row.batch().seeds)
}

/// The largest size that at least a third of the steps have; `None` if sizes are unknown or vary.
fn full_size(rows: &[StepRow<'_>]) -> Option<u64> {
    let mut sizes: Vec<u64> = rows.iter().filter_map(batch_size).collect();
    sizes.sort_unstable();
    let enough = (rows.len() / FULL_SHARE).max(1);
    sizes.chunk_by(|a, b| a == b).filter(|equal| equal.len() >= enough).map(|equal| equal[0]).max()
}
