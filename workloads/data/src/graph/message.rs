//! The terms for messages along edges: what a message is made of, whose rows its operands are, and how the messages
//! into a node are reduced. The kernels of the processor and of a GPU share them.

use super::Adjacency;

/// Aggregators of a PNA layer: mean, minimum, maximum and standard deviation, in this order.
pub const AGGREGATORS: usize = 4;

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
    /// Sum over the last dimension of `lhs * rhs`; only in sddmm.
    Dot,
}

/// How the messages into a node are reduced. A node without any gets 0.
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
    pub fn rows(self, adjacency: &Adjacency) -> usize {
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

/// Which edges of a node are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Those that enter it; a row for each target.
    Incoming,
    /// Those that leave it; a row for each source.
    Outgoing,
}

/// Which extremum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extreme {
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

impl Extreme {
    /// Whether `value` replaces `best`. NaN does and stays; of equal values the first stays.
    #[inline(always)]
    pub fn replaces<W: PartialOrd + Copy>(self, value: W, best: W) -> bool {
        #[expect(clippy::eq_op, reason = "true for NaN only, in all number types, and vectorised")]
        let is_nan = value != value;
        is_nan
            | match self {
                Self::Max => value > best,
                Self::Min => value < best,
            }
    }
}
