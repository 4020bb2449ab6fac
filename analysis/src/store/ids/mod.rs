//! The meaning of a session's ids.

pub mod names;
pub mod phases;
