//! The trainer of each model: its batches, its loss, the phases of its step, and its report after an epoch. A command
//! line ([`command`](crate::command)) chooses model, data and settings.

pub mod gcn;
pub mod pna;
pub(crate) mod sampled;
pub mod vig;
