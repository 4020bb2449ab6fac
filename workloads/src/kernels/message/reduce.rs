//! Sums of messages, one row per node.

use std::ops::Range;

use candle_core::WithDType;
use rayon::prelude::*;

use super::{Block, Columns, EdgeAt, EdgeOp, LANES, Messages, NARROW_LANES, WIDE_LANES, for_blocks, store_part};
use crate::kernels::ranges::{run_tasks, split_rows};
use crate::kernels::{Adjacency, Stored};

/// Which edges of a node are gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::kernels) enum Direction {
    /// Those that enter it; a row for each target.
    Incoming,
    /// Those that leave it; a row for each source.
    Outgoing,
}

/// The edges of one node.
pub(super) trait Edges: Copy + Send + Sync {
    fn len(&self) -> usize;

    fn at(&self, position: usize) -> EdgeAt;

    fn part(&self, range: Range<usize>) -> Self;
}

/// The edges of a node in one direction.
pub(super) trait EdgesOf<'a>: Edges {
    fn of(adjacency: &'a Adjacency, node: usize) -> Self;
}

#[derive(Clone, Copy)]
pub(super) struct Incoming<'a> {
    sources: &'a [u32],
    first_edge: usize,
    destination: usize,
}

impl<'a> EdgesOf<'a> for Incoming<'a> {
    #[inline(always)]
    fn of(adjacency: &'a Adjacency, destination: usize) -> Self {
        let edges = adjacency.incoming(destination);
        Self { first_edge: edges.start, sources: &adjacency.sources()[edges], destination }
    }
}

impl Edges for Incoming<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.sources.len()
    }

    #[inline(always)]
    fn at(&self, position: usize) -> EdgeAt {
        let edge = self.first_edge + position;
        EdgeAt { source: self.sources[position] as usize, destination: self.destination, edge }
    }

    #[inline(always)]
    fn part(&self, range: Range<usize>) -> Self {
        let first_edge = self.first_edge + range.start;
        Self { first_edge, sources: &self.sources[range], destination: self.destination }
    }
}

#[derive(Clone, Copy)]
struct Outgoing<'a> {
    targets: &'a [(u32, u32)],
    source: usize,
}

impl<'a> EdgesOf<'a> for Outgoing<'a> {
    #[inline(always)]
    fn of(adjacency: &'a Adjacency, source: usize) -> Self {
        Self { targets: adjacency.outgoing(source), source }
    }
}

impl Edges for Outgoing<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.targets.len()
    }

    #[inline(always)]
    fn at(&self, position: usize) -> EdgeAt {
        let (destination, edge) = self.targets[position];
        EdgeAt { source: self.source, destination: destination as usize, edge: edge as usize }
    }

    #[inline(always)]
    fn part(&self, range: Range<usize>) -> Self {
        Self { targets: &self.targets[range], source: self.source }
    }
}

/// Adds up the messages of every node: `out`, `[nodes, heads * width]`, of the targets or of the sources. Where `mean`,
/// each sum is divided by the number of messages. The order of summation is that of the edges, except that a hub's
/// edges are added up in parts of a fixed size and the parts then in their order: no result depends on the threads.
pub(in crate::kernels) fn sum_rows<T: Stored>(
    adjacency: &Adjacency,
    direction: Direction,
    messages: &Messages<'_, T>,
    mean: bool,
    out: &mut [T],
) {
    let total = messages.columns.total();
    if total == 0 {
        return;
    }
    let ranges = match direction {
        Direction::Incoming => adjacency.target_ranges(),
        Direction::Outgoing => adjacency.source_ranges(),
    };
    run_tasks(ranges.iter().zip(split_rows(out, ranges, total)), |(range, rows)| {
        pulp::Arch::new().dispatch(SumRange { adjacency, direction, messages, mean, range: range.clone(), rows });
    });
}

