//! Where candle's tensors are on a device, and memory for new ones.

use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::cudarc::driver::DevicePtr;
use candle_core::cuda_backend::{CudaDevice, CudaStorageSlice};
use candle_core::{CudaStorage, DType, Result, bail};

use crate::cuda::kernel::Address;

/// Where a tensor begins.
pub(crate) fn address_of(storage: &CudaStorage) -> Result<Address> {
    let stream = storage.device().cuda_stream();
    macro_rules! address {
        ($($variant:ident)*) => {
            match &storage.slice {
                $(CudaStorageSlice::$variant(slice) => Ok(Address(slice.device_ptr(&stream).0)),)*
                _ => bail!("graph kernels take f32, f64, bf16, f16, u32 or i64"),
            }
        };
    }
    address!(F32 F64 BF16 F16 U32 I64)
}

/// Memory for this many elements, with unspecified contents.
pub(crate) fn allocate(device: &CudaDevice, dtype: DType, length: usize) -> Result<CudaStorage> {
    macro_rules! memory {
        ($($variant:ident $number:ty,)*) => {
            match dtype {
                // SAFETY: the contents are unspecified; the number types have no invalid bits, and the kernel
                // that the memory is for writes all of it before anything reads it.
                $(DType::$variant => CudaStorageSlice::$variant(unsafe { device.alloc::<$number>(length.max(1))? }),)*
                other => bail!("graph kernels return f32, f64, bf16, f16 or u32, not {other:?}"),
            }
        };
    }
    let slice = memory!(F32 f32, F64 f64, BF16 half::bf16, F16 half::f16, U32 u32,);
    Ok(CudaStorage { slice, device: device.clone() })
}
