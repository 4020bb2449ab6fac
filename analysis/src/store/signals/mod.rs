//! Measured signals and the program's counters over time, their charts, and the curves from which energy is computed.

pub mod course;
pub mod meters;
pub mod resample;
pub mod series;
pub mod signal;
