//! Where a training computes: `--device cpu`, `cuda` or `cuda:N`.

use std::fmt;
use std::str::FromStr;

use candle_core::{Device, DeviceLocation};
use gnntop_probe::device::memory;

use super::{OutOfMemory, TrainError};

/// A device by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The processor.
    #[default]
    Cpu,
    /// The NVIDIA GPU of this number, as the driver counts them.
    Cuda(usize),
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ordinal = match text {
            "cpu" => return Ok(Self::Cpu),
            "cuda" => Some(0),
            other => other.strip_prefix("cuda:").and_then(|ordinal| ordinal.parse().ok()),
        };
        ordinal.map(Self::Cuda).ok_or_else(|| "must be cpu, cuda or cuda:N".to_owned())
    }
}

/// Why a GPU cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The program was compiled without the feature `cuda`.
    #[error("this program was built without CUDA; docs/cuda.md says how to build it with it")]
    NotBuilt,
    /// A library is missing.
    #[error("{library} cannot be loaded: {}", if *.driver { "there is no NVIDIA driver here" } else {
        "install CUDA's libraries, or name their folder in LD_LIBRARY_PATH"
    })]
    NoLibrary {
        /// Its name.
        library: &'static str,
        /// Whether it is the driver's.
        driver: bool,
    },
    /// There are not so many GPUs.
    #[error("there is no cuda:{ordinal}: the driver finds {count} GPUs")]
    NoSuchDevice {
        /// The number asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// The driver refuses.
    #[error("cuda:{ordinal} cannot be used: {reason}")]
    Refused {
        /// The number asked for.
        ordinal: usize,
        /// The driver's words.
        reason: String,
    },
    /// Options that only a GPU has.
    #[error("{0}")]
    Unsupported(&'static str),
}

/// Says what is known of the memory where a step failed for want of it. Other errors stay what they are.
pub(crate) fn explain(error: TrainError, device: &Device) -> TrainError {
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
        DeviceLocation::Cuda { gpu_id } => DeviceChoice::Cuda(gpu_id).to_string(),
        _ => "the device".to_owned(),
    }
}

/// The driver's and cuBLAS's words; candle hands them on as text only.
fn is_out_of_memory(error: &candle_core::Error) -> bool {
    let text = format!("{error} {error:?}");
    text.contains("CUDA_ERROR_OUT_OF_MEMORY") || text.contains("CUBLAS_STATUS_ALLOC_FAILED")
}

/// What an allocation that failed had asked for, where it was one of ours: [`asked_for`] is in its error.
fn asked_bytes(error: &str) -> Option<u64> {
    let (_, after) = error.split_once(ASKED)?;
    after.split_whitespace().next()?.parse().ok()
}

const ASKED: &str = "asked for ";

/// The words by which an allocation's error says how much it was.
#[cfg(any(feature = "cuda", test))]
pub(crate) fn asked_for(bytes: usize) -> String {
    format!("{ASKED}{bytes} bytes")
}

impl DeviceChoice {
    /// GPUs that the driver finds.
    ///
    /// # Errors
    /// The program has no CUDA, or the driver or a library is missing.
    pub fn gpus() -> Result<usize, DeviceError> {
        #[cfg(feature = "cuda")]
        return crate::cuda::count();
        #[cfg(not(feature = "cuda"))]
        Err(DeviceError::NotBuilt)
    }

    /// Whether it is a GPU.
    #[must_use]
    pub fn is_cuda(self) -> bool {
        matches!(self, Self::Cuda(_))
    }

    /// Opens the device: a GPU with one stream of its own, which all host threads share in order, and with its memory
    /// kept from step to step.
    ///
    /// # Errors
    /// The program has no CUDA, or the GPU, its driver or a library is missing.
    pub fn open(self) -> Result<Device, DeviceError> {
        match self {
            Self::Cpu => Ok(Device::Cpu),
            #[cfg(feature = "cuda")]
            Self::Cuda(ordinal) => crate::cuda::open(ordinal),
            #[cfg(not(feature = "cuda"))]
            Self::Cuda(_) => Err(DeviceError::NotBuilt),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for (text, device) in
            [("cpu", DeviceChoice::Cpu), ("cuda:0", DeviceChoice::Cuda(0)), ("cuda:11", DeviceChoice::Cuda(11))]
        {
            assert_eq!(text.parse(), Ok(device));
            assert_eq!(device.to_string(), text);
        }
        assert_eq!("cuda".parse(), Ok(DeviceChoice::Cuda(0)));
        for text in ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "CPU"] {
            assert!(text.parse::<DeviceChoice>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_want_of_memory_is_explained() {
        let message = |text: &str| candle_core::Error::Msg(text.to_owned());
        assert!(is_out_of_memory(&message("DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")")));
        assert!(!is_out_of_memory(&message("DriverError(CUDA_ERROR_NO_DEVICE)")));
        let kept = explain(TrainError::Model(message("shape mismatch")), &Device::Cpu).to_string();
        assert!(kept.contains("shape mismatch"));
        let error = message("CUDA_ERROR_OUT_OF_MEMORY").context(asked_for(4096));
        assert!(is_out_of_memory(&error));
        assert_eq!((asked_bytes(&error.to_string()), asked_bytes("out of memory")), (Some(4096), None));
    }

    #[test]
    fn a_missing_gpu_is_one_line() {
        // Where there is a GPU this number does not exist either.
        let error = DeviceChoice::Cuda(999).open().unwrap_err().to_string();
        assert!(!error.contains('\n') && !error.is_empty(), "{error}");
        assert!(DeviceChoice::Cpu.open().unwrap().is_cpu());
    }
}
