//! Graphs and batches of graphs: the plain data that a model reads, independent of any tensor library.
//!
//! A [`Graph`] is one sample. A [`Batch`] is the disjoint union of several, with its edges in two compressed
//! sparse row (CSR) layouts: by destination for the forward pass (a node gathers from its in-neighbours) and by
//! source for the backward pass (a node gathers the gradients of the edges it fed). A batch is rebuilt in place,
//! so that a training loop touches the same memory at every step.

use thiserror::Error;

/// One graph with node features, directed edges and one regression target.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Graph {
    /// Number of nodes.
    pub nodes: usize,
    /// Node features, `[nodes, features]`, row-major.
    pub features: Vec<f32>,
    /// Directed edges as (source, target), sorted by source, then target.
    pub edges: Vec<(u32, u32)>,
    /// Target value of the whole graph.
    pub y: f32,
}

impl Graph {
    /// Features per node; 0 for a graph with no node.
    #[must_use]
    pub fn feature_width(&self) -> usize {
        self.features.len().checked_div(self.nodes).unwrap_or(0)
    }
}

/// Why graphs could not be put together. `graph` is the position in the list that was given.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A graph has no node, so that pooling over it has no value.
    #[error("graph {graph} has no nodes; remove it from the data set")]
    NoNodes {
        /// Position of the graph.
        graph: usize,
    },
    /// The feature matrix does not have the width of the other graphs, or is not a whole number of rows.
    #[error("graph {graph} has {values} feature values for {nodes} nodes; expected {expected} per node")]
    FeatureWidth {
        /// Position of the graph.
        graph: usize,
        /// Feature values present.
        values: usize,
        /// Nodes of the graph.
        nodes: usize,
        /// Features per node of the first graph.
        expected: usize,
    },
    /// An edge names a node that the graph does not have.
    #[error("graph {graph} has an edge {from} -> {to}, but only {nodes} nodes (numbered from 0)")]
    EdgeOutOfRange {
        /// Position of the graph.
        graph: usize,
        /// Source node of the edge.
        from: u32,
        /// Target node of the edge.
        to: u32,
        /// Nodes of the graph.
        nodes: usize,
    },
    /// Nodes or edges do not fit the 32-bit indices of a batch.
    #[error("the batch has {nodes} nodes and {edges} edges, more than 32-bit indices hold; use a smaller batch")]
    TooLarge {
        /// Nodes of the whole batch.
        nodes: usize,
        /// Edges of the whole batch.
        edges: usize,
    },
}

/// Disjoint union of graphs, nodes numbered through, edges as CSR by destination and by source.
///
/// The in-edges of node `i` come from `source[row_start[i]..row_start[i + 1]]`. The out-edges of node `i` go to
/// `reverse_target[reverse_start[i]..reverse_start[i + 1]]`, and `reverse_edge` over the same range gives the
/// position of each of them in `source`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Batch {
    /// Number of graphs.
    pub graphs: usize,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of directed edges.
    pub edges: usize,
    /// Node features, `[nodes, feature_width]`, row-major.
    pub features: Vec<f32>,
    /// Features per node; 0 in a batch of no graphs.
    pub feature_width: usize,
    /// Start of each node's in-edges in `source`, `[nodes + 1]`.
    pub row_start: Vec<u32>,
    /// Source node of each edge, grouped by destination, `[edges]`; ascending within a group when the graphs'
    /// edges are sorted.
    pub source: Vec<u32>,
    /// Start of each node's out-edges in `reverse_target` and `reverse_edge`, `[nodes + 1]`.
    pub reverse_start: Vec<u32>,
    /// Destination node of each edge, grouped by source, ascending within a group, `[edges]`.
    pub reverse_target: Vec<u32>,
    /// Position in `source` of each edge of the reverse layout, a permutation of `0..edges`, `[edges]`.
    pub reverse_edge: Vec<u32>,
    /// Start of each graph's nodes, `[graphs + 1]`.
    pub graph_start: Vec<u32>,
    /// Target value of each graph, `[graphs]`.
    pub y: Vec<f32>,
}

