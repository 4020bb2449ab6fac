//! What a model learns with: losses, Adam, loss scaling for half precision, accuracy, and all of it around a model.

mod adam;
mod adam_on_device;
mod learner;
mod loss;
mod metrics;
mod scaler;
mod targets;

pub use adam::{Adam, AdamSettings};
pub use adam_on_device::RepeatedAdam;
pub use learner::{Learner, NodeInput, NodeOutcome};
pub use loss::{LabelledRows, cross_entropy};
pub use metrics::Accuracy;
pub use scaler::{GradScaler, ScalerSettings};
pub use targets::{TargetScale, cosine_learning_rate};
