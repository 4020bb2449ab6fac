//! The doctor: what can be read here, what cannot and why, and what would open it.

mod components;
mod diagnosis;
mod energy;

pub use components::diagnose;
pub use diagnosis::{Diagnosis, DiagnosisState};
