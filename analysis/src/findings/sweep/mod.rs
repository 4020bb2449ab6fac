//! What several recordings show about scaling, and what they cannot show: a speed-up larger than stages or ranks can
//! give, one that falls short because a stage is slow, and factors that were changed together.

mod configuration;
mod scaling;
#[cfg(test)]
mod tests;

pub use configuration::Configuration;
pub use scaling::{Scaling, confounded, scaling};
