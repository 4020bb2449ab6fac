//! What the forward pass of an operation leaves on a device for its backward pass.

use std::sync::{Mutex, PoisonError};

use candle_core::{Result, Tensor, bail};

/// A tensor that the forward pass leaves for the backward pass.
#[derive(Debug, Default)]
pub(crate) struct SavedTensor(Mutex<Option<Tensor>>);

impl SavedTensor {
    pub(crate) fn set(&self, tensor: Tensor) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(tensor);
    }

    /// # Errors
    /// There was no forward pass.
    pub(crate) fn get(&self) -> Result<Tensor> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(tensor) => Ok(tensor.clone()),
            None => bail!("an operation ran backward before forward"),
        }
    }
}
