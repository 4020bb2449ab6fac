//! Graph neural network trainings on candle, instrumented with the gnntop probe.
//!
//! Graphs, data sets and loaders are in [`gnntop_data`], kernels and models in [`gnntop_nn`].
//!
//! ```text
//!  command ─▶ launch: device, session, ranks ─▶ trainers ─▶ train: the loop ─▶ Observer ─▶ spans of the probe
//!                                                  │            ▲
//!     gnntop_data: batches ────────────────────────┤            └── inject: slow on demand
//!     gnntop_nn: model, loss, optimizer ───────────┤
//!     parallel: gradients and activations of ranks ┘
//! ```
//!
//! Each room uses those above it, never one below:
//!
//! ```text
//! gpu            a GPU's time by phase, and its memory
//! parallel       what ranks do together: collectives, gradients, the stages of a pipeline
//! train          the loop, its observer and errors
//! inject         causes of slowness on demand, around the steps
//! launch         options that every training has, and its ranks
//! trainers       what trains each model: its batches and the phases of its step
//! command        the command lines, by the names that `gnntop train NAME` takes
//! ```

pub mod command;
mod gpu;
pub mod inject;
pub mod launch;
pub mod parallel;
pub mod train;
pub mod trainers;

pub use gnntop_data as data;
pub use gnntop_nn as nn;
pub use gnntop_probe::{BatchShape, TrackingAllocator, Warning};
pub use launch::EndsWhenRefused;
