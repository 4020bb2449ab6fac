//! Graph neural network trainings on candle, instrumented with the gnntop probe.
//!
//! Data flows one way: [`molecule`] makes [`graph::Graph`]s (read or generated) and loads them as
//! [`graph::Batch`]es; a model ([`pna`]), built from [`kernels`], is trained on them with [`train`]. [`command`] starts the trainings by name.

pub mod command;
pub mod graph;
pub mod kernels;
pub mod molecule;
pub mod pna;
pub mod train;

pub use gnntop_probe::{TrackingAllocator, Warning};
