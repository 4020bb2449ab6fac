//! GCN (graph convolutional network, Kipf and Welling): study 1, node classification on Cora.
//!
//! A [`LoopedGraph`] is normalised once or at every step; [`Gcn`] is the model; [`GcnCommand`] trains it in the study's
//! four ways.

mod command;
mod conv;
mod finish;
mod judge;
mod learning;
mod mode;
mod model;
mod normalise;
#[cfg(any(feature = "cuda", test))]
mod repeated;
mod trainer;

pub use command::GcnCommand;
pub use conv::{Dropout, GcnConv, NodeFeatures};
pub use finish::Finish;
pub use mode::Mode;
pub use model::{Computation, Gcn, GcnConfig};
pub use normalise::{LoopedGraph, Normalised};
pub use trainer::{Recipe, Trainer};
