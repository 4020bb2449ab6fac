//! The networks: layers and models, built from [`kernels`](crate::kernels), each in a fast form and a plain one that agree.
//! A model takes its parameters from a `VarBuilder`; what trains it is in [`learn`](crate::learn).

mod chain;
mod features;
pub mod gat;
pub mod gcn;
pub mod gin;
mod layered;
mod node_model;
mod parameters;
pub mod pna;
pub mod sage;
pub mod vig;

pub use features::{FeatureRows, FeatureTable};
pub use node_model::{NodeModel, Pass};
pub use parameters::{Parameter, Parameters};
