//! Where a training computes: `--device cpu`, `cuda` or `cuda:N`.

use std::fmt;
use std::str::FromStr;

use candle_core::Device;
use gnntop_probe::{Name, counter};

use super::TrainError;

static PEAK: Name = Name::counter("GPU MiB peak");
static RESERVED: Name = Name::counter("GPU MiB held");

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

/// Memory of a GPU that this program uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceMemory {
    /// In tensors now.
    pub used_bytes: u64,
    /// In tensors, the most since it was last asked.
    pub peak_bytes: u64,
    /// Taken from the GPU, in tensors or kept for the next ones.
    pub reserved_bytes: u64,
    /// What no program has taken.
    pub free_bytes: u64,
    /// Of the GPU.
    pub total_bytes: u64,
}

const MIB: u64 = 1 << 20;

impl fmt::Display for DeviceMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [used, peak, reserved, free, total] =
            [self.used_bytes, self.peak_bytes, self.reserved_bytes, self.free_bytes, self.total_bytes]
                .map(|bytes| bytes / MIB);
        write!(
            f,
            "{used} MiB in tensors, {peak} at most in this step, {reserved} reserved; {free} of {total} MiB are free"
        )
    }
}

/// Publishes the memory that a step took, where it is a GPU's.
pub(crate) fn publish_memory(device: &Device) {
    if let Some(memory) = memory_of(device) {
        counter(&PEAK, (memory.peak_bytes / MIB) as f64);
        counter(&RESERVED, (memory.reserved_bytes / MIB) as f64);
    }
}

/// Nothing where the device is no GPU, or its driver does not say.
fn memory_of(device: &Device) -> Option<DeviceMemory> {
    #[cfg(feature = "cuda")]
    return crate::cuda::take_memory(device).ok().flatten();
    #[cfg(not(feature = "cuda"))]
    {
        let _ = device;
        None
    }
}

/// Says what memory was in use where a step failed for want of it. Other errors stay what they are.
pub(crate) fn explain(error: TrainError, device: &Device) -> TrainError {
    match error {
        TrainError::Model(reason) if is_out_of_memory(&reason) => match memory_of(device) {
            Some(memory) => TrainError::OutOfMemory { memory },
            None => TrainError::Model(reason),
        },
        other => other,
    }
}

/// The driver's and cuBLAS's words; candle hands them on as text only.
fn is_out_of_memory(error: &candle_core::Error) -> bool {
    let text = format!("{error:?}");
    text.contains("CUDA_ERROR_OUT_OF_MEMORY") || text.contains("CUBLAS_STATUS_ALLOC_FAILED")
}

impl DeviceChoice {
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
        let [used_bytes, peak_bytes, reserved_bytes, free_bytes, total_bytes] = [1, 2, 3, 4, 5].map(|n| n * MIB);
        let memory = DeviceMemory { used_bytes, peak_bytes, reserved_bytes, free_bytes, total_bytes };
        let text = TrainError::OutOfMemory { memory }.to_string();
        assert!(text.contains("1 MiB in tensors, 2 at most in this step, 3 reserved; 4 of 5 MiB"), "{text}");
    }

    #[test]
    fn a_missing_gpu_is_one_line() {
        // Where there is a GPU this number does not exist either.
        let error = DeviceChoice::Cuda(999).open().unwrap_err().to_string();
        assert!(!error.contains('\n') && !error.is_empty(), "{error}");
        assert!(DeviceChoice::Cpu.open().unwrap().is_cpu());
    }
}
