//! The memory of a GPU: what the driver's pool, from which tensors come, and its pool of captured graphs hold for this
//! program. The peaks of both are added, so the sum is too high if one grew while the other shrank.

use std::sync::Arc;

use candle_core::Result;
use candle_core::cuda_backend::WrapErr;
use candle_core::cuda_backend::cudarc::driver::{CudaStream, result, sys};
use gnntop_nn::cuda::{bind, memory_pool, set_pool_attribute};
use gnntop_probe::device::{Pool, PoolUse};
use sys::{CUgraphMem_attribute_enum as OfGraphs, CUmemPool_attribute_enum as Attribute};

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
            let _ = set_pool_attribute(&self.0, attribute, 0);
        }
        for attribute in [OfGraphs::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, OfGraphs::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH] {
            let _ = reset_of_graphs(&self.0, attribute);
        }
    }
}

fn get(stream: &CudaStream, attribute: Attribute) -> Result<u64> {
    let mut value = 0u64;
    let pool = memory_pool(stream)?;
    // SAFETY: the pool is the open device's, and these attributes are 64-bit numbers, written during the call.
    unsafe { result::mem_pool::get_attribute(pool, attribute, std::ptr::from_mut(&mut value).cast()).w()? };
    Ok(value)
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
