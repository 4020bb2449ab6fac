//! Messages along edges, computed where they are needed and never stored: the vocabulary of g-SpMM and g-SDDMM and
//! the three kernels under both.
//!
//! A message is `op(lhs, rhs)` of two rows, each of the edge's source, of its destination or of the edge itself.
//! [`sum_rows`] adds messages up for every node, over its incoming or its outgoing edges; [`extreme_rows`] takes the
//! maximum or minimum over the incoming ones; [`edge_rows`] stores one row per edge. With these three the gradient of
//! each is one of the others.

mod edges;
mod extreme;
mod extreme_gradient;
mod lanes;
mod messages;
mod reduce;
mod registers;
mod walk;
mod written;

pub use edges::edge_rows;
pub(super) use extreme::NOBODY;
pub use extreme::extreme_rows;
pub(super) use extreme_gradient::ExtremeGradient;
pub(super) use lanes::{AddRows, Gathered, PADDING, Target};
pub use messages::{Messages, Rows};
pub use reduce::sum_rows;
