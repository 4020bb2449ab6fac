//! The stream that all work of a device is on, as NVIDIA's libraries take it.

use std::ffi::c_void;

use candle_core::Result;
use candle_core::cuda_backend::{CudaDevice, WrapErr};

/// The stream of a device, whose context becomes the calling thread's.
///
/// # Errors
/// The driver refuses.
pub(crate) fn stream_of(device: &CudaDevice) -> Result<*mut c_void> {
    let stream = device.cuda_stream();
    stream.context().bind_to_thread().w()?;
    Ok(stream.cu_stream().cast())
}
