//! Adam with PyTorch's semantics.

mod on_device;
mod optimizer;

pub(crate) use on_device::RepeatedAdam;
pub use optimizer::{Adam, AdamSettings};
