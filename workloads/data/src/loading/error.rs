//! Why there is no batch.

use std::error::Error;

use thiserror::Error;

use super::BatchId;

/// Why there is no batch.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoaderError {
    /// There is nothing to load.
    #[error("there are no {items} to load")]
    Empty {
        /// The missing items.
        items: &'static str,
    },
    /// More items than 32-bit numbers count.
    #[error("there are {count} {items}; at most {} can be loaded", u32::MAX)]
    TooMany {
        /// How many there are.
        count: usize,
        /// Of what.
        items: &'static str,
    },
    /// A setting is 0 that must not be.
    #[error("{setting} is 0; it must be at least 1")]
    ZeroSetting {
        /// Its name in [`LoaderSettings`](super::LoaderSettings).
        setting: &'static str,
    },
    /// The part does not exist.
    #[error("there is no part {number} of {of}")]
    NoSuchPart {
        /// The part, from 0.
        number: usize,
        /// Parts in all.
        of: usize,
    },
    /// The system refused a thread.
    #[error("cannot start loader thread {worker}; use fewer workers")]
    Spawn {
        /// The worker, from 0.
        worker: usize,
        /// The system's error.
        source: std::io::Error,
    },
    /// The items of a batch do not fit together. Later batches still come.
    #[error("batch {} of epoch {} cannot be assembled", batch.index, batch.epoch)]
    Assemble {
        /// The batch.
        batch: BatchId,
        /// What is wrong; positions are those within the batch.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A worker ended early: it panicked, or a hook of the observer did not call its work.
    #[error("loader thread {worker} has stopped")]
    WorkerStopped {
        /// The worker, from 0.
        worker: usize,
    },
}
