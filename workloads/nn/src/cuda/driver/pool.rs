//! The driver's pool, from which tensors come: what it keeps, and who may use it.

use candle_core::Result;
use candle_core::cuda_backend::cudarc::driver::{CudaStream, DriverError, result, sys};
use candle_core::cuda_backend::{CudaDevice, WrapErr};
use sys::CUmemPool_attribute_enum as Attribute;

/// Keeps the memory of freed tensors for the next ones. The driver's pool would return it to the system whenever the
/// host waits for the device, which is once per step.
///
/// # Errors
/// The driver refuses.
pub fn keep_freed_memory(stream: &CudaStream) -> Result<()> {
    set_pool_attribute(stream, Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, u64::MAX)
}

/// Where memory is and how it may be accessed, as the driver takes it: `CUmemAccessDesc`, whose fields have different
/// names in different versions of cudarc.
#[repr(C)]
struct Access {
    kind: u32,
    device: i32,
    flags: u32,
}

/// Lets those of these GPUs that can reach the memory of a stream's device use its tensors. Without this, only its own
/// device can use a pool's memory, whatever else other devices can reach.
///
/// # Errors
/// The driver refuses.
pub fn let_others_use(stream: &CudaStream, others: &[usize]) -> Result<()> {
    let (pool, own) = (memory_pool(stream)?, stream.context().ordinal());
    for &other in others.iter().filter(|other| **other != own) {
        let device = i32::try_from(other).unwrap_or(i32::MAX);
        let peer = result::device::get(device).w()?;
        let mut can = 0;
        // SAFETY: the answer is written during the call; both devices are the driver's.
        unsafe { sys::cuDeviceCanAccessPeer(&raw mut can, peer, stream.context().cu_device()) }.result().w()?;
        if can == 0 {
            continue;
        }
        // Read and write access of a device.
        let access = Access { kind: 1, device, flags: 3 };
        // SAFETY: the pool is the open device's. The driver reads one description during the call, which has the fields of
        // `CUmemAccessDesc`: an enumeration, a number that is the device's for this kind, and an enumeration.
        unsafe { sys::cuMemPoolSetAccess(pool, (&raw const access).cast(), 1) }.result().w()?;
    }
    Ok(())
}

/// Lets the GPUs with these numbers use the tensors of a device, if they can reach them.
///
/// # Errors
/// The driver refuses.
pub(crate) fn let_use(device: &CudaDevice, others: &[usize]) -> Result<()> {
    let_others_use(&device.cuda_stream(), others)
}

/// Sets a number of the pool of a stream's device.
///
/// # Errors
/// The driver refuses.
pub fn set_pool_attribute(stream: &CudaStream, attribute: Attribute, mut value: u64) -> Result<()> {
    let pool = memory_pool(stream)?;
    // SAFETY: the pool is the open device's, and the attributes that can be set are 64-bit numbers, read during the call.
    unsafe { result::mem_pool::set_attribute(pool, attribute, std::ptr::from_mut(&mut value).cast()).w() }
}

/// The pool that the tensors of a stream's device come from.
///
/// # Errors
/// The driver refuses.
pub fn memory_pool(stream: &CudaStream) -> Result<sys::CUmemoryPool> {
    bind(stream).w()?;
    // SAFETY: the context is that of an open device and this thread's.
    unsafe { result::device::get_mem_pool(stream.context().cu_device()).w() }
}

/// Makes a stream's context the calling thread's, unless it is already.
///
/// # Errors
/// The driver refuses.
pub fn bind(stream: &CudaStream) -> std::result::Result<(), DriverError> {
    let context = stream.context().cu_ctx();
    if result::ctx::get_current()? != Some(context) {
        // SAFETY: the stream keeps its context alive.
        unsafe { result::ctx::set_current(context) }?;
    }
    Ok(())
}
