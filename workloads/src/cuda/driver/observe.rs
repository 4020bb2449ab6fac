//! Publishes a GPU's time by phase and its memory on the calling thread's session.

use std::sync::Arc;

use candle_core::{Device, Result};
use gnntop_probe::device::Attach;

use super::events::Events;
use super::pool::DriverPool;

/// Starts to publish a device's time and memory on the calling thread's track; does nothing if the device is not a GPU.
///
/// # Errors
/// The driver refuses to make events.
pub(crate) fn observe(device: &Device, name: &str, synchronise: bool) -> Result<()> {
    let Device::Cuda(device) = device else { return Ok(()) };
    let stream = device.cuda_stream();
    let attach = Attach::new(name).synchronise(synchronise).pool(Box::new(DriverPool(stream.clone())));
    attach.stream(Arc::new(Events::new(stream)?)).start();
    Ok(())
}
