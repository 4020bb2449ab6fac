//! A loader in the profiler: a track for every worker, a phase for every part of the work.

use gnntop_probe::{Name, Opener, TrackRole, opener, phase, set_step, span};

use super::{BatchId, LoaderObserver, Stage};

static ASSEMBLE: Name = Name::phase("assemble");

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
            Stage::Assemble => &ASSEMBLE,
        });
        work();
    }
}
