//! Values of a batch that go to a GPU ahead of their use: into page-locked memory when the batch is there, and from it on a
//! stream of their own while the device computes with the batch before.

use candle_core::{Device, Result, Tensor};

#[cfg(feature = "cuda")]
use crate::loading::Ring;

/// Buffers on the way to a device: one in use, one that is filled.
#[cfg(feature = "cuda")]
const BUFFERS: usize = 2;

/// The way of a training's batches to a GPU.
#[cfg(feature = "cuda")]
pub(crate) struct CopiesAhead(Box<Ring<crate::cuda::CudaCopies>>);

/// Without CUDA there is none.
#[cfg(not(feature = "cuda"))]
pub(crate) enum CopiesAhead {}

impl CopiesAhead {
    /// The way to `device`, where it is a GPU.
    ///
    /// # Errors
    /// The device refuses.
    pub(crate) fn to(device: &Device) -> Result<Option<Self>> {
        #[cfg(feature = "cuda")]
        if device.is_cuda() {
            let copies = crate::cuda::CudaCopies::new(device)?;
            return Ok(Some(Self(Box::new(Ring::new(copies, BUFFERS)))));
        }
        let _ = device;
        Ok(None)
    }

    /// Has `write` put so many values of a batch on their way, as the phase gather.
    ///
    /// # Errors
    /// The batch before was not received, the device has not enough memory, or refuses.
    pub(crate) fn send(&mut self, values: usize, write: impl FnOnce(&mut [f32])) -> Result<()> {
        #[cfg(feature = "cuda")]
        {
            let _gather = gnntop_probe::span(&gnntop_probe::phase::GATHER);
            self.0.fill(values, write)
        }
        #[cfg(not(feature = "cuda"))]
        {
            let _ = (values, write);
            match *self {}
        }
    }

    /// Waits for what was sent first and not yet received: one list on the device, which is there until the next one is
    /// received.
    ///
    /// # Errors
    /// Nothing was sent, or the device refuses.
    pub(crate) fn receive(&mut self) -> Result<Tensor> {
        #[cfg(feature = "cuda")]
        {
            let (place, values) = self.0.take()?;
            place.narrow(0, 0, values)
        }
        #[cfg(not(feature = "cuda"))]
        match *self {}
    }
}
