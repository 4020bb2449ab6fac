//! Graph neural network trainings on candle, instrumented with the gnntop probe.
//!
//! Data flows one way: [`molecule`] makes many small [`graph::Graph`]s, [`nodes`] one large graph, whose neighbourhoods
//! [`sampling`] draws; [`loading`] makes batches of them ahead; a model, built from [`kernels`], is trained on them with
//! [`train`]. [`command`] starts the trainings by name.

// The tests of the GPU's kernels take their graphs from `tests/`, which knows this crate by its name.
#[cfg(test)]
extern crate self as gnntop_workloads;

pub mod command;
#[cfg(any(feature = "cuda", test))]
mod cuda;
pub mod gat;
pub mod gcn;
pub mod graph;
pub mod images;
pub mod inject;
pub mod kernels;
pub mod loading;
pub mod molecule;
pub mod nodes;
pub mod parallel;
pub mod pna;
pub mod sage;
pub mod sampled;
pub mod sampling;
pub mod train;
pub mod vig;

#[cfg(feature = "cuda")]
pub use cuda::rates as device_rates;

pub use command::EndsWhenRefused;
pub use gnntop_probe::{BatchShape, TrackingAllocator, Warning};