impl Batch {
    /// An empty batch: no graphs, and start arrays of one zero.
    #[must_use]
    pub fn new() -> Self {
        let mut batch = Self::default();
        batch.clear();
        batch
    }

    /// Becomes the disjoint union of `graphs`, in their order. The buffers are kept, so that a batch no larger
    /// than an earlier one allocates nothing.
    ///
    /// # Errors
    /// A graph without nodes, with a feature width unlike the first graph's, or with an edge to a node it does
    /// not have; more than `u32::MAX` nodes or edges in all. The batch is then empty.
    pub fn assemble(&mut self, graphs: &[&Graph]) -> Result<(), GraphError> {
        self.clear();
        let built = self.build(graphs);
        if built.is_err() {
            self.clear();
        }
        built
    }

    fn build(&mut self, graphs: &[&Graph]) -> Result<(), GraphError> {
        self.check(graphs)?;
        self.copy_nodes(graphs);
        self.sort_by_destination(graphs);
        self.sort_by_source();
        Ok(())
    }

    fn clear(&mut self) {
        (self.graphs, self.nodes, self.edges, self.feature_width) = (0, 0, 0, 0);
        self.features.clear();
        self.source.clear();
        self.reverse_target.clear();
        self.reverse_edge.clear();
        self.y.clear();
        for starts in [&mut self.row_start, &mut self.reverse_start, &mut self.graph_start] {
            starts.clear();
            starts.push(0);
        }
    }

    /// Validates every graph and sets the four sizes.
    fn check(&mut self, graphs: &[&Graph]) -> Result<(), GraphError> {
        let expected = graphs.first().map_or(0, |graph| graph.feature_width());
        for (position, graph) in graphs.iter().enumerate() {
            check_graph(position, graph, expected)?;
            self.nodes = self.nodes.saturating_add(graph.nodes);
            self.edges = self.edges.saturating_add(graph.edges.len());
        }
        let limit = u32::MAX as usize;
        if self.nodes > limit || self.edges > limit {
            return Err(GraphError::TooLarge { nodes: self.nodes, edges: self.edges });
        }
        self.graphs = graphs.len();
        self.feature_width = expected;
        Ok(())
    }

    fn copy_nodes(&mut self, graphs: &[&Graph]) {
        self.features.reserve(self.nodes * self.feature_width);
        let mut nodes = 0;
        for graph in graphs {
            self.features.extend_from_slice(&graph.features);
            self.y.push(graph.y);
            nodes += graph.nodes as u32;
            self.graph_start.push(nodes);
        }
    }

    /// Counting sort of all edges by destination, stable, so that sorted graphs give ascending sources. It counts
    /// one row late: filling then moves each start to its final place, with no second array of cursors.
    fn sort_by_destination(&mut self, graphs: &[&Graph]) {
        self.row_start.resize(self.nodes + 2, 0);
        self.source.resize(self.edges, 0);
        for (graph, &offset) in graphs.iter().zip(&self.graph_start) {
            for &(_, target) in &graph.edges {
                self.row_start[(offset + target) as usize + 2] += 1;
            }
        }
        accumulate(&mut self.row_start);
        for (graph, &offset) in graphs.iter().zip(&self.graph_start) {
            for &(source, target) in &graph.edges {
                let slot = &mut self.row_start[(offset + target) as usize + 1];
                self.source[*slot as usize] = offset + source;
                *slot += 1;
            }
        }
        self.row_start.truncate(self.nodes + 1);
    }

    /// The same for the reverse layout, from the finished forward one.
    fn sort_by_source(&mut self) {
        self.reverse_start.resize(self.nodes + 2, 0);
        self.reverse_target.resize(self.edges, 0);
        self.reverse_edge.resize(self.edges, 0);
        for &source in &self.source {
            self.reverse_start[source as usize + 2] += 1;
        }
        accumulate(&mut self.reverse_start);
        for (target, row) in self.row_start.windows(2).enumerate() {
            for edge in row[0]..row[1] {
                let slot = &mut self.reverse_start[self.source[edge as usize] as usize + 1];
                self.reverse_target[*slot as usize] = target as u32;
                self.reverse_edge[*slot as usize] = edge;
                *slot += 1;
            }
        }
        self.reverse_start.truncate(self.nodes + 1);
    }
}

