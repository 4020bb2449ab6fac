//! What of memory and launches needs a build with CUDA.

use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::cudarc::driver::{DevicePtr, DeviceRepr, LaunchConfig, PushKernelArg};
use candle_core::cuda_backend::{CudaDevice, CudaStorageSlice, WrapErr};
use candle_core::{CudaStorage, DType, Result, bail};

use super::{Address, Arguments, Grid, Kernel};
use crate::device::asked_for;

/// The arguments of a kernel, to be copied into its launch.
#[repr(transparent)]
struct Plain<A>(A);

// SAFETY: `Arguments` promises a `repr(C)` struct that the kernel has the same of; the launch copies it.
unsafe impl<A: Arguments> DeviceRepr for Plain<A> {}

pub(super) fn launch<A: Arguments>(device: &CudaDevice, kernel: &Kernel, grid: Grid, arguments: &A) -> Result<()> {
    let (module, code) = kernel.module.name_and_code();
    let function = device.get_or_load_custom_func(&kernel.name, module, code)?;
    // SAFETY: `Plain` is a transparent wrapper of `A`.
    let arguments = unsafe { &*std::ptr::from_ref(arguments).cast::<Plain<A>>() };
    let mut builder = function.builder();
    builder.arg(arguments);
    let config = LaunchConfig {
        grid_dim: (grid.blocks[0], grid.blocks[1], 1),
        block_dim: (grid.threads[0], grid.threads[1], 1),
        shared_mem_bytes: 0,
    };
    // SAFETY: the kernel takes exactly this struct (`Arguments`). Its addresses come from views and memory of
    // this device that are alive now, and are freed on this stream, after the kernel; `cuda::machine` says who
    // checks their lengths.
    unsafe { builder.launch(config) }.w()?;
    Ok(())
}

pub(super) fn cuda_address(storage: &CudaStorage) -> Result<Address> {
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

pub(super) fn cuda_memory(device: &CudaDevice, dtype: DType, length: usize) -> Result<CudaStorage> {
    // Said where it fails, so that a want of memory can tell how much was wanted.
    let bytes = length.max(1) * dtype.size_in_bytes();
    let asked = |error: candle_core::Error| error.context(asked_for(bytes));
    macro_rules! memory {
        ($($variant:ident $number:ty,)*) => {
            match dtype {
                // SAFETY: the contents are unspecified; the number types have no invalid bits, and the kernel
                // that the memory is for writes all of it before anything reads it.
                $(DType::$variant => CudaStorageSlice::$variant(unsafe { device.alloc::<$number>(length.max(1)).map_err(asked)? }),)*
                other => bail!("graph kernels give f32, f64, bf16, f16 or u32, not {other:?}"),
            }
        };
    }
    let slice = memory!(F32 f32, F64 f64, BF16 half::bf16, F16 half::f16, U32 u32,);
    Ok(CudaStorage { slice, device: device.clone() })
}
