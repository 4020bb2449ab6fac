//! What every training here shares: parameters as one ordered list, cross-entropy, Adam, the learning-rate schedule,
//! loss scaling for half precision, metrics, and the handling of subnormal numbers.

mod adam;
mod loss;
mod memory;
mod metrics;
mod node_trainer;
mod parameters;
mod scaler;
mod schedule;
mod subnormals;

#[cfg(any(feature = "cuda", test))]
pub(crate) use adam::RepeatedAdam;
pub use adam::{Adam, AdamSettings};
pub use loss::{LabelledRows, cross_entropy};
pub use memory::keep_freed_memory;
pub use metrics::Accuracy;
pub use node_trainer::{NodeInput, NodeModel, NodeOutcome, NodeTrainer, Pass};
pub(crate) use node_trainer::{check_nodes, edges_of};
pub use parameters::{Parameter, Parameters};
pub use scaler::{GradScaler, ScalerSettings};
pub use schedule::cosine_learning_rate;
pub(crate) use subnormals::keeping_subnormals;
pub use subnormals::{Subnormals, set_subnormals};
