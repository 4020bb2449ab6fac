//! Mean and projection commute. A layer that aggregates first makes products for its targets, one that projects first for
//! its sources but with narrower rows along the edges; [`Order`] says which is less work.

use gnntop_data::graph::Adjacency;

/// Whether the mean is taken before or after the projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    AggregateFirst,
    ProjectFirst,
}

impl Order {
    /// The cheaper one for a training step: multiplications at the rate of a matrix product, and bytes along the edges
    /// at the rate of memory, as a CPU core has them (about 100 GFLOP/s and 10 GB/s: 10 multiply-adds take as long as 2
    /// bytes). A GPU's are both faster by about the same factor.
    pub(super) fn new(adjacency: &Adjacency, input: usize, output: usize, with_input: bool) -> Self {
        let passes = if with_input { 3 } else { 2 };
        let products = |rows: usize| passes * (rows + adjacency.nodes()) * input * output;
        let edges = |width: usize, passes: usize| 20 * passes * adjacency.edges() * width;
        let aggregate = products(adjacency.nodes()) + edges(input, passes - 1);
        let project = products(adjacency.source_nodes()) + edges(output, 2);
        if project < aggregate { Self::ProjectFirst } else { Self::AggregateFirst }
    }
}
