//! Steps: their wall time by phase, their table, figures over many of them, and the same for a device.

pub mod columns;
pub mod device;
pub mod measure;
pub mod reduced_steps;
pub mod statistics;
pub mod step_row;
pub mod stretches;
pub mod table;
