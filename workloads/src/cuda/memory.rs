//! The memory of a GPU: what the driver's pool, from which all tensors come, holds for this program.

use candle_core::cuda_backend::cudarc::driver::{result, sys};
use candle_core::cuda_backend::{CudaDevice, WrapErr};
use candle_core::{Device, Result};
use sys::CUmemPool_attribute_enum as Attribute;

use crate::command::DeviceMemory;

/// Keeps memory that tensors give back for the next ones. The driver's pool would give it back to the system whenever
/// the host waits for the device, which is once a step.
pub(super) fn keep_freed_memory(device: &CudaDevice) -> Result<()> {
    set(device, Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, u64::MAX)
}

/// What is in use now, and the most since the last call; nothing where the device is no GPU.
///
/// # Errors
/// The driver refuses.
pub(crate) fn take_memory(device: &Device) -> Result<Option<DeviceMemory>> {
    let Device::Cuda(device) = device else { return Ok(None) };
    let (free_bytes, total_bytes) = device.cuda_stream().context().mem_get_info().w()?;
    let memory = DeviceMemory {
        used_bytes: get(device, Attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?,
        peak_bytes: get(device, Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH)?,
        reserved_bytes: get(device, Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?,
        free_bytes: free_bytes as u64,
        total_bytes: total_bytes as u64,
    };
    // Only 0 may be written, which means the present use.
    set(device, Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0)?;
    Ok(Some(memory))
}

fn get(device: &CudaDevice, attribute: Attribute) -> Result<u64> {
    let mut value = 0u64;
    let pool = pool(device)?;
    // SAFETY: the pool is the open device's, and these attributes are 64-bit numbers, written during the call.
    unsafe { result::mem_pool::get_attribute(pool, attribute, std::ptr::from_mut(&mut value).cast()).w()? };
    Ok(value)
}

fn set(device: &CudaDevice, attribute: Attribute, mut value: u64) -> Result<()> {
    let pool = pool(device)?;
    // SAFETY: as in `get`; the number is read during the call.
    unsafe { result::mem_pool::set_attribute(pool, attribute, std::ptr::from_mut(&mut value).cast()).w() }
}

fn pool(device: &CudaDevice) -> Result<sys::CUmemoryPool> {
    let stream = device.cuda_stream();
    let context = stream.context();
    context.bind_to_thread().w()?;
    // SAFETY: the context is that of an open device and this thread's.
    unsafe { result::device::get_mem_pool(context.cu_device()).w() }
}
