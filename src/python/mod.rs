//! Python programs: what they are watched with, and how it gets to them.
//!
//! The binary carries the package `gnntop` and its native part, lays them into a private folder, and points the environment
//! of what it starts there ([`package`]). Each Python that starts answers ([`answers`]), so that those that do not can be
//! distinguished. A running one is asked to run our script ([`remote`]).

pub mod answers;
pub mod diagnose;
mod elf;
pub mod joining;
pub mod package;
pub mod reach;
pub mod remote;
pub mod results;
mod stale;
pub mod unreached;
