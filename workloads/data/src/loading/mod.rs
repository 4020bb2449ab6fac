//! Batches made ahead by worker threads, the same whatever the number of workers.
//!
//! An [`Assemble`] defines a batch and how it is made: joined graphs, nodes with their sampled neighbourhood, images. A
//! [`Loader`] shuffles the items of a set, cuts their order into batches and has them made. A [`LoaderObserver`] sees
//! which worker works on what.

mod assemble;
mod delay;
mod error;
mod loader;
mod order;
mod settings;

pub use assemble::{Assemble, BatchId, LoaderObserver, Stage, Unobserved};
pub use delay::{Delay, Pause, UsualStep};
pub use error::LoaderError;
pub use loader::{LoadedBatch, Loader};
pub use settings::{LoaderSettings, LoaderShard};
