//! Spans: how long they take, by name, and where they lie in time, by track.

pub mod by_name;
pub mod distribution;
pub mod lanes;
