//! The edges of a batch as the kernels want them: CSR by destination, its reverse, and how to divide the work.

use std::ops::Range;

use candle_core::{Result, bail};

use super::ranges::balanced_ranges;

/// Edges of one node from which it is computed by all threads together, column by column, so that a hub does not
/// hold up a whole range.
const HUB_EDGES: usize = 4096;

/// Work ranges per thread: a few, so that a thread that is held up loses some of its ranges to the others.
const RANGES_PER_THREAD: usize = 4;

/// Consecutive nodes of equal in-degree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DegreeRun {
    /// Incoming edges of each node of the run.
    pub degree: usize,
    /// The nodes.
    pub rows: Range<usize>,
}

/// Directed edges from source nodes to target nodes in two CSR layouts. In a graph both are the same nodes; in a block
/// of a sampled neighbourhood the targets are the first of the sources. The position of an edge in
/// [`sources`](Self::sources) is its number.
#[derive(Debug, Clone)]
pub struct Adjacency {
    row_start: Vec<u32>,
    source: Vec<u32>,
    reverse_start: Vec<u32>,
    reverse: Vec<(u32, u32)>,
    degree_runs: Vec<DegreeRun>,
    hub_edges: usize,
    target_ranges: Vec<Range<usize>>,
    source_ranges: Vec<Range<usize>>,
}

impl Adjacency {
    /// From the CSR by destination: the edges into node `i` come from `source[row_start[i]..row_start[i + 1]]`.
    ///
    /// # Errors
    /// `row_start` is empty, does not begin at 0, decreases or does not end at the number of edges, or a source is
    /// no node.
    pub fn new(row_start: Vec<u32>, source: Vec<u32>) -> Result<Self> {
        Self::with_hub_edges(row_start, source, HUB_EDGES)
    }

    /// [`new`](Self::new) for edges from `source_nodes` nodes to `row_start.len() - 1` others.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn bipartite(row_start: Vec<u32>, source: Vec<u32>, source_nodes: usize) -> Result<Self> {
        Self::build(row_start, source, source_nodes, HUB_EDGES)
    }

    /// [`new`](Self::new) with another limit for hubs.
    pub(crate) fn with_hub_edges(row_start: Vec<u32>, source: Vec<u32>, hub_edges: usize) -> Result<Self> {
        let nodes = row_start.len().saturating_sub(1);
        Self::build(row_start, source, nodes, hub_edges)
    }

    fn build(row_start: Vec<u32>, source: Vec<u32>, source_nodes: usize, hub_edges: usize) -> Result<Self> {
        check(&row_start, &source, source_nodes)?;
        let (reverse_start, reverse) = reversed(&row_start, &source, source_nodes);
        let parts = RANGES_PER_THREAD * rayon::current_num_threads();
        Ok(Self {
            degree_runs: degree_runs(&row_start),
            target_ranges: balanced_ranges(&row_start, parts, hub_edges),
            source_ranges: balanced_ranges(&reverse_start, parts, hub_edges),
            row_start,
            source,
            reverse_start,
            reverse,
            hub_edges,
        })
    }

    /// Number of target nodes; in a graph, of all nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.row_start.len() - 1
    }

    /// Number of source nodes.
    #[must_use]
    pub fn source_nodes(&self) -> usize {
        self.reverse_start.len() - 1
    }

    /// Number of directed edges.
    #[must_use]
    pub fn edges(&self) -> usize {
        self.source.len()
    }

    /// The source of every edge, grouped by destination.
    #[must_use]
    pub fn sources(&self) -> &[u32] {
        &self.source
    }

    /// The numbers of the edges into `node`.
    #[must_use]
    pub fn incoming(&self, node: usize) -> Range<usize> {
        self.row_start[node] as usize..self.row_start[node + 1] as usize
    }

    /// Number of edges into `node`.
    #[must_use]
    pub fn in_degree(&self, node: usize) -> usize {
        self.incoming(node).len()
    }

    /// (destination, edge number) of every edge out of `node`, by ascending edge number.
    #[must_use]
    pub fn outgoing(&self, node: usize) -> &[(u32, u32)] {
        &self.reverse[self.reverse_start[node] as usize..self.reverse_start[node + 1] as usize]
    }

    /// All nodes as maximal runs of equal in-degree, in order. Few and long where nodes are numbered by degree.
    #[must_use]
    pub fn degree_runs(&self) -> &[DegreeRun] {
        &self.degree_runs
    }

    /// Where the edges into each target start, `[nodes + 1]`.
    pub(super) fn target_starts(&self) -> &[u32] {
        &self.row_start
    }

    /// Edges from which a node is a hub, and edges of a hub that one thread takes at once.
    pub(super) fn hub_edges(&self) -> usize {
        self.hub_edges
    }

    /// All nodes in ranges of about equal numbers of incoming edges, hubs not counted.
    pub(super) fn target_ranges(&self) -> &[Range<usize>] {
        &self.target_ranges
    }

    /// All nodes in ranges of about equal numbers of outgoing edges, hubs not counted.
    pub(super) fn source_ranges(&self) -> &[Range<usize>] {
        &self.source_ranges
    }

    /// Whether a node with this many edges is computed by all threads together.
    pub(super) fn is_hub(&self, edges: usize) -> bool {
        edges >= self.hub_edges
    }
}

