//! Launches of the kernels in `workloads/nn/kernels`, whose code is part of the program.

use bytemuck::NoUninit;
use candle_core::Result;
use candle_core::cuda_backend::cudarc::driver::{DeviceRepr, LaunchConfig, PushKernelArg};
use candle_core::cuda_backend::{CudaDevice, WrapErr};

use crate::cuda::kernel::{Grid, Kernel, Module};

/// The arguments of a kernel, to be copied into its launch.
#[repr(transparent)]
struct Plain<A>(A);

// SAFETY: a launch copies the bytes, all of which are initialised (`NoUninit`).
unsafe impl<A: NoUninit> DeviceRepr for Plain<A> {}

/// Launches a kernel on the device's stream.
///
/// # Safety
/// As for [`launch`](crate::cuda::machine::launch).
pub(crate) unsafe fn launch<A: NoUninit>(
    device: &CudaDevice,
    kernel: &Kernel,
    grid: Grid,
    arguments: &A,
) -> Result<()> {
    let (module, code) = name_and_code(kernel.module);
    let function = device.get_or_load_custom_func(&kernel.name, module, code)?;
    let arguments = Plain(*arguments);
    let mut builder = function.builder();
    builder.arg(&arguments);
    let config = LaunchConfig {
        grid_dim: (grid.blocks[0], grid.blocks[1], 1),
        block_dim: (grid.threads[0], grid.threads[1], 1),
        shared_mem_bytes: 0,
    };
    // SAFETY: the kernel takes exactly this struct, as the caller vouches. What it addresses is alive now and freed on this
    // stream, after the kernel.
    unsafe { builder.launch(config) }.w()?;
    Ok(())
}

/// The name of a file of kernels as candle stores it, and its code.
fn name_and_code(module: Module) -> (&'static str, &'static str) {
    macro_rules! code {
        ($name:literal) => {
            (concat!("gnntop-", $name), include_str!(concat!(env!("OUT_DIR"), "/", $name, ".ptx")))
        };
    }
    match module {
        Module::Adam => code!("adam"),
        Module::Aggregate => code!("aggregate"),
        Module::Attention => code!("attention"),
        Module::AttentionBack => code!("attention_back"),
        Module::Elements => code!("elements"),
        Module::Gather => code!("gather"),
        Module::Images => code!("images"),
        Module::Loss => code!("loss"),
        Module::Messages => code!("messages"),
        Module::Norm => code!("norm"),
        Module::Sage => code!("sage"),
        Module::Segments => code!("segments"),
        Module::Softmax => code!("softmax"),
    }
}
