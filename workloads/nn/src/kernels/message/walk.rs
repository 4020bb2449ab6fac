//! The edges of all nodes, one after the other and in either direction, by their positions.

use std::ops::Range;

use super::messages::Rows;
use gnntop_data::graph::{Adjacency, Direction, Endpoint};

/// Edges that are prepared at once for the inner loops; more only where a single node has more.
pub(super) const BATCH: usize = 256;

/// All edges, by the node at one of their ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk<'a> {
    pub adjacency: &'a Adjacency,
    pub direction: Direction,
}

/// Nodes after each other, with all or some of their edges.
#[derive(Debug, Clone, Default)]
pub(super) struct Batch {
    pub nodes: Range<usize>,
    /// Positions of the edges of all of them.
    pub positions: Range<usize>,
    /// Where the edges of each node end, counted from the first position.
    pub ends: Vec<usize>,
}

impl Batch {
    /// Whether this is one node whose edges all threads share.
    pub fn is_hub(&self, adjacency: &Adjacency) -> bool {
        self.nodes.len() == 1 && adjacency.is_hub(self.positions.len())
    }

    /// Some of a node's edges.
    pub fn part(node: usize, positions: Range<usize>) -> Self {
        Self { nodes: node..node + 1, ends: vec![positions.len()], positions }
    }
}

impl<'a> Walk<'a> {
    /// Nodes in ranges of about equal work.
    pub fn ranges(self) -> &'a [Range<usize>] {
        match self.direction {
            Direction::Incoming => self.adjacency.target_ranges(),
            Direction::Outgoing => self.adjacency.source_ranges(),
        }
    }

    fn starts(self) -> &'a [u32] {
        match self.direction {
            Direction::Incoming => self.adjacency.target_starts(),
            Direction::Outgoing => self.adjacency.source_starts(),
        }
    }

    /// Makes `batch` the next few nodes from `first` on and before `end`. A hub makes a batch of its own.
    pub fn next(self, first: usize, end: usize, batch: &mut Batch) {
        let starts = &self.starts()[first..=end];
        let start = starts[0] as usize;
        batch.ends.clear();
        for row in starts.windows(2) {
            let (edges, through) = ((row[1] - row[0]) as usize, row[1] as usize - start);
            let alone = batch.ends.is_empty();
            if !alone && (through > BATCH || self.adjacency.is_hub(edges)) {
                break;
            }
            batch.ends.push(through);
            if through > BATCH || self.adjacency.is_hub(edges) {
                break;
            }
        }
        batch.nodes = first..first + batch.ends.len();
        batch.positions = start..start + batch.ends.last().copied().unwrap_or(0);
    }

    /// Makes `batch` of the edges at some positions, the first and last node with some of theirs.
    pub fn cut(self, positions: Range<usize>, batch: &mut Batch) {
        let starts = self.starts();
        let first = starts.partition_point(|&start| start as usize <= positions.start).saturating_sub(1);
        batch.ends.clear();
        for &end in &starts[first + 1..] {
            batch.ends.push(positions.end.min(end as usize) - positions.start);
            if end as usize >= positions.end {
                break;
            }
        }
        batch.nodes = first..first + batch.ends.len();
        batch.positions = positions;
    }

    /// Writes where in its data the rows of an operand are, see [`rows`](Self::rows).
    pub fn rows_of<T>(self, operand: Rows<'_, T>, batch: &Batch, ahead: usize, rows: &mut Vec<u32>) {
        self.rows(operand.at, batch, ahead, rows);
        if let Some(numbers) = operand.numbers {
            rows.iter_mut().for_each(|row| *row = numbers[*row as usize]);
        }
    }

    /// Writes whose rows of an operand the edges of a batch take, and for those up to `ahead` positions further where they
    /// are at hand, to fetch them early.
    pub fn rows(self, at: Endpoint, batch: &Batch, ahead: usize, rows: &mut Vec<u32>) {
        let Range { start, end } = batch.positions;
        let further = start..self.adjacency.edges().min(end + ahead);
        let reverse = self.adjacency.reverse();
        rows.clear();
        match (self.direction, at) {
            (Direction::Incoming, Endpoint::Source) => rows.extend_from_slice(&self.adjacency.sources()[further]),
            (Direction::Incoming, Endpoint::Edge) => rows.extend(start as u32..end as u32),
            (Direction::Outgoing, Endpoint::Destination) => rows.extend(reverse[further].iter().map(|pair| pair.0)),
            (Direction::Outgoing, Endpoint::Edge) => rows.extend(reverse[start..end].iter().map(|pair| pair.1)),
            (Direction::Incoming, Endpoint::Destination) | (Direction::Outgoing, Endpoint::Source) => {
                for (node, &end) in batch.nodes.clone().zip(&batch.ends) {
                    rows.resize(end, node as u32);
                }
            }
        }
    }
}
