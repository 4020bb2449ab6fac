//! Steps: their wall time laid out by phase, the table of them, figures over many, and the same of a device.

pub mod columns;
pub mod device;
pub mod measure;
pub mod reduced;
pub mod row;
pub mod slow;
pub mod statistics;
pub mod table;
