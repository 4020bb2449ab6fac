//! Maximum and minimum of the messages into every node, and which edge holds it.

use std::ops::Range;

use rayon::prelude::*;

use super::reduce::{Edges, EdgesOf, Incoming};
use super::{Block, Columns, LANES, Messages, NARROW_LANES, WIDE_LANES, for_blocks, store_part};
use crate::kernels::ranges::{run_tasks, split_rows};
use crate::kernels::{Adjacency, Stored};

/// Holder of a node without incoming edges.
pub(in crate::kernels) const NOBODY: u32 = u32::MAX;

/// Which extremum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::kernels) enum Extreme {
    Max,
    Min,
}

impl Extreme {
    /// Whether `value` takes the place of `best`. NaN does and stays; of equal values the first stays.
    #[inline(always)]
    fn replaces<W: PartialOrd>(self, value: W, best: W) -> bool {
        #[expect(clippy::eq_op, reason = "true for NaN only, in all number types, and vectorised")]
        let is_nan = value != value;
        match self {
            Self::Max => value > best || is_nan,
            Self::Min => value < best || is_nan,
        }
    }
}

/// The extremum of the messages of every target: `out` and the edges that hold it, `holders`, both
/// `[targets, heads * width]`. Without messages 0 and [`NOBODY`].
pub(in crate::kernels) fn extreme_rows<T: Stored>(
    adjacency: &Adjacency,
    messages: &Messages<'_, T>,
    extreme: Extreme,
    out: &mut [T],
    holders: &mut [u32],
) {
    let total = messages.columns.total();
    if total == 0 {
        return;
    }
    let ranges = adjacency.target_ranges();
    let tasks = ranges.iter().zip(split_rows(out, ranges, total)).zip(split_rows(holders, ranges, total));
    run_tasks(tasks, |((range, rows), holders)| {
        let range = range.clone();
        pulp::Arch::new().dispatch(ExtremeRange { adjacency, messages, extreme, range, rows, holders });
    });
}

/// One range of targets.
struct ExtremeRange<'a, T: Stored> {
    adjacency: &'a Adjacency,
    messages: &'a Messages<'a, T>,
    extreme: Extreme,
    range: Range<usize>,
    rows: &'a mut [T],
    holders: &'a mut [u32],
}

impl<T: Stored> pulp::NullaryFnOnce for ExtremeRange<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let total = self.messages.columns.total();
        let mut best = vec![T::Wide::default(); total];
        let rows = self.rows.chunks_exact_mut(total).zip(self.holders.chunks_exact_mut(total));
        for (target, (out, holders)) in self.range.zip(rows) {
            let edges = Incoming::of(self.adjacency, target);
            if edges.len() == 0 {
                out.fill(T::default());
                holders.fill(NOBODY);
                continue;
            }
            if self.adjacency.is_hub(edges.len()) {
                extreme_hub(self.messages, self.extreme, edges, self.adjacency.hub_edges(), &mut best, holders);
            } else {
                extreme_edges(self.messages, self.extreme, edges, &mut best, holders);
            }
            for (out, &best) in out.iter_mut().zip(&best) {
                *out = T::narrow(best);
            }
        }
    }
}

/// A node with very many edges: parts of them on all threads, then the extremum of the parts in their order.
fn extreme_hub<T: Stored>(
    messages: &Messages<'_, T>,
    extreme: Extreme,
    edges: Incoming<'_>,
    part: usize,
    best: &mut [T::Wide],
    holders: &mut [u32],
) {
    let parts: Vec<(Vec<T::Wide>, Vec<u32>)> = (0..edges.len().div_ceil(part))
        .into_par_iter()
        .map(|index| {
            let (mut best, mut holders) = (vec![T::Wide::default(); best.len()], vec![NOBODY; best.len()]);
            let edges = edges.part(index * part..edges.len().min((index + 1) * part));
            let (best_of_part, holders_of_part) = (&mut best[..], &mut holders[..]);
            pulp::Arch::new().dispatch(ExtremePart { messages, extreme, edges, best_of_part, holders_of_part });
            (best, holders)
        })
        .collect();
    for (index, (part_best, part_holders)) in parts.iter().enumerate() {
        for column in 0..best.len() {
            if index == 0 || extreme.replaces(part_best[column], best[column]) {
                (best[column], holders[column]) = (part_best[column], part_holders[column]);
            }
        }
    }
}

struct ExtremePart<'a, T: Stored> {
    messages: &'a Messages<'a, T>,
    extreme: Extreme,
    edges: Incoming<'a>,
    best_of_part: &'a mut [T::Wide],
    holders_of_part: &'a mut [u32],
}

impl<T: Stored> pulp::NullaryFnOnce for ExtremePart<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        extreme_edges(self.messages, self.extreme, self.edges, self.best_of_part, self.holders_of_part);
    }
}

/// Both extrema as constants. There is at least one edge.
#[inline(always)]
fn extreme_edges<T: Stored>(
    messages: &Messages<'_, T>,
    extreme: Extreme,
    edges: Incoming<'_>,
    best: &mut [T::Wide],
    holders: &mut [u32],
) {
    match extreme {
        Extreme::Max => extreme_edges_of(messages, Extreme::Max, edges, best, holders),
        Extreme::Min => extreme_edges_of(messages, Extreme::Min, edges, best, holders),
    }
}

#[inline(always)]
fn extreme_edges_of<T: Stored>(
    messages: &Messages<'_, T>,
    extreme: Extreme,
    edges: Incoming<'_>,
    best: &mut [T::Wide],
    holders: &mut [u32],
) {
    for_blocks!(messages.groups(), 0..best.len(), |block, N| {
        let (value, holder) = extreme_block::<T, N>(messages, extreme, edges, block);
        store_part(best, block.column, block.count, value);
        store_part(holders, block.column, block.count, holder);
    });
}

#[inline(always)]
fn extreme_block<T: Stored, const N: usize>(
    messages: &Messages<'_, T>,
    extreme: Extreme,
    edges: Incoming<'_>,
    block: Block,
) -> ([T::Wide; N], [u32; N]) {
    let (op, per_head) = (messages.op, messages.per_head);
    let first = edges.at(0);
    let mut best = messages.load::<N>(op, per_head, first, block);
    let mut holder = [first.edge as u32; N];
    for position in 1..edges.len() {
        let edge = edges.at(position);
        let value = messages.load::<N>(op, per_head, edge, block);
        for lane in 0..N {
            let replaces = extreme.replaces(value[lane], best[lane]);
            best[lane] = if replaces { value[lane] } else { best[lane] };
            holder[lane] = if replaces { edge.edge as u32 } else { holder[lane] };
        }
    }
    (best, holder)
}