/// One range of nodes.
struct SumRange<'a, T: Stored> {
    adjacency: &'a Adjacency,
    direction: Direction,
    messages: &'a Messages<'a, T>,
    mean: bool,
    range: Range<usize>,
    rows: &'a mut [T],
}

impl<T: Stored> pulp::NullaryFnOnce for SumRange<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        match self.direction {
            Direction::Incoming => self.run::<Incoming<'_>>(),
            Direction::Outgoing => self.run::<Outgoing<'_>>(),
        }
    }
}

impl<'a, T: Stored> SumRange<'a, T> {
    #[inline(always)]
    fn run<E: EdgesOf<'a>>(self) {
        let total = self.messages.columns.total();
        let mut sum = vec![T::Wide::default(); total];
        for (node, out) in self.range.zip(self.rows.chunks_exact_mut(total)) {
            let edges = E::of(self.adjacency, node);
            if self.adjacency.is_hub(edges.len()) {
                sum_hub(self.messages, edges, self.adjacency.hub_edges(), &mut sum);
            } else {
                sum_edges(self.messages, edges, &mut sum);
            }
            let divisor = T::Wide::from_f64(if self.mean { edges.len().max(1) as f64 } else { 1.0 });
            for (out, &sum) in out.iter_mut().zip(&sum) {
                *out = T::narrow(sum / divisor);
            }
        }
    }
}

/// A node with very many edges: parts of them on all threads, then the sum of the parts.
fn sum_hub<T: Stored, E: Edges>(messages: &Messages<'_, T>, edges: E, part: usize, sum: &mut [T::Wide]) {
    let parts: Vec<Vec<T::Wide>> = (0..edges.len().div_ceil(part))
        .into_par_iter()
        .map(|index| {
            let mut sum = vec![T::Wide::default(); sum.len()];
            let edges = edges.part(index * part..edges.len().min((index + 1) * part));
            pulp::Arch::new().dispatch(SumPart { messages, edges, sum: &mut sum });
            sum
        })
        .collect();
    sum.fill(T::Wide::default());
    for part in &parts {
        sum.iter_mut().zip(part).for_each(|(sum, &part)| *sum += part);
    }
}

struct SumPart<'a, T: Stored, E> {
    messages: &'a Messages<'a, T>,
    edges: E,
    sum: &'a mut [T::Wide],
}

impl<T: Stored, E: Edges> pulp::NullaryFnOnce for SumPart<'_, T, E> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        sum_edges(self.messages, self.edges, self.sum);
    }
}

/// The common operators as constants, the others looked up edge by edge.
#[inline(always)]
fn sum_edges<T: Stored, E: Edges>(messages: &Messages<'_, T>, edges: E, sum: &mut [T::Wide]) {
    match (messages.op, messages.per_head) {
        (EdgeOp::CopyLhs, _) => sum_edges_of(messages, EdgeOp::CopyLhs, false, edges, sum),
        (EdgeOp::Mul, true) => sum_edges_of(messages, EdgeOp::Mul, true, edges, sum),
        (op, per_head) => sum_edges_of(messages, op, per_head, edges, sum),
    }
}

#[inline(always)]
fn sum_edges_of<T: Stored, E: Edges>(
    messages: &Messages<'_, T>,
    op: EdgeOp,
    per_head: bool,
    edges: E,
    out: &mut [T::Wide],
) {
    for_blocks!(messages.groups(), 0..out.len(), |block, N| {
        let sum = sum_block::<T, E, N>(messages, op, per_head, edges, block);
        store_part(out, block.column, block.count, sum);
    });
}

#[inline(always)]
fn sum_block<T: Stored, E: Edges, const N: usize>(
    messages: &Messages<'_, T>,
    op: EdgeOp,
    per_head: bool,
    edges: E,
    block: Block,
) -> [T::Wide; N] {
    let mut sum = [T::Wide::default(); N];
    for position in 0..edges.len() {
        let value = messages.load::<N>(op, per_head, edges.at(position), block);
        for lane in 0..N {
            sum[lane] += value[lane];
        }
    }
    sum
}
