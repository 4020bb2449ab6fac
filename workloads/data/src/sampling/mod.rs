//! Neighbour sampling: the part of a large graph that a mini-batch of seed nodes needs, and the batches made of it.
//!
//! [`NeighbourSampler`] draws the neighbourhood, [`gather_features`] copies the features of the nodes reached, and
//! [`NodeBatches`] does both and more for a [`crate::loading::Loader`].

mod batches;
mod choose;
mod gather;
mod local_ids;
mod neighbours;
mod random;

pub use batches::{NodeBatch, NodeBatchError, NodeBatches, NodeLoader};
pub use gather::{FeatureError, check_features, gather_features, gather_into, gather_without_zeros};
pub use neighbours::{NeighbourSampler, Sample, SampleError, SampleForm, SampledEdges, SamplerSettings};
