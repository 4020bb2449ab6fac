//! Adds to an error: where a GPU ran out of memory, and what holds it.

use candle_core::{Device, DeviceLocation};
use gnntop_probe::device::memory;

use super::{OutOfMemory, TrainError};
use gnntop_nn::device::asked_bytes;

/// Adds what is known about the memory if a step ran out of it. Other errors do not change.
pub(super) fn explain(error: TrainError, device: &Device) -> TrainError {
    match error {
        TrainError::Model(reason) if is_out_of_memory(&reason) => match memory() {
            Some(memory) => {
                let (device, asked_bytes) = (name_of(device), asked_bytes(&reason.to_string()));
                TrainError::OutOfMemory(Box::new(OutOfMemory { device, memory, asked_bytes }))
            }
            None => TrainError::Model(reason),
        },
        other => other,
    }
}

fn name_of(device: &Device) -> String {
    match device.location() {
        DeviceLocation::Cuda { gpu_id } => format!("cuda:{gpu_id}"),
        _ => "the device".to_owned(),
    }
}

/// The driver's and cuBLAS's messages; candle passes them on only as text.
fn is_out_of_memory(error: &candle_core::Error) -> bool {
    let text = format!("{error} {error:?}");
    text.contains("CUDA_ERROR_OUT_OF_MEMORY") || text.contains("CUBLAS_STATUS_ALLOC_FAILED")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_nn::device::asked_for;

    #[test]
    fn only_want_of_memory_is_explained() {
        let message = |text: &str| candle_core::Error::Msg(text.to_owned());
        assert!(is_out_of_memory(&message("DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")")));
        assert!(!is_out_of_memory(&message("DriverError(CUDA_ERROR_NO_DEVICE)")));
        assert!(is_out_of_memory(&message("CUDA_ERROR_OUT_OF_MEMORY").context(asked_for(4096))));
        let kept = explain(TrainError::Model(message("shape mismatch")), &Device::Cpu).with_causes();
        assert!(kept.contains("shape mismatch"));
    }
}
