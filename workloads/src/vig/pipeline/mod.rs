//! ViG in a pipeline: study 3's experiment, and its missing control.
//!
//! A [`VigStage`] has some of the blocks, the last one the readout too. From stage to stage go the features of the nodes
//! and nothing else, `[nodes, 3]`, and their gradients come back: every stage knows the edges of the grid. The study sends
//! a fourth column, the number of each node, and looks for the edges of a micro-batch among those of the whole batch.

mod costs;
mod options;
mod stage;
mod training;

pub use options::PipelineOptions;
pub(super) use options::Plan;
pub use stage::VigStage;
pub(super) use training::StagedTraining;
