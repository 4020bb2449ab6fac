//! Energy and carbon in a report (`told.rs`), in words for people (`words.rs`), and repeatedly for a running session
//! (`watch.rs`).

mod told;
mod watch;
mod words;

pub use told::{Carbon, Component, Doubt, Energy, Epoch, Gap, Joules, PhaseEnergy, Total};
pub use watch::{EnergyTold, EnergyWatch};
pub(in crate::report) use words::blocks;
pub use words::{carbon_in_words, doubt_in_words, in_words, phase_in_words, title, total_in_words};
