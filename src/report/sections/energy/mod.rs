//! Energy and carbon in a report (`figures.rs`), in words for people (`text.rs`), and repeatedly for a running session
//! (`watch.rs`).

mod figures;
mod text;
mod watch;

pub use figures::{Carbon, Component, Doubt, Energy, Epoch, Gap, Joules, PhaseEnergy, Total};
pub(in crate::report) use text::blocks;
pub use text::{carbon_in_words, describe_joules, doubt_in_words, phase_in_words, title, total_in_words};
pub use watch::{EnergySnapshot, EnergyWatch};
