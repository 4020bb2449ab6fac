//! What every training shares: the loop with the [`Observer`] it reports to and the errors that end it; cross-entropy,
//! Adam, the learning-rate schedule, loss scaling for half precision and metrics; sending batches to a GPU ahead of
//! their use; and the handling of freed memory and subnormal numbers.

mod adam;
mod ahead;
mod error;
mod explain;
mod loader_tracks;
mod loss;
mod memory;
mod metrics;
mod node_trainer;
mod observer;
mod out_of_memory;
mod scaler;
mod schedule;
mod subnormals;
mod training;

pub(crate) use adam::RepeatedAdam;
pub use adam::{Adam, AdamSettings};
pub(crate) use ahead::CopiesAhead;
pub use error::TrainError;
pub use loader_tracks::{LoaderTracks, published_loader, wait_for_batch};
pub use loss::{LabelledRows, cross_entropy};
pub use memory::keep_freed_memory;
pub use metrics::Accuracy;
pub use node_trainer::{NodeInput, NodeOutcome, NodeTrainer};
pub use observer::{Observer, Silent, StepReport, Summary};
pub use out_of_memory::OutOfMemory;
pub use scaler::{GradScaler, ScalerSettings};
pub use schedule::cosine_learning_rate;
pub(crate) use subnormals::keeping_subnormals;
pub use subnormals::{Subnormals, set_subnormals};
pub(crate) use training::{AroundSteps, Position, StepOutcome, Training, train};
