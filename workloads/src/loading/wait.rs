//! Waiting for a batch, published.

use gnntop_probe::{Name, counter, phase, span};

use super::{Assemble, LoadedBatch, Loader, LoaderError};

static QUEUE_DEPTH: Name = Name::counter("queue depth");

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
