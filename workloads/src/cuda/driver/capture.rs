//! A CUDA graph: what a thread hands over is noted instead of done, and handed over as a whole, again and again, by one
//! launch, which is a few microseconds for what took some for each kernel.
//!
//! A graph keeps addresses. Memory that is asked for while it is captured gets an address that is the graph's own for as
//! long as the graph lives, and must be freed within: all tensors made by the captured work are gone when it returns, and
//! what it leaves is copied into tensors from before. What was made before must not be freed within. Both are errors of
//! the driver, which end the capture.

use candle_core::cuda_backend::WrapErr;
use candle_core::cuda_backend::cudarc::driver::{CudaGraph, sys};
use candle_core::{Device, Result, bail};

/// Work that is handed over by one launch.
pub(crate) struct Captured(CudaGraph);

/// Does what is to be captured later. Sizes and strides that candle would copy to the device for each of its kernels are
/// kept there, because a graph would copy them from where they no longer are.
///
/// # Errors
/// Those of `work`.
pub(crate) fn rehearse<R>(device: &Device, work: impl FnOnce() -> Result<R>) -> Result<R> {
    let _kept = match device {
        Device::Cuda(device) => Some(device.enable_cuda_graph_htod_cache()),
        _ => None,
    };
    work()
}

/// Captures `work`, which was rehearsed: everything it needs is on the device, and every kernel is loaded. Nothing is done
/// yet. All that `work` reads and writes must be alive in every launch.
///
/// # Errors
/// Something in `work` cannot be captured, or the driver refuses. The device is as it was.
pub(crate) fn capture(device: &Device, work: impl FnOnce() -> Result<()>) -> Result<Captured> {
    let stream = device.as_cuda_device()?.cuda_stream();
    // What other threads ask of the driver meanwhile is their own affair.
    let mode = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    stream.begin_capture(mode).w()?;
    let done = rehearse(device, work);
    // A tensor whose memory could not be freed leaves its error behind, which would keep the capture from being ended.
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
    /// Hands all of it over.
    ///
    /// # Errors
    /// The driver refuses, and nothing is done.
    pub(crate) fn launch(&self) -> Result<()> {
        self.0.launch().w()
    }
}
