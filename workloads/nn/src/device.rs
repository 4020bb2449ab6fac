//! Errors of GPUs, and how a failed allocation states its size: shared by the code that opens and fills GPUs and the
//! code that explains their errors.

/// Why a GPU cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The program was compiled without the feature `cuda`.
    #[error("this program was built without CUDA; see docs/cuda.md for a build with CUDA")]
    NotBuilt,
    /// A library is missing.
    #[error("{library} cannot be loaded: {}", if *.driver { "no NVIDIA driver found" } else {
        "install the CUDA libraries, or add their folder to LD_LIBRARY_PATH"
    })]
    NoLibrary {
        /// Its name.
        library: &'static str,
        /// Whether it is the driver's.
        driver: bool,
    },
    /// There are fewer GPUs.
    #[error("there is no cuda:{ordinal}: the driver finds {count} GPUs")]
    NoSuchDevice {
        /// The number asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// The driver refuses to open the GPU.
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

/// How many bytes a failed allocation asked for, if it was one of ours: its error contains [`asked_for`].
pub fn asked_bytes(error: &str) -> Option<u64> {
    let (_, after) = error.split_once(ASKED)?;
    after.split_whitespace().next()?.parse().ok()
}

const ASKED: &str = "asked for ";

/// The phrase by which an allocation's error states its size.
pub fn asked_for(bytes: usize) -> String {
    format!("{ASKED}{bytes} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_can_be_read_again() {
        let error = candle_core::Error::Msg("CUDA_ERROR_OUT_OF_MEMORY".to_owned()).context(asked_for(4096));
        assert_eq!((asked_bytes(&error.to_string()), asked_bytes("out of memory")), (Some(4096), None));
    }
}
