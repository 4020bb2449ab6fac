//! A graph like Reddit's, of any size: heavy-tailed degrees, planted communities, dense features around class means.

mod ceiling;
mod cumulative;
mod edges;
mod error;
mod graph;
mod horizon;
mod means;
mod published;

pub use ceiling::{Ceiling, reddit_like_ceiling};
pub use error::GenerateError;
pub use graph::{reddit_like, reddit_like_on_disk};
