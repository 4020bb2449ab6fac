//! One large graph with features, labels and a split of its nodes: what every reader and generator makes and every
//! sampler and model reads.

use std::sync::Arc;

use thiserror::Error;

use super::values::Values;

/// Directed edges grouped by destination (compressed sparse rows): the edges into node `i` come from
/// `source[row_start[i]..row_start[i + 1]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Csr {
    row_start: Vec<u32>,
    source: Vec<u32>,
}

/// Why edges make no graph.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CsrError {
    /// An edge names a node that the graph does not have.
    #[error("edge {position} goes from node {from} to node {to}, but there are only {nodes} nodes (numbered from 0)")]
    EdgeOutOfRange {
        /// Position in the list of edges.
        position: usize,
        /// Source node.
        from: u32,
        /// Destination node.
        to: u32,
        /// Nodes of the graph.
        nodes: usize,
    },
    /// More edges or nodes than 32-bit numbers count.
    #[error("the graph has {nodes} nodes and {edges} edges; at most {} of each are supported", u32::MAX)]
    TooLarge {
        /// Nodes of the graph.
        nodes: usize,
        /// Edges of the graph.
        edges: usize,
    },
}

impl Csr {
    /// From edges as (source, destination), in any order. Duplicates and self-loops are kept; sources ascend within a
    /// destination.
    ///
    /// # Errors
    /// An edge names a node out of range, or there are more than `u32::MAX` nodes or edges.
    pub fn from_edges(nodes: usize, edges: &[(u32, u32)]) -> Result<Self, CsrError> {
        Self::check(nodes, edges.iter().copied(), 1)?;
        Ok(Self::counting_sort(nodes, edges.iter().copied()))
    }

    fn check(
        nodes: usize,
        edges: impl ExactSizeIterator<Item = (u32, u32)>,
        directions: usize,
    ) -> Result<(), CsrError> {
        let directed = directions.saturating_mul(edges.len());
        if nodes > u32::MAX as usize || directed > u32::MAX as usize {
            return Err(CsrError::TooLarge { nodes, edges: directed });
        }
        let outside = |(_, (from, to)): &(usize, (u32, u32))| *from as usize >= nodes || *to as usize >= nodes;
        match edges.enumerate().find(outside) {
            Some((position, (from, to))) => Err(CsrError::EdgeOutOfRange { position, from, to, nodes }),
            None => Ok(()),
        }
    }

    /// From undirected edges, each given any number of times in either direction: both directions of each, once.
    /// Self-loops are left out, as Planetoid's readers do.
    ///
    /// # Errors
    /// As [`Csr::from_edges`]; the number of edges is counted in both directions.
    pub fn from_undirected(nodes: usize, edges: &[(u32, u32)]) -> Result<Self, CsrError> {
        Self::check(nodes, edges.iter().copied(), 2)?;
        Ok(Self::symmetric(nodes, edges))
    }

    /// The same for edges known to be in range.
    pub(super) fn symmetric(nodes: usize, edges: &[(u32, u32)]) -> Self {
        let forward = edges.iter().copied().filter(|(from, to)| from != to);
        let both = forward.flat_map(|(from, to)| [(from, to), (to, from)]);
        let mut csr = Self::counting_sort(nodes, both);
        csr.remove_duplicates();
        csr
    }

    /// From edges as two columns, sources and destinations, in any order, as [`Csr::from_edges`].
    pub(super) fn from_columns(nodes: usize, from: &[u32], to: &[u32]) -> Result<Self, CsrError> {
        let edges = from.iter().copied().zip(to.iter().copied());
        Self::check(nodes, edges.clone(), 1)?;
        Ok(Self::counting_sort(nodes, edges))
    }

    /// From finished rows: `row_start` ascends from 0 to the length of `source`, and sources ascend within a row.
    pub(super) fn from_sorted_rows(row_start: Vec<u32>, source: Vec<u32>) -> Self {
        debug_assert!(row_start.is_sorted() && row_start.last().is_some_and(|&end| end as usize == source.len()));
        Self { row_start, source }
    }

