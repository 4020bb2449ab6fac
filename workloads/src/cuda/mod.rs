//! The custom operations on NVIDIA GPUs.
//!
//! Each operation of [`kernels`](crate::kernels) and [`train`](crate::train) calls its counterpart here where its tensors
//! are on a CUDA device; the CUDA code itself is in `workloads/kernels`. What a kernel computes does not depend on
//! timing: there are no atomic additions, sums have a fixed order, and nodes with very many edges are computed in parts
//! that are joined in their order. Number types are those of the CPU's kernels, with sums in f32 (f64 for f64).
//!
//! Everything but memory and launches ([`machine`]) is compiled for tests without CUDA too, where the kernels run on the
//! host ([`emulation`]): sizes, lists, grids and arguments are the same.

#![cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "without CUDA only tests call the kernels"))]

mod adam;
mod aggregate;
mod attention;
mod attention_back;
mod capture;
mod chain;
#[cfg(feature = "cuda")]
mod copies;
mod edges;
mod elements;
#[cfg(test)]
pub(crate) mod emulation;
#[cfg(test)]
#[cfg(feature = "cuda")]
pub(crate) mod fake;
mod gather;
mod gradients;
mod images;
mod loss;
mod machine;
mod mean;
#[cfg(feature = "cuda")]
mod memory;
mod messages;
mod norm;
#[cfg(feature = "cuda")]
mod observe;
#[cfg(feature = "cuda")]
mod open;
mod progress;
#[cfg(any(feature = "cuda", test))]
pub mod rates;
mod scaled;
mod segments;
mod softmax;
mod sparse;
#[cfg(any(feature = "nccl", test))]
mod stream;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(feature = "cuda")]
mod timing;
mod work;

pub(crate) use adam::{Rates, Repeated, RepeatedSlot, Slot, are_finite, update};
pub(crate) use aggregate::fused_aggregates;
pub(crate) use attention::{Attended, Attending, attend};
pub(crate) use capture::{Captured, capture, rehearse};
pub(crate) use chain::{Chain, ChainLayer, Gradients};
#[cfg(feature = "cuda")]
pub(crate) use copies::CudaCopies;
pub(crate) use edges::{Ahead, Edges, Kept, OnDevice, Staged};
pub(crate) use elements::{Finished, column_sums, dropout, gelu};
pub(crate) use gather::gather_rows;
pub(crate) use gradients::{Backward, of_copies};
pub(crate) use images::{Joined, nearest, neighbour_sum};
pub(crate) use loss::LabelsOnDevice;
#[cfg(feature = "cuda")]
pub(crate) use machine::device_of;
pub(crate) use machine::{Memory, View};
pub(crate) use mean::{add_first, behind_relu, gradient_of_mean_rows, mean_beside, mean_finish};
pub(crate) use messages::{Messages, Operand, collect, edge_rows, extreme_rows, sum_rows};
pub(crate) use norm::BatchMoments;
#[cfg(feature = "cuda")]
pub(crate) use observe::observe;
#[cfg(feature = "cuda")]
use open::one_line;
#[cfg(feature = "cuda")]
pub(crate) use open::{count, open};
pub(crate) use progress::{Advance, Progress};
pub(crate) use scaled::add_scaled;
pub(crate) use segments::{SegmentsOnDevice, gradient_of_segment_max, segment_max};
pub(crate) use softmax::{Logits, gradient_of_logits, softmax_rows};
pub(crate) use sparse::{Entries, SparseOnDevice, SparseProduct};
#[cfg(any(feature = "nccl", test))]
pub(crate) use stream::{OnStream, let_use};
