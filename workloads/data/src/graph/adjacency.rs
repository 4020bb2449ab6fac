//! The edges of a batch in the layout of the kernels: CSR by destination, its reverse, and how to divide the work.

use std::ops::Range;

use candle_core::{Result, bail};

use super::device_slot::DeviceSlot;
use super::ranges::balanced_ranges;

/// Number of edges from which all threads compute a node together, column by column, so that a hub does not hold up a
/// whole range.
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
    on_device: DeviceSlot,
}

impl Default for Adjacency {
    /// No nodes and no edges.
    fn default() -> Self {
        let mut adjacency = Self {
            row_start: vec![0],
            source: Vec::new(),
            reverse_start: Vec::new(),
            reverse: Vec::new(),
            degree_runs: Vec::new(),
            hub_edges: HUB_EDGES,
            target_ranges: Vec::new(),
            source_ranges: Vec::new(),
            on_device: DeviceSlot::default(),
        };
        adjacency.index(0);
        adjacency
    }
}

impl Adjacency {
    /// From the CSR by destination: the edges into node `i` come from `source[row_start[i]..row_start[i + 1]]`.
    ///
    /// # Errors
    /// `row_start` is empty, does not begin at 0, decreases or does not end at the number of edges, or a source is not
    /// a node.
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
    pub fn with_hub_edges(row_start: Vec<u32>, source: Vec<u32>, hub_edges: usize) -> Result<Self> {
        let nodes = row_start.len().saturating_sub(1);
        Self::build(row_start, source, nodes, hub_edges)
    }

    fn build(mut row_start: Vec<u32>, mut source: Vec<u32>, source_nodes: usize, hub_edges: usize) -> Result<Self> {
        let mut adjacency = Self { hub_edges, ..Self::default() };
        adjacency.rebuild(&mut row_start, &mut source, source_nodes)?;
        Ok(adjacency)
    }

    /// Becomes what [`bipartite`](Self::bipartite) makes of these edges, in the memory it has. Its old edges come back
    /// in `row_start` and `source`, as memory for the next ones.
    ///
    /// # Errors
    /// As [`new`](Self::new); nothing has changed then.
    pub fn rebuild(&mut self, row_start: &mut Vec<u32>, source: &mut Vec<u32>, source_nodes: usize) -> Result<()> {
        check(row_start, source, source_nodes)?;
        std::mem::swap(&mut self.row_start, row_start);
        std::mem::swap(&mut self.source, source);
        self.on_device.clear();
        self.index(source_nodes);
        Ok(())
    }

    /// Everything that follows from the edges.
    fn index(&mut self, source_nodes: usize) {
        self.sort_by_source(source_nodes);
        self.find_degree_runs();
        let parts = RANGES_PER_THREAD * rayon::current_num_threads();
        self.target_ranges = balanced_ranges(&self.row_start, parts, self.hub_edges);
        self.source_ranges = balanced_ranges(&self.reverse_start, parts, self.hub_edges);
    }

    /// Counting sort of the edges by source: the starts, and (destination, edge number) by source. It counts one row
    /// late; filling then moves each start to its final place.
    fn sort_by_source(&mut self, source_nodes: usize) {
        let start = &mut self.reverse_start;
        start.clear();
        start.resize(source_nodes + 2, 0);
        for &node in &self.source {
            start[node as usize + 2] += 1;
        }
        for index in 1..start.len() {
            start[index] += start[index - 1];
        }
        self.reverse.resize(self.source.len(), (0, 0));
        for (target, row) in self.row_start.windows(2).enumerate() {
            for edge in row[0]..row[1] {
                let slot = &mut start[self.source[edge as usize] as usize + 1];
                self.reverse[*slot as usize] = (target as u32, edge);
                *slot += 1;
            }
        }
        start.pop();
    }

