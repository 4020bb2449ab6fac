//! Signals: the units and kinds of their values, and where these come from. No other crate names units.

use std::fmt;

/// The unit of a signal's or counter's raw value.
///
/// Raw values are integers in the smallest unit of their source, so that cumulative counters are never rounded. They are
/// converted to readable units at the very end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Unit {
    /// A plain number of things.
    Count = 0,
    /// Time, in nanoseconds.
    Nanoseconds = 1,
    /// Size, in bytes.
    Bytes = 2,
    /// A share, in thousandths of a percent (100 % is 100,000).
    MilliPercent = 3,
    /// Power, in milliwatts.
    Milliwatts = 4,
    /// Energy, in millijoules.
    Millijoules = 5,
    /// Energy, in microjoules.
    Microjoules = 6,
    /// Frequency, in megahertz.
    Megahertz = 7,
    /// Temperature, in thousandths of a degree Celsius.
    MilliCelsius = 8,
    /// Data rate, in bytes per second.
    BytesPerSecond = 9,
    /// A set of flags.
    Bits = 10,
}

impl Unit {
    /// The unit with this number in the stream; [`Unit::Count`] for units of newer versions.
    pub fn from_code(code: u8) -> Self {
        match code {
            1 => Self::Nanoseconds,
            2 => Self::Bytes,
            3 => Self::MilliPercent,
            4 => Self::Milliwatts,
            5 => Self::Millijoules,
            6 => Self::Microjoules,
            7 => Self::Megahertz,
            8 => Self::MilliCelsius,
            9 => Self::BytesPerSecond,
            10 => Self::Bits,
            _ => Self::Count,
        }
    }

    /// This unit's number in the stream.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// A short symbol for tables and machine-readable output, such as `ns` or `mW`.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Count => "",
            Self::Nanoseconds => "ns",
            Self::Bytes => "B",
            Self::MilliPercent => "m%",
            Self::Milliwatts => "mW",
            Self::Millijoules => "mJ",
            Self::Microjoules => "uJ",
            Self::Megahertz => "MHz",
            Self::MilliCelsius => "m°C",
            Self::BytesPerSecond => "B/s",
            Self::Bits => "bits",
        }
    }
}

/// Whether a signal's values are meaningful by themselves or only as differences between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SignalKind {
    /// A value at an instant, such as memory in use.
    Gauge = 0,
    /// A cumulative counter, such as CPU time or energy since some start. Recorded raw.
    Counter = 1,
}

impl SignalKind {
    /// The kind with this number in the stream.
    pub fn from_code(code: u8) -> Self {
        if code == 1 { Self::Counter } else { Self::Gauge }
    }

    /// This kind's number in the stream.
    pub fn code(self) -> u8 {
        self as u8
    }
}

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
