//! Messages along edges, computed where they are needed and never stored: the vocabulary of g-SpMM and g-SDDMM and
//! the three kernels under both.
//!
//! A message is `op(lhs, rhs)` of two rows, each of the edge's source, of its destination or of the edge itself.
//! [`sum_rows`] adds messages up for every node, over its incoming or its outgoing edges; [`extreme_rows`] takes the
//! maximum or minimum over the incoming ones; [`edge_rows`] stores one row per edge. With these three the gradient of
//! each is one of the others.

#![expect(
    clippy::needless_range_loop,
    clippy::manual_memcpy,
    reason = "fixed-size lanes: the form that stays in registers, see `aggregate`"
)]

mod edges;
mod extreme;
mod held;
mod reduce;

pub(super) use edges::edge_rows;
pub(super) use extreme::{Extreme, NOBODY, extreme_rows};
pub(super) use held::Held;
pub(super) use reduce::{Direction, sum_rows};

use super::{Adjacency, Stored};

/// What a message is made of; `lhs` and `rhs` in the sense of DGL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeOp {
    /// `lhs`
    CopyLhs,
    /// `rhs`
    CopyRhs,
    /// `lhs + rhs`
    Add,
    /// `lhs - rhs`
    Sub,
    /// `lhs * rhs`
    Mul,
    /// `lhs / rhs`
    Div,
    /// Sum over the last dimension of `lhs * rhs`; only in [`sddmm`](super::sddmm).
    Dot,
}

/// What becomes of the messages into a node. A node without any gets 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduce {
    /// Their sum.
    Sum,
    /// Their sum divided by their number.
    Mean,
    /// Their maximum, column by column; the first edge that holds it gets the gradient. NaN if any is NaN.
    Max,
    /// Their minimum, as [`Max`](Self::Max).
    Min,
}

/// Whose row an operand is, seen from an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// The node that the edge leaves.
    Source,
    /// The node that the edge enters.
    Destination,
    /// The edge itself.
    Edge,
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Source => "source node",
            Self::Destination => "destination node",
            Self::Edge => "edge",
        })
    }
}

impl Endpoint {
    /// Number of rows of an operand there.
    pub(super) fn rows(self, adjacency: &Adjacency) -> usize {
        match self {
            Self::Source => adjacency.source_nodes(),
            Self::Destination => adjacency.nodes(),
            Self::Edge => adjacency.edges(),
        }
    }
}

/// Columns of a message: `heads` groups of `width`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Columns {
    pub heads: usize,
    pub width: usize,
}

impl Columns {
    /// One group; for messages in which the heads play no part.
    pub fn flat(total: usize) -> Self {
        Self { heads: 1, width: total }
    }

    pub fn total(self) -> usize {
        self.heads * self.width
    }
}

/// One operand of all messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'a, T> {
    pub data: &'a [T],
    pub at: Endpoint,
}

/// An edge with its two ends.
#[derive(Debug, Clone, Copy)]
struct EdgeAt {
    source: usize,
    destination: usize,
    edge: usize,
}

impl EdgeAt {
    #[inline(always)]
    fn row(self, at: Endpoint) -> usize {
        match at {
            Endpoint::Source => self.source,
            Endpoint::Destination => self.destination,
            Endpoint::Edge => self.edge,
        }
    }
}

/// The messages of all edges. An operand that `op` does not read may be empty.
#[derive(Clone, Copy)]
pub(super) struct Messages<'a, T: Stored> {
    pub op: EdgeOp,
    pub columns: Columns,
    /// `[rows, heads * width]`
    pub lhs: Rows<'a, T>,
    /// `[rows, heads * width]`, or `[rows, heads]` where `per_head`.
    pub rhs: Rows<'a, T>,
    /// Whether `rhs` has one value for all columns of a head.
    pub per_head: bool,
    /// A factor of all messages into a destination.
    pub scale: Option<&'a [T::Wide]>,
}

impl<'a, T: Stored> Messages<'a, T> {
    /// Messages that are the rows of one operand.
    pub fn copies(total: usize, data: &'a [T], at: Endpoint) -> Self {
        let (lhs, rhs) = (Rows { data, at }, Rows { data: &[], at });
        Self { op: EdgeOp::CopyLhs, columns: Columns::flat(total), lhs, rhs, per_head: false, scale: None }
    }

    /// Groups of columns in which a block of lanes has the same right-hand value: the heads, or everything at once.
    #[inline(always)]
    fn groups(&self) -> Columns {
        if self.per_head { self.columns } else { Columns::flat(self.columns.total()) }
    }

