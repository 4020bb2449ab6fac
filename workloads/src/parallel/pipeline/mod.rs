//! Pipelines: a model cut into stages, one per rank, through which a batch passes in micro-batches.
//!
//! [`Schedule`] says in which order a stage makes its passes, [`balanced_parts`] and its like which blocks it has, and
//! a [`Pipeline`] makes the passes of a [`StageModel`], passes activations forward and gradients back, and adds up the
//! gradients of the parameters. A batch's loss is the mean over the whole batch, so that the result is that of the
//! whole model; only operations that depend on other samples of a batch, such as batch normalisation, see
//! micro-batches.

mod exchange;
mod partition;
mod schedule;
mod stage;

pub use partition::{PartitionError, balanced_parts, given_parts, published_parts};
pub use schedule::{Pass, PassTimes, Schedule};
pub use stage::{BatchOutcome, Pipeline, PipelineSettings, StageModel};
