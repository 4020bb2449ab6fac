//! Messages along edges, computed where they are needed and never stored: the vocabulary of g-SpMM and g-SDDMM and
//! the three kernels under both.
//!
//! A message is `op(lhs, rhs)` of two rows, each of the edge's source, of its destination or of the edge itself.
//! [`sum_rows`] adds messages up for every node, over its incoming or its outgoing edges; [`extreme_rows`] takes the
//! maximum or minimum over the incoming ones; [`edge_rows`] stores one row per edge. With these three the gradient of
//! each is one of the others.

mod edges;
mod extreme;
mod held;
mod lanes;
mod reduce;
mod registers;
mod walk;

pub use edges::edge_rows;
pub(super) use extreme::NOBODY;
pub use extreme::{Extreme, extreme_rows};
pub(super) use held::Held;
pub(super) use lanes::{AddRows, Gathered, PADDING, Target};
pub use reduce::sum_rows;
pub use walk::Direction;

use std::ops::Range;

use walk::{Batch, Walk};

use super::{Adjacency, Stored, Wide};

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
pub struct Columns {
    /// Number of groups.
    pub heads: usize,
    /// Columns of each.
    pub width: usize,
}

impl Columns {
    /// One group; for messages in which the heads play no part.
    #[must_use]
    pub fn flat(total: usize) -> Self {
        Self { heads: 1, width: total }
    }

    /// Columns of all groups.
    #[must_use]
    pub fn total(self) -> usize {
        self.heads * self.width
    }
}

/// One operand of all messages.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a, T> {
    /// Row-major.
    pub data: &'a [T],
    /// Whose rows they are.
    pub at: Endpoint,
}

/// The messages of all edges. An operand that `op` does not read may be empty.
#[derive(Clone, Copy)]
pub struct Messages<'a, T: Stored> {
    /// How the operands are combined.
    pub op: EdgeOp,
    /// Columns of a message.
    pub columns: Columns,
    /// `[rows, heads * width]`
    pub lhs: Rows<'a, T>,
    /// `[rows, heads * width]`, or `[rows, heads]` where `per_head`.
    pub rhs: Rows<'a, T>,
    /// Whether `rhs` has one value for all columns of a head.
    pub per_head: bool,
    /// A factor of all messages into a destination, `[targets]`.
    pub scale: Option<&'a [T::Wide]>,
}

impl<'a, T: Stored> Messages<'a, T> {
    /// Messages that are the rows of one operand, `[rows, total]`.
    #[must_use]
    pub fn copies(total: usize, data: &'a [T], at: Endpoint) -> Self {
        let (lhs, rhs) = (Rows { data, at }, Rows { data: &[], at });
        Self { op: EdgeOp::CopyLhs, columns: Columns::flat(total), lhs, rhs, per_head: false, scale: None }
    }

    /// Values of a message that are stored for each edge: for [`EdgeOp::Dot`] one for each head.
    pub(in crate::kernels) fn stored_width(&self) -> usize {
        if self.op == EdgeOp::Dot { self.columns.heads } else { self.columns.total() }
    }

    /// Whether a message is a row of `lhs` times one factor for each head, which the fast kernels compute.
    fn is_scaled_row(&self) -> bool {
        self.op == EdgeOp::CopyLhs || (self.op == EdgeOp::Mul && self.per_head)
    }

    /// Writes the message of one edge, whatever the operator: from the row `left` of `lhs` and the row `right` of `rhs`.
    fn write(&self, left: u32, right: u32, destination: u32, out: &mut [T::Wide]) {
        let Columns { heads, width } = self.columns;
        let left = &self.lhs.data[left as usize * heads * width..][..heads * width];
        let right = right as usize;
        if self.op == EdgeOp::CopyLhs {
            out.iter_mut().zip(left).for_each(|(out, left)| *out = left.widen());
        } else if self.per_head {
            for (head, &right) in self.rhs.data[right * heads..][..heads].iter().enumerate() {
                let columns = head * width..(head + 1) * width;
                combine(self.op, &left[columns.clone()], std::iter::repeat(right), &mut out[columns]);
            }
        } else {
            combine(self.op, left, self.rhs.data[right * left.len()..].iter().copied(), out);
        }
        if let Some(scale) = self.scale {
            out.iter_mut().for_each(|out| *out *= scale[destination as usize]);
        }
    }
}

fn combine<T: Stored>(op: EdgeOp, left: &[T], right: impl Iterator<Item = T>, out: &mut [T::Wide]) {
    let all = out.iter_mut().zip(left.iter().zip(right).map(|(left, right)| (left.widen(), right.widen())));
    match op {
        EdgeOp::CopyLhs => all.for_each(|(out, (left, _))| *out = left),
        EdgeOp::CopyRhs => all.for_each(|(out, (_, right))| *out = right),
        EdgeOp::Add => all.for_each(|(out, (left, right))| *out = left + right),
        EdgeOp::Sub => all.for_each(|(out, (left, right))| *out = left - right),
        EdgeOp::Mul | EdgeOp::Dot => all.for_each(|(out, (left, right))| *out = left * right),
        EdgeOp::Div => all.for_each(|(out, (left, right))| *out = left / right),
    }
}

/// Messages written down, a few at a time: the way for the operators that have no kernel of their own.
#[derive(Default)]
struct Written<W> {
    left: Vec<u32>,
    right: Vec<u32>,
    destination: Vec<u32>,
    /// `[PIECE, columns]`
    values: Vec<W>,
}

/// Messages that are written down at once.
const PIECE: usize = 32;
/// The numbers of a piece's rows.
const IN_ORDER: [u32; PIECE] = {
    let mut rows = [0; PIECE];
    let mut row = 0;
    while row < PIECE {
        rows[row] = row as u32;
        row += 1;
    }
    rows
};

impl<W: Wide> Written<W> {
    /// Finds the operands' rows for the edges of a batch.
    fn find<T: Stored<Wide = W>>(&mut self, messages: &Messages<'_, T>, walk: Walk<'_>, batch: &Batch) {
        self.values.resize(PIECE * messages.columns.total(), W::default());
        walk.rows(messages.lhs.at, batch, 0, &mut self.left);
        walk.rows(messages.rhs.at, batch, 0, &mut self.right);
        walk.rows(Endpoint::Destination, batch, 0, &mut self.destination);
    }

    /// Writes the messages of some edges of the batch, at most [`PIECE`], to `values`.
    fn write<T: Stored<Wide = W>>(&mut self, messages: &Messages<'_, T>, edges: Range<usize>) {
        let total = messages.columns.total();
        for (edge, out) in edges.zip(self.values.chunks_exact_mut(total)) {
            messages.write(self.left[edge], self.right[edge], self.destination[edge], out);
        }
    }
}

/// Cuts some edges into pieces of at most [`PIECE`].
fn pieces(edges: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    edges.clone().step_by(PIECE).map(move |first| first..edges.end.min(first + PIECE))
}