    /// `N` columns of the message of `edge`, from `column` of group `head` on, of which at least `count` exist. `op`
    /// and `per_head` are parameters so that a caller's constants reach the loop over the edges.
    #[inline(always)]
    fn load<const N: usize>(&self, op: EdgeOp, per_head: bool, edge: EdgeAt, block: Block) -> [T::Wide; N] {
        let total = self.columns.total();
        let mut value = match op {
            EdgeOp::CopyRhs => [T::Wide::default(); N],
            _ => load_wide::<T, N>(self.lhs.data, edge.row(self.lhs.at) * total + block.column, block.count),
        };
        if !matches!(op, EdgeOp::CopyLhs) {
            let row = edge.row(self.rhs.at);
            let right = if per_head {
                [self.rhs.data[row * self.columns.heads + block.head].widen(); N]
            } else {
                load_wide::<T, N>(self.rhs.data, row * total + block.column, block.count)
            };
            for lane in 0..N {
                value[lane] = combine(op, value[lane], right[lane]);
            }
        }
        if let Some(scale) = self.scale {
            let scale = scale[edge.destination];
            for lane in 0..N {
                value[lane] *= scale;
            }
        }
        value
    }
}

#[inline(always)]
fn combine<
    W: std::ops::Add<Output = W> + std::ops::Sub<Output = W> + std::ops::Mul<Output = W> + std::ops::Div<Output = W>,
>(
    op: EdgeOp,
    left: W,
    right: W,
) -> W {
    match op {
        EdgeOp::CopyLhs => left,
        EdgeOp::CopyRhs => right,
        EdgeOp::Add => left + right,
        EdgeOp::Sub => left - right,
        EdgeOp::Mul | EdgeOp::Dot => left * right,
        EdgeOp::Div => left / right,
    }
}

/// Some columns of a message.
#[derive(Debug, Clone, Copy)]
struct Block {
    head: usize,
    /// First column, counted over all heads.
    column: usize,
    /// Columns wanted, at most the lanes of the block.
    count: usize,
}

/// Columns of the widest block, which the accumulators of a row of edges keep in registers.
const WIDE_LANES: usize = 64;
/// Columns of a common block: a cache line of f32.
const LANES: usize = 16;
/// Columns of a narrow block.
const NARROW_LANES: usize = 8;

/// Calls `$run::<N>(block)` for blocks that cover `$columns`, the last of each group wider than what is left of it.
macro_rules! for_blocks {
    ($groups:expr, $range:expr, |$block:ident, $lanes:ident| $run:expr) => {
        let (groups, range): (Columns, Range<usize>) = ($groups, $range);
        let mut column = range.start;
        while column < range.end {
            let head = column / groups.width;
            let left = ((head + 1) * groups.width).min(range.end) - column;
            let taken = if left >= WIDE_LANES {
                const $lanes: usize = WIDE_LANES;
                let $block = Block { head, column, count: WIDE_LANES };
                $run;
                WIDE_LANES
            } else if left > NARROW_LANES {
                const $lanes: usize = LANES;
                let $block = Block { head, column, count: left.min(LANES) };
                $run;
                left.min(LANES)
            } else if left > 1 {
                const $lanes: usize = NARROW_LANES;
                let $block = Block { head, column, count: left };
                $run;
                left
            } else {
                const $lanes: usize = 1;
                let $block = Block { head, column, count: 1 };
                $run;
                1
            };
            column += taken;
        }
    };
}
use for_blocks;

/// `N` values from `start` on, of which `count` are wanted. The others are whatever follows in memory, or 0 at the end
/// of the slice: reading a whole vector and using a part of it is faster than reading the part.
#[inline(always)]
fn load_wide<T: Stored, const N: usize>(from: &[T], start: usize, count: usize) -> [T::Wide; N] {
    let mut values = [T::Wide::default(); N];
    if let Some(from) = from.get(start..start + N) {
        for lane in 0..N {
            values[lane] = from[lane].widen();
        }
    } else {
        let from = &from[start..start + count];
        for lane in 0..count {
            values[lane] = from[lane].widen();
        }
    }
    values
}

/// The first `count` of the lanes.
#[inline(always)]
fn store_part<T: Copy, const N: usize>(to: &mut [T], start: usize, count: usize, values: [T; N]) {
    if count == N {
        let to = &mut to[start..start + N];
        for lane in 0..N {
            to[lane] = values[lane];
        }
    } else {
        let to = &mut to[start..start + count];
        for lane in 0..count {
            to[lane] = values[lane];
        }
    }
}
