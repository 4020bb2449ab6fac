//! Trains [`Pna`](gnntop_nn::models::pna::Pna) as study 0 does: L1 loss on scaled targets, Adam, a cosine schedule.

mod settings;
mod training;
mod validation;

pub use settings::PnaTraining;
pub(crate) use training::PnaRun;
