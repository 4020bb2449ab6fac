//! Trains [`Gcn`](gnntop_nn::models::gcn::Gcn) on one graph in the ways of study 1 ([`Mode`]), each several times, and
//! judges every run on the whole graph.

mod judge;
mod learning;
mod mode;
mod repeated;
mod run;
mod trainer;

pub use mode::Mode;
pub(crate) use run::GcnRun;
pub use trainer::{Recipe, Trainer};
