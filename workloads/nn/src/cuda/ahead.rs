//! Values of a batch that go to a GPU before they are used: into page-locked memory when the batch is ready, and from
//! there on their own stream while the device computes with the previous batch.

use candle_core::{Device, Result, Tensor};

use super::driver::PinnedCopies;
use super::ring::Ring;

/// Buffers on the way to a device: one in use, one being filled.
const BUFFERS: usize = 2;

/// Sends a run's batches to a GPU.
pub struct CopiesAhead(Box<Ring<PinnedCopies>>);

impl CopiesAhead {
    /// Sends to `device`; `None` if it is not a GPU.
    ///
    /// # Errors
    /// The device refuses.
    pub fn to(device: &Device) -> Result<Option<Self>> {
        if !device.is_cuda() {
            return Ok(None);
        }
        Ok(Some(Self(Box::new(Ring::new(PinnedCopies::new(device)?, BUFFERS)))))
    }

    /// Has `write` write `values` values of a batch and sends them.
    ///
    /// # Errors
    /// The previous batch was not received, or the device has too little memory or refuses.
    pub fn send(&mut self, values: usize, write: impl FnOnce(&mut [f32])) -> Result<()> {
        self.0.fill(values, write)
    }

    /// Waits for the oldest values not yet received: one list on the device, valid until the next one is received.
    ///
    /// # Errors
    /// Nothing was sent, or the device refuses.
    pub fn receive(&mut self) -> Result<Tensor> {
        let (place, values) = self.0.take()?;
        place.narrow(0, 0, values)
    }
}
