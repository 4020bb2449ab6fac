//! The parts of the `gnntop` binary, from the byte stream to the screen. `ARCHITECTURE.md` has the map.

pub mod app;
pub mod cli;
pub mod energy;
pub mod export;
pub mod figures;
pub mod findings;
pub mod import;
pub mod ranks;
pub mod recorder;
pub mod report;
pub mod source;
pub mod store;
pub mod study;
pub mod ui;
