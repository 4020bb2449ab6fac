//! Memory as the program's allocator reports it, and whether it grows.

pub mod allocations;
pub mod trend;
