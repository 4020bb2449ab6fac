//! What every training shares: the loop with the [`Observer`] it reports to and the errors that end it, and the loader as the
//! profiler sees it.

mod error;
mod explain;
mod loader_tracks;
mod memory;
mod observer;
mod out_of_memory;
mod training;

pub use error::{InvalidOption, TrainError};
pub use loader_tracks::{LoaderTracks, published_loader, wait_for_batch};
pub use memory::keep_freed_memory;
pub use observer::{Observer, Silent, StepReport, Summary};
pub use out_of_memory::OutOfMemory;
pub(crate) use training::{AroundSteps, Position, StepOutcome, Training, holdings, train};
