//! Adam with PyTorch's semantics.

#[cfg(any(feature = "cuda", test))]
mod on_device;
mod optimizer;

#[cfg(any(feature = "cuda", test))]
pub(crate) use on_device::RepeatedAdam;
pub use optimizer::{Adam, AdamSettings};
