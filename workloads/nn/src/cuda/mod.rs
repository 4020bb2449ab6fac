//! The custom operations on NVIDIA GPUs.
//!
//! Each operation of `kernels`, of the models and of `learn` calls its counterpart here where its tensors are on a CUDA
//! device; the CUDA code itself is in `workloads/nn/kernels`. What a kernel computes does not depend on timing: there are no
//! atomic additions, sums have a fixed order, and nodes with very many edges are computed in parts that are joined in their
//! order. Number types are those of the CPU's kernels, with sums in f32 (f64 for f64).
//!
//! **A device that is not built in is a value.** All of this is compiled in every build: candle has its CUDA types in
//! all of them, and no tensor is on a GPU if none can be opened. Code that does not compile without CUDA is in
//! `driver`, for which `absent` stands in, with the same names, functions that report that there is no GPU, and
//! types without values. So callers of an operation need not ask how the program was built, and a build without CUDA
//! pays only for the test of a tensor's device, which it needs anyway to refuse what it cannot compute. The
//! alternative, a second body under a `cfg` at every operation, was here before: half of the lines were never compiled
//! by half of the builds.
//!
//! The same code runs in tests without CUDA, where the kernels run on the host (`emulation`): sizes, lists, grids and
//! arguments are those of a GPU.
//!
//! Imports go one way: operations use `edges` and `machine`, `machine` uses the `driver` and the parts of a
//! launch (`kernel`).

#[cfg(not(feature = "cuda"))]
mod absent;
mod adam;
mod aggregate;
mod ahead;
mod attention;
mod attention_back;
mod chain;
#[cfg(feature = "cuda")]
mod driver;
mod edges;
mod elements;
#[cfg(any(test, feature = "emulation"))]
pub mod emulation;
#[cfg(all(feature = "cuda", any(test, feature = "emulation")))]
pub mod fake;
mod gather;
mod gradients;
mod images;
mod kernel;
mod loss;
mod machine;
mod mean;
mod messages;
mod norm;
mod progress;
pub mod rates;
mod ring;
mod saved;
mod scaled;
mod segments;
mod softmax;
mod sparse;
mod stream;
#[cfg(test)]
pub(crate) mod tests;
mod work;

#[cfg(not(feature = "cuda"))]
use absent as driver;

pub(crate) use adam::{Rates, Repeated, RepeatedSlot, Slot, are_finite, update};
pub(crate) use aggregate::fused_aggregates;
pub use ahead::CopiesAhead;
pub(crate) use attention::{Attended, Attending, attend};
pub(crate) use chain::{Chain, ChainLayer, Gradients};
pub use driver::{Captured, allow_tf32, capture, count, open, rehearse};
#[cfg(feature = "cuda")]
pub use driver::{bind, keep_freed_memory, let_others_use, memory_pool, one_line, set_pool_attribute};
pub(crate) use edges::Edges;
pub use edges::{copy_edges, stage_edges};
pub(crate) use elements::{Finished, column_sums, dropout, gelu};
pub use gather::gather_rows;
pub(crate) use gradients::Backward;
pub(crate) use images::{Joined, nearest, neighbour_sum};
pub(crate) use loss::LabelsOnDevice;
pub(crate) use machine::{Memory, View, device_of};
pub(crate) use mean::{add_first, behind_relu, gradient_of_mean_rows, mean_beside, mean_finish};
pub(crate) use messages::{Messages, Operand, edge_rows, extreme_rows, sum_rows};
pub(crate) use norm::BatchMoments;
pub(crate) use progress::{Advance, Progress};
pub(crate) use saved::SavedTensor;
pub(crate) use scaled::add_scaled;
pub(crate) use segments::{SegmentsOnDevice, gradient_of_segment_max, segment_max};
pub(crate) use softmax::{Logits, gradient_of_logits, softmax_rows};
pub(crate) use sparse::{Entries, SparseOnDevice, SparseProduct};
pub use stream::{OnStream, let_use};
