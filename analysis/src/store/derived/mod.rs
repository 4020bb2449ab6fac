//! What is computed from a store on request; nothing here is kept.

pub mod device_memory;
pub mod ending;
pub mod energy;
pub mod growth;
pub mod hardware;
pub mod logged;
pub mod marks;
pub mod progress;
pub mod restarts;
pub mod stacks;
pub mod throughput;
