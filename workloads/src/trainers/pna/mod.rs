//! Trains [`Pna`](crate::models::pna::Pna) as study 0 does: L1 loss on scaled targets, Adam, a cosine schedule.

mod settings;
mod trainer;
mod training;
mod validation;

pub use settings::PnaTraining;
pub use trainer::{TargetScale, Trainer};
pub(crate) use training::PnaRun;
