//! A loader in the profiler: a track for every worker, a phase for every part of the work, and the depth of the queue.

use gnntop_probe::{Name, Opener, TrackRole, counter, opener, phase, set_step, span};

use super::{Assemble, BatchId, LoadedBatch, Loader, LoaderError, LoaderObserver, Stage};

static ASSEMBLE: Name = Name::phase("assemble");
static QUEUE_DEPTH: Name = Name::counter("queue depth");

/// Gives every worker a track of its own, `loader N`, and the parts of every batch a phase in the step that will use
/// it. Where the consumer makes its batches itself, they are phases of its own step.
#[derive(Debug, Clone)]
pub struct LoaderTracks {
    batches_per_epoch: u64,
    /// On the session of the thread that made this, or else on the one started last.
    opener: Opener,
}

impl LoaderTracks {
    /// For a training that makes a step of each batch, counted from 1.
    #[must_use]
    pub fn new(batches_per_epoch: u64) -> Self {
        Self { batches_per_epoch, opener: opener() }
    }
}

impl LoaderObserver for LoaderTracks {
    fn worker(&self, worker: usize, work: &mut dyn FnMut()) {
        let _track = self.opener.track(&format!("loader {worker}"), TrackRole::Loader);
        work();
    }

    fn batch(&self, batch: BatchId, work: &mut dyn FnMut()) {
        set_step(batch.epoch * self.batches_per_epoch + batch.index + 1);
        work();
    }

    fn stage(&self, stage: Stage, work: &mut dyn FnMut()) {
        let _part = span(match stage {
            Stage::Sample => &phase::SAMPLE,
            Stage::Gather => &phase::GATHER,
            Stage::Assemble => &ASSEMBLE,
        });
        work();
    }
}

/// The loader's next batch, with the wait for it published as the phase `data wait` and what was ready as the counter
/// `queue depth`. Without workers there is no wait: the parts of the work are the phases then.
///
/// # Errors
/// As [`Loader::next_batch`].
pub fn wait_for_batch<A: Assemble>(loader: &mut Loader<A>) -> Result<LoadedBatch<A::Batch>, LoaderError> {
    if loader.settings().workers == 0 {
        return loader.next_batch();
    }
    let _wait = span(&phase::DATA_WAIT);
    counter(&QUEUE_DEPTH, loader.queue_depth() as f64);
    loader.next_batch()
}
