//! Values of a batch that go to a GPU ahead of their use: into page-locked memory when the batch is there, and from it on a
//! stream of their own while the device computes with the batch before.

use candle_core::{Device, Result, Tensor};
use gnntop_probe::{phase, span};

use crate::cuda::{PinnedCopies, Ring};

/// Buffers on the way to a device: one in use, one that is filled.
const BUFFERS: usize = 2;

/// The way of a training's batches to a GPU.
pub(crate) struct CopiesAhead(Box<Ring<PinnedCopies>>);

impl CopiesAhead {
    /// The way to `device`, where it is a GPU.
    ///
    /// # Errors
    /// The device refuses.
    pub(crate) fn to(device: &Device) -> Result<Option<Self>> {
        if !device.is_cuda() {
            return Ok(None);
        }
        Ok(Some(Self(Box::new(Ring::new(PinnedCopies::new(device)?, BUFFERS)))))
    }

    /// Has `write` put so many values of a batch on their way, as the phase gather.
    ///
    /// # Errors
    /// The batch before was not received, the device has not enough memory, or refuses.
    pub(crate) fn send(&mut self, values: usize, write: impl FnOnce(&mut [f32])) -> Result<()> {
        let _gather = span(&phase::GATHER);
        self.0.fill(values, write)
    }

    /// Waits for what was sent first and not yet received: one list on the device, which is there until the next one is
    /// received.
    ///
    /// # Errors
    /// Nothing was sent, or the device refuses.
    pub(crate) fn receive(&mut self) -> Result<Tensor> {
        let (place, values) = self.0.take()?;
        place.narrow(0, 0, values)
    }
}
