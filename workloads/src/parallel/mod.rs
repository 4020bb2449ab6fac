//! Training on several ranks: what they do together ([`Collective`]), and what carries it.

mod collective;
mod threads;

pub use collective::{Collective, CollectiveError};
pub use threads::{ThreadRank, thread_ranks};
