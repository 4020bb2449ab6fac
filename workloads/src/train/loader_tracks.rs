//! A loader in the profiler: a track for every worker, a phase for every part of the work, and for the wait for a batch.

use std::sync::Arc;

use gnntop_data::loading::{
    Assemble, BatchId, LoadedBatch, Loader, LoaderError, LoaderObserver, LoaderSettings, Stage,
};
use gnntop_probe::{Name, Opener, TrackRole, counter, opener, phase, set_step, span};

static QUEUE_DEPTH: Name = Name::counter("queue depth");

/// Gives every worker its own track, `loader N`, and the parts of every batch a phase in the step that will use it. If
/// the consumer makes its batches itself, they are phases of its own step.
#[derive(Debug, Clone)]
pub struct LoaderTracks {
    batches_per_epoch: u64,
    /// On the session of the thread that made this, else on the one started last.
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
            Stage::Assemble => &phase::ASSEMBLE,
        });
        work();
    }
}

/// [`Loader::new`], with its work published: see [`LoaderTracks`].
///
/// # Errors
/// As [`Loader::new`].
pub fn published_loader<A: Assemble>(assembler: A, settings: LoaderSettings) -> Result<Loader<A>, LoaderError> {
    let batches_per_epoch = settings.batches_per_epoch(assembler.items());
    Loader::observed(assembler, settings, Arc::new(LoaderTracks::new(batches_per_epoch)))
}

/// The loader's next batch, with the wait for it published as the phase `data wait` and the number of ready batches as
/// the counter `queue depth`. Without workers there is no wait: the parts of the work are the phases then.
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
