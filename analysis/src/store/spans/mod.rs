//! Spans: their durations by name, and their places in time by track.

pub mod distribution;
pub mod lanes;
