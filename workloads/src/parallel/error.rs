//! Errors that end the work of several ranks.

use thiserror::Error;

/// Why ranks cannot continue together.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CollectiveError {
    /// A rank has ended while others wait for it.
    #[error("rank {rank} {reason}")]
    Gone {
        /// The rank.
        rank: usize,
        /// What became of it.
        reason: String,
    },
    /// Two ranks make different calls.
    #[error(
        "the ranks are out of step: rank {rank} calls {call}, rank {other} {other_call}; do they run with the same settings?"
    )]
    OutOfStep {
        /// One rank.
        rank: usize,
        /// Its call.
        call: String,
        /// Another rank.
        other: usize,
        /// Its call.
        other_call: String,
    },
    /// A rank was started with different settings than the others.
    #[error("rank {rank} was started with different settings than rank 0: here {what}; start all ranks alike")]
    OtherSettings {
        /// The rank.
        rank: usize,
        /// The settings, its own first.
        what: String,
    },
    /// There are fewer GPUs than ranks, and each rank needs its own.
    #[error(
        "{ranks} ranks need {ranks} GPUs, but the driver finds {gpus} from cuda:{first}: start fewer ranks, or remove \
         --engine nccl so that ranks share a GPU"
    )]
    TooFewGpus {
        /// Ranks on this machine.
        ranks: usize,
        /// GPUs for them.
        gpus: usize,
        /// The number of the first of these.
        first: usize,
    },
    /// The engine failed.
    #[error("{engine} failed: {message}")]
    Engine {
        /// What carries the data.
        engine: &'static str,
        /// Its message.
        message: String,
    },
}

/// Why gradients were not summed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SyncError {
    /// The ranks cannot continue together.
    #[error(transparent)]
    Ranks(#[from] CollectiveError),
    /// A gradient cannot be read or written.
    #[error(transparent)]
    Model(#[from] candle_core::Error),
}
