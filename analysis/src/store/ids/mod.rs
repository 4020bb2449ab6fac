//! What the ids of a session mean.

pub mod names;
pub mod phases;