/// In-degree histogram over all nodes of all graphs: entry `d` counts the nodes with `d` incoming edges. Empty for
/// no graphs. Edges to nodes that a graph does not have are left out.
#[must_use]
pub fn in_degree_histogram<'a>(graphs: impl IntoIterator<Item = &'a Graph>) -> Vec<u64> {
    let mut histogram: Vec<u64> = Vec::new();
    let mut degree: Vec<usize> = Vec::new();
    for graph in graphs {
        degree.clear();
        degree.resize(graph.nodes, 0);
        for &(_, target) in &graph.edges {
            if let Some(count) = degree.get_mut(target as usize) {
                *count += 1;
            }
        }
        for &count in &degree {
            if histogram.len() <= count {
                histogram.resize(count + 1, 0);
            }
            histogram[count] += 1;
        }
    }
    histogram
}

fn check_graph(position: usize, graph: &Graph, expected: usize) -> Result<(), GraphError> {
    let (nodes, values) = (graph.nodes, graph.features.len());
    if nodes == 0 {
        return Err(GraphError::NoNodes { graph: position });
    }
    if nodes.checked_mul(expected) != Some(values) {
        return Err(GraphError::FeatureWidth { graph: position, values, nodes, expected });
    }
    let outside = |&&(from, to): &&(u32, u32)| from as usize >= nodes || to as usize >= nodes;
    match graph.edges.iter().find(outside) {
        Some(&(from, to)) => Err(GraphError::EdgeOutOfRange { graph: position, from, to, nodes }),
        None => Ok(()),
    }
}

