//! A device's stream and a tensor on it, as NVIDIA's libraries take them.

use std::ffi::c_void;
use std::marker::PhantomData;

use candle_core::{DType, Device, Result, Tensor, bail};

use super::driver;
use super::machine::View;

/// The f32 values of a contiguous tensor and the stream that all work of its device is on.
#[derive(Debug)]
pub struct OnStream<'a> {
    address: *mut c_void,
    count: usize,
    stream: *mut c_void,
    tensor: PhantomData<&'a Tensor>,
}

impl<'a> OnStream<'a> {
    /// Also makes the tensor's device the calling thread's. Work on its stream may write the tensor's memory: it is the
    /// device's, and no reference of the host points to it.
    ///
    /// # Errors
    /// The tensor is not f32, not contiguous or not on a device with streams.
    pub fn new(tensor: &'a Tensor) -> Result<Self> {
        let (count, stream) = (tensor.elem_count(), stream_of(tensor.device())?);
        let address = View::new(tensor)?.address(DType::F32, count)?;
        Ok(Self { address: address.0 as *mut c_void, count, stream, tensor: PhantomData })
    }

    /// Address of the values: device memory, valid for as long as work on the stream uses it, since it is freed in the
    /// stream's order.
    pub fn address(&self) -> *mut c_void {
        self.address
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The stream.
    pub fn stream(&self) -> *mut c_void {
        self.stream
    }
}

/// Lets the GPUs with these numbers use the tensors of a device, if they can reach them.
///
/// # Errors
/// The driver refuses.
pub fn let_use(device: &Device, others: &[usize]) -> Result<()> {
    match device {
        Device::Cuda(device) => driver::let_use(device, others),
        // The host's memory is shared by all.
        _ => Ok(()),
    }
}

fn stream_of(device: &Device) -> Result<*mut c_void> {
    match device {
        Device::Cuda(device) => driver::stream_of(device),
        // Tests have a library that works on the host's memory, at once.
        #[cfg(any(test, feature = "emulation"))]
        Device::Cpu => Ok(std::ptr::null_mut()),
        _ => bail!("ranks join tensors on CUDA devices; move them there"),
    }
}
