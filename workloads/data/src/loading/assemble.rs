//! The two sides that a loader joins: what makes a batch, and who watches.

use std::error::Error;

/// Which batch: the epoch, and the position in it, both from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BatchId {
    /// Epoch, from 0.
    pub epoch: u64,
    /// Batch within the epoch, from 0.
    pub index: u64,
}

/// Makes batches of the items of a set. Every worker has its own clone: put what is large and shared into `Arc`s;
/// memory to work in belongs to the clone.
pub trait Assemble: Clone + Send + 'static {
    /// The items' name, for messages: `graphs`, `training nodes`, `images`.
    const ITEMS: &'static str;
    /// A batch. The default is an empty one.
    type Batch: Default + Send + 'static;
    /// Why a batch cannot be made.
    type Error: Error + Send + Sync + 'static;

    /// Number of items in the set.
    fn items(&self) -> usize;

    /// Called when batches are made in the consumer's thread: nothing else runs in that time, and all threads of the
    /// rayon pool are free to help.
    fn work_alone(&mut self) {}

    /// Fills `out` with the batch of these items, positions below [`items`](Self::items), in their order. `out` holds
    /// an earlier batch (or none), so that its memory can be reused. The result must depend only on `members` and
    /// `batch`, not on earlier batches. The parts of the work go through [`LoaderObserver::stage`].
    ///
    /// # Errors
    /// The items do not make a batch; `out` may then hold anything.
    fn assemble(
        &mut self,
        members: &[u32],
        batch: BatchId,
        out: &mut Self::Batch,
        observer: &dyn LoaderObserver,
    ) -> Result<(), Self::Error>;
}

/// A part of the work on one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Neighbours are sampled.
    Sample,
    /// Features are gathered.
    Gather,
    /// The batch is put together.
    Assemble,
}

/// Watches the work of a loader, to time it without the loader knowing how. All hooks run on the working thread, so
/// that they can hold guards that must not change threads.
pub trait LoaderObserver: Send + Sync + 'static {
    /// Runs a worker from start to end: must call `work` once. Guards held around the call live exactly as long as the
    /// worker. Not called where the consumer makes its batches itself.
    fn worker(&self, worker: usize, work: &mut dyn FnMut()) {
        let _ = worker;
        work();
    }

    /// Runs a worker's whole work on one batch: must call `work` once. Waiting for room in the queue is not part of
    /// it. Not called where the consumer makes its batches itself.
    fn batch(&self, batch: BatchId, work: &mut dyn FnMut()) {
        let _ = batch;
        work();
    }

    /// Runs one part of the work on a batch: must call `work` once. Called in a worker, or in the consumer where it
    /// makes its batches itself.
    fn stage(&self, stage: Stage, work: &mut dyn FnMut()) {
        let _ = stage;
        work();
    }
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl LoaderObserver for Unobserved {}
