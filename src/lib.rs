//! The parts of the `gnntop` binary, from the byte stream to the screen. `ARCHITECTURE.md` has the map.

pub mod app;
pub mod cli;
pub mod death;
pub mod export;
pub mod import;
pub mod log;
mod phase_style;
pub mod python;
pub mod report;
pub mod study;
pub mod ui;
pub mod viewer;
mod wrap;
