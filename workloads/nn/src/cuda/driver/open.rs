//! Opens a GPU, or says in one line why not.

use candle_core::Device;
use candle_core::cuda_backend::cudarc::driver::{CudaContext, sys};
use libloading::Library;

use super::pool;
use crate::device::DeviceError;

/// The libraries that candle needs of CUDA, each with the names that are tried. candle ends the program if one is
/// missing, so they are looked for first.
const LIBRARIES: [(&str, &[&str]); 3] = [
    ("libcuda.so.1", &["libcuda.so", "libcuda.so.1"]),
    ("libcublas.so.13", &["libcublas.so", "libcublas.so.13", "libcublas.so.12"]),
    ("libcurand.so.10", &["libcurand.so", "libcurand.so.10"]),
];

/// GPUs that the driver finds.
///
/// # Errors
/// A library or the driver is missing, or the driver refuses.
pub fn count() -> std::result::Result<usize, DeviceError> {
    for (number, (library, names)) in LIBRARIES.into_iter().enumerate() {
        if !names.iter().any(|name| can_be_loaded(name)) {
            return Err(DeviceError::NoLibrary { library, driver: number == 0 });
        }
    }
    match CudaContext::device_count() {
        Ok(count) => Ok(usize::try_from(count).unwrap_or(0)),
        Err(error) if error.0 == sys::CUresult::CUDA_ERROR_NO_DEVICE => Ok(0),
        Err(error) => Err(DeviceError::Refused { ordinal: 0, reason: one_line(&error) }),
    }
}

/// Opens the GPU of this number.
///
/// # Errors
/// A library, the driver or the GPU is missing, or the driver refuses.
pub fn open(ordinal: usize) -> std::result::Result<Device, DeviceError> {
    let refused = |error: &dyn std::fmt::Debug| DeviceError::Refused { ordinal, reason: one_line(error) };
    let count = count().map_err(|error| match error {
        DeviceError::Refused { reason, .. } => DeviceError::Refused { ordinal, reason },
        other => other,
    })?;
    if ordinal >= count {
        return Err(DeviceError::NoSuchDevice { ordinal, count });
    }
    let device = Device::new_cuda_with_stream(ordinal).map_err(|error| refused(&error))?;
    let cuda = device.as_cuda_device().map_err(|error| refused(&error))?;
    // SAFETY: everything runs on the device's one stream, in the order of submission, so no event is needed to order a
    // use after a copy or a free after a use.
    unsafe { cuda.disable_event_tracking() };
    pool::keep_freed_memory(&cuda.cuda_stream()).map_err(|error| refused(&error))?;
    Ok(device)
}

/// The message of a driver error, in one line.
pub fn one_line(error: &dyn std::fmt::Debug) -> String {
    format!("{error:?}").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether the loader finds a library. It stays loaded for use.
fn can_be_loaded(name: &str) -> bool {
    // SAFETY: CUDA's libraries may be loaded on any thread.
    unsafe { Library::new(name) }.map(std::mem::forget).is_ok()
}

/// Whether a GPU may multiply matrices of f32 with 10 bits of mantissa instead of 23.
pub fn allow_tf32(allowed: bool) {
    candle_core::cuda_backend::set_gemm_reduced_precision_f32(allowed);
}
