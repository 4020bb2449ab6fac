//! The common work of ranks: the calls they share ([`Collective`]), the engines that carry these (threads, MPI or
//! NCCL), gradients that become one ([`GradientSync`]), and models cut into the stages of a [`pipeline`].

mod collective;
mod error;
mod gradients;
#[cfg(feature = "mpi")]
pub(crate) mod mpi;
#[cfg(any(feature = "nccl", test))]
pub(crate) mod nccl;
pub mod pipeline;
mod threads;

pub use collective::{Collective, OnDevice};
pub use error::{CollectiveError, SyncError};
pub use gradients::GradientSync;
pub use threads::{ThreadRank, thread_ranks};
