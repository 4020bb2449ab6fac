//! Measured signals and the program's counters over time, charts of them, and the curves that energy is told by.

pub mod meters;
pub mod resample;
pub mod series;
pub mod signal;
