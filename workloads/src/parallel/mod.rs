//! Training on several ranks: what they do together ([`Collective`]), what carries it ([`ThreadRank`]), how they are started
//! ([`Launch`]), and how their gradients become one ([`GradientSync`]).

mod alike;
mod collective;
mod engine;
mod facts;
mod gpus;
mod gradients;
mod hosts;
mod launch;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(any(feature = "nccl", test))]
mod nccl;
mod options;
pub mod pipeline;
mod threads;

pub use alike::Settings;
pub(crate) use alike::given;
pub use collective::{Collective, CollectiveError, OnDevice};
pub use engine::{Engine, launched_by_mpi};
pub use facts::Facts;
pub use gradients::{GradientSync, SyncError};
pub use launch::{Launch, Rank};
pub use options::{RankOptions, Shard, available_cores};
pub use threads::{ThreadRank, thread_ranks};
