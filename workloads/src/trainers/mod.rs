//! What trains each model: its batches, its loss, the phases of its step, and what it says after an epoch. A command line
//! ([`command`](crate::command)) says what is trained on what and how.

pub mod gcn;
pub mod pna;
pub(crate) mod sampled;
pub mod vig;
