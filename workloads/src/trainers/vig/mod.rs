//! Trains the networks of [`models::vig`](gnntop_nn::models::vig): whole, or the study's in the stages of a pipeline.
//!
//! A [`VigStage`] has some of the blocks, the last one also the readout. Only the nodes' features, `[nodes, 3]`, go
//! from stage to stage, and their gradients come back: every stage knows the edges of the grid. The study sends a
//! fourth column, the number of each node, and looks for the edges of a micro-batch among those of the whole batch.

mod costs;
mod network;
mod settings;
mod stage;
mod staged;
mod training;

pub(crate) use network::NetworkConfig;
pub(crate) use settings::Stages;
pub use settings::VigTraining;
pub use stage::{StageSettings, VigStage};
pub(crate) use staged::StagedRun;
pub(crate) use training::VigRun;
