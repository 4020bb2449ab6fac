//! GCN (graph convolutional network, Kipf and Welling): study 1, node classification on Cora.
//!
//! A [`LoopedGraph`] is normalised once or at every step; [`Gcn`] is the model.

mod conv;
mod finish;
mod fused;
mod model;
mod normalise;

pub use conv::{GcnConv, NodeFeatures};
pub use finish::{Dropout, Finish};
pub use model::{Computation, Gcn, GcnConfig, SEEDS_OF_STEP};
pub use normalise::{LoopedGraph, Normalised};
