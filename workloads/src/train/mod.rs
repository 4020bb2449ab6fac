//! What every training here shares: parameters as one ordered list, Adam, the learning-rate schedule, loss scaling for
//! half precision, metrics, and the handling of subnormal numbers.

mod adam;
mod metrics;
mod parameters;
mod scaler;
mod schedule;
mod subnormals;

pub use adam::{Adam, AdamSettings};
pub use metrics::Accuracy;
pub use parameters::{Parameter, Parameters};
pub use scaler::{GradScaler, ScalerSettings};
pub use schedule::cosine_learning_rate;
pub use subnormals::{Subnormals, set_subnormals};
