//! Sampled training of node classifiers, as study 2 trains GraphSAGE and GAT: the options they share, and the loop.

mod features;
mod options;
mod training;

pub use options::SampledOptions;
pub(crate) use options::WEIGHT_DECAY;
pub(crate) use training::SampledRun;
