//! Copies to a GPU on their own stream, from page-locked memory.

use std::sync::Arc;

use candle_core::cuda_backend::cudarc::driver::{CudaEvent, CudaStream, PinnedHostSlice, result, sys};
use candle_core::cuda_backend::{CudaDevice, WrapErr};
use candle_core::{DType, Device, Result, Tensor, bail};

use crate::cuda::machine::View;
use crate::cuda::ring::CopyEngine;

/// The copies of one device.
pub(crate) struct PinnedCopies {
    device: CudaDevice,
    copies: Arc<CudaStream>,
}

impl PinnedCopies {
    /// A stream for copies besides the one that computes.
    ///
    /// # Errors
    /// The device is not a GPU, or its driver refuses.
    pub(crate) fn new(device: &Device) -> Result<Self> {
        let device = device.as_cuda_device()?.clone();
        let copies = device.cuda_stream().context().new_stream().w()?;
        Ok(Self { device, copies })
    }

    fn event_on(&self, stream: &CudaStream) -> Result<CudaEvent> {
        // Waiting for it sleeps: the other threads prepare the next batches.
        let event = stream.context().new_event(Some(sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC)).w()?;
        event.record(stream).w()?;
        Ok(event)
    }
}

impl CopyEngine for PinnedCopies {
    type Host = PinnedHostSlice<f32>;
    type Device = Tensor;
    type Event = CudaEvent;

    fn allocate(&self, values: usize) -> Result<(Self::Host, Tensor)> {
        let stream = self.device.cuda_stream();
        // SAFETY: any bits are numbers; only what was written is copied.
        let host = unsafe { stream.context().alloc_pinned::<f32>(values.max(1)) }.w()?;
        let place = Tensor::zeros(values.max(1), DType::F32, &Device::Cuda(self.device.clone()))?;
        // The memory belongs to the computing stream from here on, and only then to the copies'.
        self.copies_wait(&self.computed()?)?;
        Ok((host, place))
    }

    fn values<'a>(&self, host: &'a mut Self::Host) -> Result<&'a mut [f32]> {
        host.as_mut_slice().w()
    }

    fn copy(&self, host: &Self::Host, device: &mut Tensor, values: usize) -> Result<CudaEvent> {
        let Some(from) = host.as_slice().w()?.get(..values) else { bail!("a copy of more values than there are") };
        let to = View::new(device)?.address(DType::F32, values)?;
        self.copies.context().bind_to_thread().w()?;
        // SAFETY: both sides are long enough, as checked. The ring keeps both, and writes neither, until the event that
        // is returned was waited for.
        unsafe { result::memcpy_htod_async(to.0, from, self.copies.cu_stream()) }.w()?;
        self.event_on(&self.copies)
    }

    fn computed(&self) -> Result<CudaEvent> {
        self.event_on(&self.device.cuda_stream())
    }

    fn copies_wait(&self, event: &CudaEvent) -> Result<()> {
        self.copies.wait(event).w()
    }

    fn host_waits(&self, event: &CudaEvent) -> Result<()> {
        event.synchronize().w()
    }
}

impl Drop for PinnedCopies {
    /// Nothing is freed while it is copied.
    fn drop(&mut self) {
        let _ = self.copies.synchronize();
    }
}
