//! GCN (graph convolutional network, Kipf and Welling): study 1, node classification on Cora.
//!
//! A [`LoopedGraph`] is normalised once or at every step; [`Gcn`] is the model, which
//! [`trainers::gcn`](crate::trainers::gcn) trains in the study's ways.

mod conv;
mod finish;
mod model;
mod normalise;

pub use conv::{GcnConv, NodeFeatures};
pub use finish::{Dropout, Finish};
pub(crate) use model::SEEDS_OF_STEP;
pub use model::{Computation, Gcn, GcnConfig};
pub use normalise::{LoopedGraph, Normalised};
