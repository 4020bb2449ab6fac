//! One row per edge: the messages themselves, or the dot products of their operands.

use std::ops::Range;

use super::{Block, Columns, EdgeAt, EdgeOp, LANES, Messages, NARROW_LANES, WIDE_LANES, for_blocks, store_part};
use crate::kernels::ranges::{run_tasks, split_rows};
use crate::kernels::{Adjacency, Stored};

/// Values to write below which one thread does it alone.
const MIN_PARALLEL: usize = 1 << 13;

/// Stores the message of every edge, `[edges, heads * width]`; for [`EdgeOp::Dot`] its sum over each head,
/// `[edges, heads]`. In parallel over equal ranges of edges, whatever node they belong to.
pub(in crate::kernels) fn edge_rows<T: Stored>(adjacency: &Adjacency, messages: &Messages<'_, T>, out: &mut [T]) {
    let total = message_width(messages);
    if total == 0 {
        return;
    }
    let ranges = edge_ranges(adjacency.edges(), messages.columns.total());
    run_tasks(ranges.iter().zip(split_rows(out, &ranges, total)), |(range, rows)| {
        pulp::Arch::new().dispatch(EdgeRange { adjacency, messages, range: range.clone(), rows });
    });
}

/// Values that are stored for each edge.
fn message_width<T: Stored>(messages: &Messages<'_, T>) -> usize {
    if messages.op == EdgeOp::Dot { messages.columns.heads } else { messages.columns.total() }
}

fn edge_ranges(edges: usize, width: usize) -> Vec<Range<usize>> {
    let parts = if edges * width < MIN_PARALLEL { 1 } else { 4 * rayon::current_num_threads() };
    (0..parts).map(|part| edges * part / parts..edges * (part + 1) / parts).collect()
}

struct EdgeRange<'a, T: Stored> {
    adjacency: &'a Adjacency,
    messages: &'a Messages<'a, T>,
    range: Range<usize>,
    rows: &'a mut [T],
}

impl<T: Stored> pulp::NullaryFnOnce for EdgeRange<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        match self.messages.op {
            EdgeOp::Dot => self.run::<true>(),
            _ => self.run::<false>(),
        }
    }
}

impl<T: Stored> EdgeRange<'_, T> {
    /// Goes along the edges with the destination that each belongs to.
    #[inline(always)]
    fn run<const DOT: bool>(self) {
        let total = message_width(self.messages);
        let starts = self.adjacency.target_starts();
        let mut destination = starts.partition_point(|&start| start as usize <= self.range.start).saturating_sub(1);
        for (edge, out) in self.range.zip(self.rows.chunks_exact_mut(total)) {
            while starts[destination + 1] as usize <= edge {
                destination += 1;
            }
            let source = self.adjacency.sources()[edge] as usize;
            let edge = EdgeAt { source, destination, edge };
            if DOT { store_dots(self.messages, edge, out) } else { store_message(self.messages, edge, out) }
        }
    }
}

#[inline(always)]
fn store_message<T: Stored>(messages: &Messages<'_, T>, edge: EdgeAt, out: &mut [T]) {
    for_blocks!(messages.groups(), 0..out.len(), |block, N| {
        let value = messages.load::<N>(messages.op, messages.per_head, edge, block);
        store_part(out, block.column, block.count, narrowed::<T, N>(value));
    });
}

#[inline(always)]
fn narrowed<T: Stored, const N: usize>(wide: [T::Wide; N]) -> [T; N] {
    let mut values = [T::default(); N];
    for lane in 0..N {
        values[lane] = T::narrow(wide[lane]);
    }
    values
}

/// The products in lanes, the lanes then pairwise: a fixed order.
#[inline(always)]
fn store_dots<T: Stored>(messages: &Messages<'_, T>, edge: EdgeAt, out: &mut [T]) {
    let width = messages.columns.width;
    for head in 0..out.len() {
        let mut sum = [T::Wide::default(); LANES];
        for first in (0..width).step_by(LANES) {
            let count = (width - first).min(LANES);
            let block = Block { head, column: head * width + first, count };
            let product = messages.load::<LANES>(EdgeOp::Mul, false, edge, block);
            for lane in 0..LANES {
                sum[lane] += if lane < count { product[lane] } else { T::Wide::default() };
            }
        }
        let mut lanes = LANES;
        while lanes > 1 {
            lanes /= 2;
            for lane in 0..lanes {
                let upper = sum[lane + lanes];
                sum[lane] += upper;
            }
        }
        out[head] = T::narrow(sum[0]);
    }
}
