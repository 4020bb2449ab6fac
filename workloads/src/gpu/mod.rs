//! A GPU's time by phase and its memory, on the calling thread's session.

#[cfg(feature = "cuda")]
mod events;
#[cfg(feature = "cuda")]
mod pool;

use candle_core::{Device, Result};

/// Starts to publish a device's time and memory on the calling thread's track; does nothing if the device is not a GPU.
///
/// # Errors
/// The driver refuses to make events.
#[cfg(feature = "cuda")]
pub(crate) fn observe(device: &Device, name: &str, synchronise: bool) -> Result<()> {
    let Device::Cuda(device) = device else { return Ok(()) };
    let stream = device.cuda_stream();
    let pool = Box::new(pool::DriverPool(stream.clone()));
    let attach = gnntop_probe::device::Attach::new(name).synchronise(synchronise).pool(pool);
    attach.stream(std::sync::Arc::new(events::Events::new(stream)?)).start();
    Ok(())
}

/// Does nothing: no device is a GPU.
#[cfg(not(feature = "cuda"))]
pub(crate) fn observe(_: &Device, _: &str, _: bool) -> Result<()> {
    Ok(())
}
