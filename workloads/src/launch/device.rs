//! Where a training computes: `--device cpu`, `cuda` or `cuda:N`.

use std::fmt;
use std::str::FromStr;

use candle_core::Device;

use crate::train::InvalidOption;
use gnntop_nn::cuda;
use gnntop_nn::device::DeviceError;

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
    type Err = InvalidOption;

    fn from_str(text: &str) -> Result<Self, InvalidOption> {
        let ordinal = match text {
            "cpu" => return Ok(Self::Cpu),
            "cuda" => Some(0),
            other => other.strip_prefix("cuda:").and_then(|ordinal| ordinal.parse().ok()),
        };
        ordinal.map(Self::Cuda).ok_or_else(|| InvalidOption("must be cpu, cuda or cuda:N".to_owned()))
    }
}

impl DeviceChoice {
    /// GPUs that the driver finds.
    ///
    /// # Errors
    /// The program has no CUDA, or the driver or a library is missing.
    pub fn gpus() -> Result<usize, DeviceError> {
        cuda::count()
    }

    /// Whether it is a GPU.
    #[must_use]
    pub fn is_cuda(self) -> bool {
        matches!(self, Self::Cuda(_))
    }

    /// Opens the device: a GPU with its own stream, which all host threads share in order, and with its memory kept
    /// from step to step.
    ///
    /// # Errors
    /// The program has no CUDA, or the GPU, its driver or a library is missing.
    pub fn open(self) -> Result<Device, DeviceError> {
        match self {
            Self::Cpu => Ok(Device::Cpu),
            Self::Cuda(ordinal) => cuda::open(ordinal),
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
    fn a_missing_gpu_is_one_line() {
        // On a machine with a GPU, this number does not exist either.
        let error = DeviceChoice::Cuda(999).open().unwrap_err().to_string();
        assert!(!error.contains('\n') && !error.is_empty(), "{error}");
        assert!(DeviceChoice::Cpu.open().unwrap().is_cpu());
    }
}
