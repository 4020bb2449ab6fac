//! Graph neural network trainings on candle, instrumented with the gnntop probe.
//!
//! Graphs, data sets and loaders are in [`gnntop_data`]. Each room uses those above it, never one below:
//!
//! ```text
//! device         errors of GPUs
//! cuda           operations on NVIDIA GPUs, or what stands in for them
//! kernels        the operations of the models, on either device
//! models         pna, gcn, gin, sage, gat, vig: layers and networks
//! parallel       what ranks do together: collectives, gradients, the stages of a pipeline
//! train          the loop, its observer and errors; loss, Adam, metrics
//! inject         causes of slowness on demand, around the steps
//! launch         options that every training has, and its ranks
//! trainers       what trains each model: its batches and the phases of its step
//! command        the command lines, by the names that `gnntop train NAME` takes
//! ```

// The tests of the GPU's kernels take their graphs from `tests/`, which knows this crate by its name.
#[cfg(test)]
extern crate self as gnntop_workloads;

pub mod command;
mod cuda;
pub mod device;
pub mod inject;
pub mod kernels;
pub mod launch;
pub mod models;
pub mod parallel;
pub mod train;
pub mod trainers;

pub use cuda::rates as device_rates;
pub use gnntop_data as data;

pub use gnntop_probe::{BatchShape, TrackingAllocator, Warning};
pub use launch::EndsWhenRefused;