/// Turns counts into running sums, in place.
fn accumulate(counts: &mut [u32]) {
    let mut total = 0;
    for count in counts {
        total += *count;
        *count = total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn graph(nodes: usize, edges: &[(u32, u32)], y: f32) -> Graph {
        let features = (0..nodes * 2).map(|value| value as f32 + y).collect();
        Graph { nodes, features, edges: edges.to_vec(), y }
    }

    fn assembled(graphs: &[&Graph]) -> Batch {
        let mut batch = Batch::new();
        batch.assemble(graphs).unwrap();
        batch
    }

    #[test]
    fn an_empty_list_gives_the_empty_batch() {
        let mut batch = assembled(&[&graph(2, &[(0, 1)], 1.0)]);
        batch.assemble(&[]).unwrap();
        assert_eq!(batch, Batch::new());
        assert_eq!(batch.row_start, [0]);
        assert_eq!(batch.graph_start, [0]);
    }

    #[test]
    fn single_atoms_self_loops_and_duplicates_are_kept() {
        let atom = graph(1, &[], 3.0);
        let odd = graph(2, &[(0, 0), (0, 1), (0, 1), (1, 0)], 4.0);
        let batch = assembled(&[&atom, &odd, &atom]);
        assert_eq!((batch.graphs, batch.nodes, batch.edges, batch.feature_width), (3, 4, 4, 2));
        assert_eq!(batch.graph_start, [0, 1, 3, 4]);
        assert_eq!(batch.row_start, [0, 0, 2, 4, 4]);
        assert_eq!(batch.source, [1, 2, 1, 1]);
        assert_eq!(batch.reverse_start, [0, 0, 3, 4, 4]);
        assert_eq!(batch.reverse_target, [1, 2, 2, 1]);
        assert_eq!(batch.reverse_edge, [0, 2, 3, 1]);
        assert_eq!(batch.y, [3.0, 4.0, 3.0]);
        assert_eq!(batch.features, [3.0, 4.0, 4.0, 5.0, 6.0, 7.0, 3.0, 4.0]);
    }

    #[test]
    fn bad_graphs_are_refused_and_leave_the_batch_empty() {
        let good = graph(2, &[(0, 1)], 0.0);
        let mut wide = good.clone();
        wide.features.push(1.0);
        let outside = graph(2, &[(0, 2)], 0.0);
        let mut batch = assembled(&[&good]);
        let cases = [
            (vec![&good, &wide], GraphError::FeatureWidth { graph: 1, values: 5, nodes: 2, expected: 2 }),
            (vec![&outside], GraphError::EdgeOutOfRange { graph: 0, from: 0, to: 2, nodes: 2 }),
        ];
        for (graphs, error) in cases {
            assert_eq!(batch.assemble(&graphs), Err(error));
            assert_eq!(batch, Batch::new());
        }
        assert_eq!(batch.assemble(&[&Graph::default()]), Err(GraphError::NoNodes { graph: 0 }));
    }

    #[test]
    fn reassembling_keeps_the_buffers() {
        let large = graph(50, &[(0, 1), (1, 0), (3, 4)], 0.0);
        let small = graph(3, &[(0, 1)], 0.0);
        let mut batch = assembled(&[&large, &large]);
        let before = (batch.features.as_ptr(), batch.row_start.as_ptr(), batch.source.as_ptr());
        batch.assemble(&[&small]).unwrap();
        batch.assemble(&[&large, &large]).unwrap();
        assert_eq!(before, (batch.features.as_ptr(), batch.row_start.as_ptr(), batch.source.as_ptr()));
    }

    #[test]
    fn the_histogram_counts_incoming_edges() {
        let star = graph(4, &[(0, 3), (1, 3), (2, 3)], 0.0);
        assert_eq!(in_degree_histogram([&star, &graph(1, &[], 0.0)]), [4, 0, 0, 1]);
        assert!(in_degree_histogram([]).is_empty());
    }

    fn any_graph() -> impl Strategy<Value = Graph> {
        (1usize..8).prop_flat_map(|nodes| {
            let end = nodes as u32;
            (proptest::collection::vec((0..end, 0..end), 0..20), any::<i16>()).prop_map(move |(mut edges, y)| {
                edges.sort_unstable();
                graph(nodes, &edges, f32::from(y))
            })
        })
    }

    proptest! {
        #[test]
        fn equals_the_naive_union(graphs in proptest::collection::vec(any_graph(), 0..12)) {
            let list: Vec<&Graph> = graphs.iter().collect();
            let batch = assembled(&list);
            let mut edges = Vec::new();
            let mut features = Vec::new();
            let mut nodes = 0u32;
            for (position, graph) in graphs.iter().enumerate() {
                prop_assert_eq!(batch.graph_start[position], nodes);
                edges.extend(graph.edges.iter().map(|&(from, to)| (from + nodes, to + nodes)));
                features.extend_from_slice(&graph.features);
                nodes += graph.nodes as u32;
            }
            prop_assert_eq!(batch.graph_start.last().copied(), Some(nodes));
            prop_assert_eq!(&batch.features, &features);
            let mut positions = vec![false; edges.len()];
            for node in 0..nodes {
                let row = batch.row_start[node as usize] as usize..batch.row_start[node as usize + 1] as usize;
                let into: Vec<u32> = edges.iter().filter(|edge| edge.1 == node).map(|edge| edge.0).collect();
                prop_assert_eq!(&batch.source[row], &into[..]);
                let row = batch.reverse_start[node as usize] as usize..batch.reverse_start[node as usize + 1] as usize;
                let out: Vec<u32> = edges.iter().filter(|edge| edge.0 == node).map(|edge| edge.1).collect();
                prop_assert_eq!(&batch.reverse_target[row.clone()], &out[..]);
                for slot in row {
                    let edge = batch.reverse_edge[slot] as usize;
                    let target = batch.reverse_target[slot] as usize;
                    prop_assert_eq!(batch.source[edge], node);
                    prop_assert!((batch.row_start[target] as usize..batch.row_start[target + 1] as usize).contains(&edge));
                    prop_assert!(!std::mem::replace(&mut positions[edge], true));
                }
            }
            prop_assert!(positions.into_iter().all(|seen| seen));
        }
    }
}
