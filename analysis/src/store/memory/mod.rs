//! Memory as the program's allocator tells it, and whether it grows.

pub mod allocations;
pub mod trend;
