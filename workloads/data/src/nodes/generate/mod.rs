//! Graphs generated from a seed, with the statistics of the data sets the studies use: they stand in if no data set is
//! at hand, and nothing is downloaded. A seed gives the same data on every machine of one kind and for every number of
//! threads.

mod cora;
mod random;
mod reddit;

pub use cora::{cora_like, cora_like_ceiling};
pub use reddit::{Ceiling, GenerateError, reddit_like, reddit_like_ceiling, reddit_like_on_disk};
