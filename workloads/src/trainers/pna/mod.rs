//! Trains [`Pna`](gnntop_nn::models::pna::Pna) as study 0 does: L1 loss on scaled targets, Adam, a cosine schedule.

mod training;
mod validation;

pub(crate) use training::PnaRun;
pub use training::PnaTraining;