    fn remove_duplicates(&mut self) {
        let (mut read, mut kept) = (0, 0);
        for row in 0..self.nodes() {
            let (first, end) = (kept, self.row_start[row + 1] as usize);
            for index in read..end {
                if kept == first || self.source[kept - 1] != self.source[index] {
                    self.source[kept] = self.source[index];
                    kept += 1;
                }
            }
            read = end;
            self.row_start[row + 1] = kept as u32;
        }
        self.source.truncate(kept);
        self.source.shrink_to_fit();
    }

    /// Counts one row late, so that filling moves each start to its final place.
    fn counting_sort(nodes: usize, edges: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut row_start = vec![0u32; nodes + 2];
        for (_, to) in edges.clone() {
            row_start[to as usize + 2] += 1;
        }
        for row in 1..row_start.len() {
            row_start[row] += row_start[row - 1];
        }
        let mut source = vec![0u32; row_start.last().map_or(0, |&edges| edges as usize)];
        for (from, to) in edges {
            let slot = &mut row_start[to as usize + 1];
            source[*slot as usize] = from;
            *slot += 1;
        }
        row_start.pop();
        for row in 0..nodes {
            source[row_start[row] as usize..row_start[row + 1] as usize].sort_unstable();
        }
        Self { row_start, source }
    }

    /// Number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.row_start.len() - 1
    }

    /// Number of directed edges.
    #[must_use]
    pub fn edges(&self) -> usize {
        self.source.len()
    }

    /// The in-neighbours of `node`, ascending.
    ///
    /// # Panics
    /// If the graph has no such node.
    #[must_use]
    pub fn neighbours(&self, node: u32) -> &[u32] {
        &self.source[self.row_start[node as usize] as usize..self.row_start[node as usize + 1] as usize]
    }

    /// Start of each node's edges in [`sources`](Self::sources), `[nodes + 1]`.
    #[must_use]
    pub fn row_start(&self) -> &[u32] {
        &self.row_start
    }

    /// Source of every edge, grouped by destination, `[edges]`.
    #[must_use]
    pub fn sources(&self) -> &[u32] {
        &self.source
    }
}

/// Node features, row-major, `[nodes, width]`.
#[derive(Debug, Clone, PartialEq)]
pub enum Features {
    /// Every value.
    Dense {
        /// `[nodes, width]`.
        values: Values,
        /// Features per node.
        width: usize,
    },
    /// The values that are not 0, by row.
    Sparse {
        /// Start of each node's entries, `[nodes + 1]`.
        row_start: Vec<u32>,
        /// Column of each entry, ascending within a row.
        column: Vec<u32>,
        /// Value of each entry.
        value: Vec<f32>,
        /// Features per node.
        width: usize,
    },
}

impl Features {
    /// Features per node.
    #[must_use]
    pub fn width(&self) -> usize {
        match self {
            Self::Dense { width, .. } | Self::Sparse { width, .. } => *width,
        }
    }

    /// Rows: one for each node where there is a column.
    #[must_use]
    pub fn rows(&self) -> usize {
        match self {
            Self::Dense { values, width } => values.len() / (*width).max(1),
            Self::Sparse { row_start, .. } => row_start.len().saturating_sub(1),
        }
    }

    /// Every value, `[nodes, width]`, and the width, if all are held.
    #[must_use]
    pub fn dense(&self) -> Option<(&[f32], usize)> {
        match self {
            Self::Dense { values, width } => Some((values, *width)),
            Self::Sparse { .. } => None,
        }
    }

    /// Whether they are in a file that the system reads as they are used.
    #[must_use]
    pub fn are_mapped(&self) -> bool {
        matches!(self, Self::Dense { values, .. } if values.is_mapped())
    }

    /// Every row divided by its sum, where that is above 1: PyTorch Geometric's `NormalizeFeatures` for features that
    /// are not negative. Rows of zeros stay.
    #[must_use]
    pub fn row_normalised(&self) -> Self {
        let divide = |row: &mut [f32]| {
            let sum = row.iter().sum::<f32>().max(1.0);
            row.iter_mut().for_each(|value| *value /= sum);
        };
        match self.clone() {
            Self::Dense { values, width } => {
                let mut values = values.to_vec();
                values.chunks_mut(width.max(1)).for_each(divide);
                Self::Dense { values: values.into(), width }
            }
            Self::Sparse { row_start, column, mut value, width } => {
                for bounds in row_start.windows(2) {
                    divide(&mut value[bounds[0] as usize..bounds[1] as usize]);
                }
                Self::Sparse { row_start, column, value, width }
            }
        }
    }

