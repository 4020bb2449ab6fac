//! The memory of a GPU: what the driver's pool, from which tensors come, and its pool of captured graphs hold for this
//! program. The peaks of both are added, so the sum is too high if one grew while the other shrank.

use std::sync::Arc;

use candle_core::Result;
use candle_core::cuda_backend::cudarc::driver::{CudaStream, result, sys};
use candle_core::cuda_backend::{CudaDevice, WrapErr};
use gnntop_probe::device::{Pool, PoolUse};
use sys::{CUgraphMem_attribute_enum as OfGraphs, CUmemPool_attribute_enum as Attribute};

use super::events::bind;

/// Keeps the memory of freed tensors for the next ones. The driver's pool would return it to the system whenever the
/// host waits for the device, which is once per step.
pub(super) fn keep_freed_memory(stream: &CudaStream) -> Result<()> {
    set(stream, Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, u64::MAX)
}

/// Where memory is and how it may be accessed, as the driver takes it: `CUmemAccessDesc`, whose fields have different
/// names in different versions of cudarc.
#[cfg(any(feature = "nccl", test))]
#[repr(C)]
struct Access {
    kind: u32,
    device: i32,
    flags: u32,
}

/// Lets those of these GPUs that can reach the memory of a stream's device use its tensors. Without this, only its own
/// device can use a pool's memory, whatever else other devices can reach.
#[cfg(any(feature = "nccl", test))]
pub(super) fn let_others_use(stream: &CudaStream, others: &[usize]) -> Result<()> {
    let (pool, own) = (pool(stream)?, stream.context().ordinal());
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
#[cfg(any(feature = "nccl", test))]
pub(crate) fn let_use(device: &CudaDevice, others: &[usize]) -> Result<()> {
    let_others_use(&device.cuda_stream(), others)
}

/// The pool of the driver that the tensors of a stream's device come from.
pub(super) struct DriverPool(pub(super) Arc<CudaStream>);

impl Pool for DriverPool {
    fn read(&mut self) -> Option<PoolUse> {
        bind(&self.0).ok()?;
        let (free, total) = result::mem_get_info().ok()?;
        let of = |pool, graphs| Some(get(&self.0, pool).ok()? + of_graphs(&self.0, graphs).ok()?);
        Some(PoolUse {
            used: of(Attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT, OfGraphs::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT)?,
            used_peak: of(Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH, OfGraphs::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)?,
            reserved: of(
                Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
                OfGraphs::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
            )?,
            reserved_peak: of(
                Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
                OfGraphs::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH,
            )?,
            free: free as u64,
            total: total as u64,
            // The driver does not count them, and candle does not report its own.
            allocations: None,
        })
    }

    fn reset_peaks(&mut self) {
        // Only 0 may be written, which means the present use. If that is refused, peaks stay those of the whole run.
        for attribute in [Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH, Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH] {
            let _ = set(&self.0, attribute, 0);
        }
        for attribute in [OfGraphs::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, OfGraphs::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH] {
            let _ = reset_of_graphs(&self.0, attribute);
        }
    }
}

fn get(stream: &CudaStream, attribute: Attribute) -> Result<u64> {
    let mut value = 0u64;
    let pool = pool(stream)?;
    // SAFETY: the pool is the open device's, and these attributes are 64-bit numbers, written during the call.
    unsafe { result::mem_pool::get_attribute(pool, attribute, std::ptr::from_mut(&mut value).cast()).w()? };
    Ok(value)
}

fn set(stream: &CudaStream, attribute: Attribute, mut value: u64) -> Result<()> {
    let pool = pool(stream)?;
    // SAFETY: as in `get`; the number is read during the call.
    unsafe { result::mem_pool::set_attribute(pool, attribute, std::ptr::from_mut(&mut value).cast()).w() }
}

/// What captured graphs hold, which is not part of the pool.
fn of_graphs(stream: &CudaStream, attribute: OfGraphs) -> Result<u64> {
    let mut value = 0u64;
    bind(stream).w()?;
    let (device, to) = (stream.context().cu_device(), std::ptr::from_mut(&mut value).cast());
    // SAFETY: the device is open, and these attributes are 64-bit numbers, written during the call.
    unsafe { sys::cuDeviceGetGraphMemAttribute(device, attribute, to) }.result().w()?;
    Ok(value)
}

fn reset_of_graphs(stream: &CudaStream, attribute: OfGraphs) -> Result<()> {
    let mut value = 0u64;
    bind(stream).w()?;
    let (device, from) = (stream.context().cu_device(), std::ptr::from_mut(&mut value).cast());
    // SAFETY: as in `of_graphs`; the number is read during the call.
    unsafe { sys::cuDeviceSetGraphMemAttribute(device, attribute, from) }.result().w()
}

fn pool(stream: &CudaStream) -> Result<sys::CUmemoryPool> {
    bind(stream).w()?;
    // SAFETY: the context is that of an open device and this thread's.
    unsafe { result::device::get_mem_pool(stream.context().cu_device()).w() }
}
