//! Graph neural networks on candle: kernels over graphs with exact gradients, on the CPU and on NVIDIA GPUs, and the
//! models made of them.
//!
//! Graphs are those of [`gnntop_data`].
//!
//! ```text
//!  batch: features, graph      parameters (a VarBuilder, named as PyTorch Geometric's)
//!            │                        │
//!            ▼                        ▼
//!  models: layers ──▶ output ──▶ learn: loss ─▶ gradients ─▶ Adam ─┐
//!    │ plain: operation by operation       ▲                       │
//!    │ fused: a layer at once              └────── parameters ◀────┘
//!    ▼
//!  kernels: aggregate, spmm, sddmm, softmax, dropout, products: each forward and back
//!    ├─ CPU: slices, in vector lanes, rows divided among threads
//!    └─ GPU: cuda ─▶ driver, or absent.rs where it is not compiled in
//! ```
//!
//! Each room uses those above it, never one below:
//!
//! ```text
//! device         errors of GPUs
//! cuda           operations on NVIDIA GPUs, or what stands in for them
//! kernels        the operations of the models, on either device
//! models         pna, gcn, gin, sage, gat, vig: layers and networks
//! learn          losses, Adam, loss scaling and accuracy, and a model with all of it
//! subnormals     whether the computing threads keep numbers that are all but zero
//! ```

// The tests of the GPU's kernels take their graphs from `tests/`, which knows this crate by its name.
#[cfg(test)]
extern crate self as gnntop_nn;

pub mod cuda;
pub mod device;
pub mod kernels;
pub mod learn;
pub mod models;
pub mod subnormals;