    fn find_degree_runs(&mut self) {
        self.degree_runs.clear();
        for (node, row) in self.row_start.windows(2).enumerate() {
            let degree = (row[1] - row[0]) as usize;
            match self.degree_runs.last_mut() {
                Some(run) if run.degree == degree => run.rows.end = node + 1,
                _ => self.degree_runs.push(DegreeRun { degree, rows: node..node + 1 }),
            }
        }
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
    pub fn target_starts(&self) -> &[u32] {
        &self.row_start
    }

    /// Where the edges out of each source start in [`reverse`](Self::reverse), `[source_nodes + 1]`.
    pub fn source_starts(&self) -> &[u32] {
        &self.reverse_start
    }

    /// (destination, edge number) of all edges, by source.
    pub fn reverse(&self) -> &[(u32, u32)] {
        &self.reverse
    }

    /// Edges from which a node is a hub, and edges of a hub that one thread takes at once.
    pub fn hub_edges(&self) -> usize {
        self.hub_edges
    }

    /// A device's copy of these edges.
    pub fn on_device(&self) -> &DeviceSlot {
        &self.on_device
    }

    /// All nodes in ranges of about equal numbers of incoming edges, hubs not counted.
    pub fn target_ranges(&self) -> &[Range<usize>] {
        &self.target_ranges
    }

    /// The edges into the nodes of each of the [`target_ranges`](Self::target_ranges).
    pub fn edges_of_ranges(&self) -> Vec<Range<usize>> {
        let start = |node: usize| self.row_start[node] as usize;
        self.target_ranges.iter().map(|range| start(range.start)..start(range.end)).collect()
    }

    /// All nodes in ranges of about equal numbers of outgoing edges, hubs not counted.
    pub fn source_ranges(&self) -> &[Range<usize>] {
        &self.source_ranges
    }

    /// Whether a node with this many edges is computed by all threads together.
    pub fn is_hub(&self, edges: usize) -> bool {
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
    // The largest of all is found much faster than the first that is too large.
    if let Some(&node) = source.iter().max()
        && node as usize >= source_nodes
    {
        bail!("an edge comes from node {node}, but there are only {source_nodes} nodes");
    }
    Ok(())
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
    fn rebuilding_is_building_in_the_same_memory() {
        let mut adjacency = Adjacency::bipartite(vec![0, 2, 3, 5], vec![4, 1, 4, 0, 0], 5).unwrap();
        let memory = (adjacency.source.as_ptr(), adjacency.reverse.as_ptr());
        let (mut row_start, mut source) = (vec![0, 1, 1], vec![2]);
        adjacency.rebuild(&mut row_start, &mut source, 3).unwrap();
        assert_eq!((&row_start[..], &source[..]), (&[0, 2, 3, 5][..], &[4, 1, 4, 0, 0][..]));
        assert_eq!((adjacency.nodes(), adjacency.source_nodes(), adjacency.edges()), (2, 3, 1));
        assert_eq!(adjacency.outgoing(2), [(0, 0)]);
        assert!(adjacency.rebuild(&mut row_start, &mut source, 4).is_err());
        assert_eq!((adjacency.nodes(), adjacency.edges()), (2, 1));
        adjacency.rebuild(&mut row_start, &mut source, 5).unwrap();
        assert_eq!(memory, (adjacency.source.as_ptr(), adjacency.reverse.as_ptr()));
        assert_eq!((Adjacency::default().nodes(), Adjacency::default().source_nodes()), (0, 0));
        let fresh = Adjacency::bipartite(vec![0, 2, 3, 5], vec![4, 1, 4, 0, 0], 5).unwrap();
        assert_eq!(format!("{adjacency:?}"), format!("{fresh:?}"));
    }

    #[test]
    fn a_block_has_other_sources_than_targets() {
        let block = Adjacency::bipartite(vec![0, 2, 3], vec![4, 1, 4], 5).unwrap();
        assert_eq!((block.nodes(), block.source_nodes(), block.edges()), (2, 5, 3));
        assert_eq!(block.outgoing(4), [(0, 0), (1, 2)]);
        assert!(block.outgoing(3).is_empty());
    }
}