fn check(row_start: &[u32], source: &[u32], source_nodes: usize) -> Result<()> {
    let (Some(&first), Some(&last)) = (row_start.first(), row_start.last()) else {
        bail!("row_start is empty; it needs one entry more than there are nodes");
    };
    if first != 0 || last as usize != source.len() || row_start.windows(2).any(|row| row[0] > row[1]) {
        bail!("row_start must ascend from 0 to the number of edges ({})", source.len());
    }
    if let Some(&node) = source.iter().find(|&&node| node as usize >= source_nodes) {
        bail!("an edge comes from node {node}, but there are only {source_nodes} nodes");
    }
    Ok(())
}

/// Counting sort of the edges by source: the starts, and (destination, edge number) by source. It counts one row
/// late; filling then moves each start to its final place.
fn reversed(row_start: &[u32], source: &[u32], source_nodes: usize) -> (Vec<u32>, Vec<(u32, u32)>) {
    let mut start = vec![0u32; source_nodes + 2];
    for &node in source {
        start[node as usize + 2] += 1;
    }
    for index in 1..start.len() {
        start[index] += start[index - 1];
    }
    let mut reverse = vec![(0, 0); source.len()];
    for (target, row) in row_start.windows(2).enumerate() {
        for edge in row[0]..row[1] {
            let slot = &mut start[source[edge as usize] as usize + 1];
            reverse[*slot as usize] = (target as u32, edge);
            *slot += 1;
        }
    }
    start.pop();
    (start, reverse)
}

fn degree_runs(row_start: &[u32]) -> Vec<DegreeRun> {
    let mut runs: Vec<DegreeRun> = Vec::new();
    for (node, row) in row_start.windows(2).enumerate() {
        let degree = (row[1] - row[0]) as usize;
        match runs.last_mut() {
            Some(run) if run.degree == degree => run.rows.end = node + 1,
            _ => runs.push(DegreeRun { degree, rows: node..node + 1 }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layouts_hold_the_same_edges() {
        // 0 <- 2, 0 <- 2 (duplicate), 1 <- 1 (loop), 3 <- 0; node 2 has no in-edge, node 4 has no edge.
        let adjacency = Adjacency::new(vec![0, 2, 3, 3, 4, 4], vec![2, 2, 1, 0]).unwrap();
        assert_eq!((adjacency.nodes(), adjacency.edges()), (5, 4));
        assert_eq!(adjacency.outgoing(0), [(3, 3)]);
        assert_eq!(adjacency.outgoing(1), [(1, 2)]);
        assert_eq!(adjacency.outgoing(2), [(0, 0), (0, 1)]);
        assert!(adjacency.outgoing(3).is_empty() && adjacency.outgoing(4).is_empty());
        let runs: Vec<_> = adjacency.degree_runs().iter().map(|run| (run.degree, run.rows.clone())).collect();
        assert_eq!(runs, [(2, 0..1), (1, 1..2), (0, 2..3), (1, 3..4), (0, 4..5)]);
    }

    #[test]
    fn broken_layouts_are_refused() {
        let cases: [(&[u32], &[u32]); 5] =
            [(&[], &[]), (&[1, 1], &[0]), (&[0, 2, 1], &[0]), (&[0, 2], &[0]), (&[0, 1], &[1])];
        for (row_start, source) in cases {
            assert!(Adjacency::new(row_start.to_vec(), source.to_vec()).is_err(), "{row_start:?}");
        }
        assert_eq!(Adjacency::new(vec![0], vec![]).unwrap().nodes(), 0);
        assert!(Adjacency::bipartite(vec![0, 1], vec![3], 3).is_err());
    }

    #[test]
    fn a_block_has_other_sources_than_targets() {
        let block = Adjacency::bipartite(vec![0, 2, 3], vec![4, 1, 4], 5).unwrap();
        assert_eq!((block.nodes(), block.source_nodes(), block.edges()), (2, 5, 3));
        assert_eq!(block.outgoing(4), [(0, 0), (1, 2)]);
        assert!(block.outgoing(3).is_empty());
    }
}
