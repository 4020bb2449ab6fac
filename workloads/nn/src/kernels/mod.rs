//! Numeric kernels over graphs in CSR form, and the small dense pieces they need.
//!
//! The kernels work on plain slices and are generic over `f32` and `f64`, so that finite differences can check
//! them in double precision. The models wrap them in candle custom operations with exact gradients. The fused
//! [`aggregate`] and [`spmm`] make no edge-wise temporary: they read one row per node and gather along the edges.
//! [`gather`] and [`scatter`] do, as the other [`KernelFamily`].
//!
//! Ties: where several edges or nodes hold the same extremum, the first one, lowest edge or node position, gets
//! the whole gradient.
//!
//! Code for tensors on a GPU is in the same file as the operation: it calls `cuda`, which this module builds on.

mod aggregate;
mod dropout;
mod element;
mod family;
mod gradient;
mod lanes;
mod matrix;
mod mean;
mod message;
mod operation;
mod prefetch;
mod sddmm;
mod segment_max;
mod selected;
mod softmax;
mod sparse;
mod spmm;
mod stored;
mod tensors;
mod weight_gradient;
mod workspace;

pub use aggregate::{Aggregates, Saved, SectionLayout, aggregate, gradient_of_messages, gradient_of_targets};
pub use dropout::dropout;
pub(crate) use element::cpu_slice;
pub use element::{Element, host_slice};
pub use family::{KernelFamily, gather, scatter};
pub(crate) use lanes::{Lanes, lanes};
pub use matrix::{MatmulPrecision, Matrix, MatrixMut, Right, add_column_sums, multiply, multiply_by, multiply_rows};
pub use mean::{gradient_of_mean, mean_of_sources};
pub use message::{Messages, Rows, edge_rows, extreme_rows, sum_rows};
pub(crate) use prefetch::prefetch_row;
pub use sddmm::{Operand, sddmm};
pub use segment_max::{Segments, segment_max};
pub(crate) use selected::ROWS_AHEAD;
pub use selected::{Selected, Values};
pub use softmax::edge_softmax;
#[cfg(test)]
pub(crate) use sparse::product_on_device;
pub use sparse::{sparse_linear, sparse_linear_dropout};
pub(crate) use sparse::{times, times_into, transposed};
pub use spmm::spmm;
pub use stored::{Stored, Wide};
pub(crate) use weight_gradient::{CompressedRows, gradient_of_weight};
pub use workspace::{Buffer, Workspace, Workspaces};
