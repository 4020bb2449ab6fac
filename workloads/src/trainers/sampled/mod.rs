//! Sampled training of node classifiers, as study 2 trains GraphSAGE and GAT: a step on a batch, on one rank or with others,
//! and judging after each epoch.

mod features;
mod run;
mod training;

pub(crate) use run::SampledRun;
