//! A CUDA graph: a thread's work is recorded instead of done, and then submitted as a whole, as often as needed, by one
//! launch. That takes a few microseconds instead of some for each kernel.
//!
//! A graph keeps addresses. Memory allocated during the capture gets an address that belongs to the graph for its
//! lifetime, and must be freed within the capture: all tensors made by the captured work are gone when it returns, and
//! its results are copied into older tensors. Older memory must not be freed within the capture. Both are driver
//! errors, which end the capture.

use candle_core::cuda_backend::WrapErr;
use candle_core::cuda_backend::cudarc::driver::{CudaGraph, sys};
use candle_core::{Device, Result, bail};

/// Work that is submitted by one launch.
pub struct Captured(CudaGraph);

/// Runs the work that is captured later. Sizes and strides that candle would copy to the device for each of its kernels
/// are kept there, because a graph would copy them from freed memory.
///
/// # Errors
/// Those of `work`.
pub fn rehearse<R>(device: &Device, work: impl FnOnce() -> Result<R>) -> Result<R> {
    let _kept = match device {
        Device::Cuda(device) => Some(device.enable_cuda_graph_htod_cache()),
        _ => None,
    };
    work()
}

/// Captures `work`, which was rehearsed: everything it needs is on the device, and every kernel is loaded. Nothing runs
/// yet. Everything that `work` reads and writes must be alive in every launch.
///
/// # Errors
/// Something in `work` cannot be captured, or the driver refuses. The device is as it was.
pub fn capture(device: &Device, work: impl FnOnce() -> Result<()>) -> Result<Captured> {
    let stream = device.as_cuda_device()?.cuda_stream();
    // Other threads may use the driver during the capture.
    let mode = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    stream.begin_capture(mode).w()?;
    let done = rehearse(device, work);
    // A tensor whose memory could not be freed leaves its error behind, which would prevent the end of the capture.
    let freed = stream.context().check_err();
    let ended = stream.end_capture(sys::CUgraphInstantiate_flags_enum(0));
    let _ = stream.context().check_err();
    done?;
    freed.w()?;
    match ended.w()? {
        Some(graph) => Ok(Captured(graph)),
        None => bail!("the driver captured nothing"),
    }
}

impl Captured {
    /// Submits all of it.
    ///
    /// # Errors
    /// The driver refuses, and nothing is done.
    pub fn launch(&self) -> Result<()> {
        self.0.launch().w()
    }
}