    /// Every value, `[nodes, width]`, whatever the form it is held in.
    #[must_use]
    pub fn to_dense(&self) -> Vec<f32> {
        match self {
            Self::Dense { values, .. } => values.to_vec(),
            Self::Sparse { row_start, column, value, width } => {
                let rows = row_start.len().saturating_sub(1);
                let mut dense = vec![0.0; rows * width];
                for (row, bounds) in row_start.windows(2).enumerate() {
                    for entry in bounds[0] as usize..bounds[1] as usize {
                        dense[row * width + column[entry] as usize] = value[entry];
                    }
                }
                dense
            }
        }
    }
}

/// The training, validation and test nodes; the others only contribute features and edges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Split {
    /// Nodes with a training label.
    pub train: Vec<u32>,
    /// Nodes for choosing the best epoch.
    pub validation: Vec<u32>,
    /// Nodes to judge by.
    pub test: Vec<u32>,
}

/// One graph whose nodes are to be classified. Everything large is shared by clones.
#[derive(Debug, Clone)]
pub struct NodeDataset {
    /// Where it comes from, as a header shows it: `generated (Cora-like, seed 1)` or the path that was read.
    pub origin: String,
    /// The edges, in both directions where the graph is undirected.
    pub graph: Arc<Csr>,
    /// Node features, `[nodes, width]`.
    pub features: Arc<Features>,
    /// Class of each node, below `classes`, `[nodes]`.
    pub labels: Arc<Vec<u32>>,
    /// Number of classes.
    pub classes: usize,
    /// The published split, or a seeded one.
    pub split: Split,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_grouped_by_destination_and_sorted() {
        let csr = Csr::from_edges(4, &[(3, 1), (0, 1), (2, 2), (0, 1), (1, 3)]).unwrap();
        assert_eq!((csr.nodes(), csr.edges()), (4, 5));
        assert_eq!(csr.row_start(), [0, 0, 3, 4, 5]);
        assert_eq!(csr.neighbours(1), [0, 0, 3]);
        assert!(csr.neighbours(0).is_empty());
        assert_eq!(Csr::from_edges(0, &[]).unwrap().nodes(), 0);
    }

    #[test]
    fn an_edge_out_of_range_is_named() {
        let error = Csr::from_edges(2, &[(0, 1), (5, 1)]).unwrap_err();
        assert_eq!(error, CsrError::EdgeOutOfRange { position: 1, from: 5, to: 1, nodes: 2 });
    }

    #[test]
    fn undirected_edges_are_doubled_once_and_loops_left_out() {
        let edges = [(3, 1), (1, 3), (3, 1), (2, 2), (0, 1)];
        let csr = Csr::from_undirected(4, &edges).unwrap();
        assert_eq!(csr, Csr::from_edges(4, &[(3, 1), (1, 3), (0, 1), (1, 0)]).unwrap());
        let error = Csr::from_undirected(4, &[(0, 1), (1, 4)]).unwrap_err();
        assert_eq!(error, CsrError::EdgeOutOfRange { position: 1, from: 1, to: 4, nodes: 4 });
        assert_eq!(Csr::from_columns(4, &[3, 0], &[1, 1]), Csr::from_edges(4, &[(3, 1), (0, 1)]));
        assert_eq!(Csr::from_undirected(0, &[]).unwrap().edges(), 0);
    }

    #[test]
    fn rows_are_normalised_as_pytorch_geometric_does() {
        let sparse = Features::Sparse {
            row_start: vec![0, 2, 2, 3],
            column: vec![0, 2, 1],
            value: vec![1.0, 3.0, 0.5],
            width: 3,
        };
        let dense = Features::Dense { values: sparse.to_dense().into(), width: 3 };
        let expected = [0.25, 0.0, 0.75, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0];
        assert_eq!(sparse.row_normalised().to_dense(), expected);
        assert_eq!(dense.row_normalised().to_dense(), expected);
    }

    #[test]
    fn sparse_features_are_the_same_values() {
        let sparse = Features::Sparse {
            row_start: vec![0, 2, 2, 3],
            column: vec![0, 2, 1],
            value: vec![1.0, 2.0, 3.0],
            width: 3,
        };
        assert_eq!(sparse.to_dense(), [1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0]);
    }
}
