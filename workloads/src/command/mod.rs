//! The command lines of the trainings, one a file: options and presets, from which they make what a trainer takes. The
//! registry alone knows them all.

mod gat;
mod gcn;
mod pipeline;
mod pna;
mod registry;
mod sage;
mod sampled;
#[cfg(test)]
mod tests;
mod training_command;
mod vig;

pub use registry::{Registered, WORKLOADS, Workload};
