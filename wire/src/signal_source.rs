//! Where the readings of a signal come from.

use std::fmt;

/// Where the readings of a signal come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignalSource {
    /// A sensor, by name, such as `/proc/stat` or `RAPL powercap`.
    Sensor(String),
    /// A column of an imported table, by name. It has a value for each step; tables do not say whether that is a mean or
    /// the last of several readings.
    Column(String),
    /// The kernels of an imported trace: one value for each step, covering all of it.
    Kernels,
}

impl SignalSource {
    /// The source with this number in the stream; a sensor for those of newer versions.
    pub(crate) fn from_code(code: u64, name: String) -> Self {
        match code {
            1 => Self::Column(name),
            2 => Self::Kernels,
            _ => Self::Sensor(name),
        }
    }

    /// This source's number in the stream, and its name, empty for kernels.
    pub(crate) fn code(&self) -> (u64, &str) {
        match self {
            Self::Sensor(name) => (0, name),
            Self::Column(name) => (1, name),
            Self::Kernels => (2, ""),
        }
    }

    /// Whether it was read at its own instants, as by sensors: a mean depends on where these are in a step.
    pub fn is_sampled(&self) -> bool {
        matches!(self, Self::Sensor(_))
    }
}

impl fmt::Display for SignalSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sensor(name) => f.write_str(name),
            Self::Column(name) => write!(f, "column {name}"),
            Self::Kernels => f.write_str("kernels of the trace"),
        }
    }
}
