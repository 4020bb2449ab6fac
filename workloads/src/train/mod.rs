//! What every training here shares: parameters as one ordered list, Adam, the learning-rate schedule, and the
//! handling of subnormal numbers.

mod adam;
mod parameters;
mod schedule;
mod subnormals;

pub use adam::{Adam, AdamSettings};
pub use parameters::{Parameter, Parameters};
pub use schedule::cosine_learning_rate;
pub use subnormals::{Subnormals, set_subnormals};
