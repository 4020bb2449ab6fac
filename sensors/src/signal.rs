//! Signals and their readings.

use gnntop_wire::{Metric, SignalKind, Unit};

/// The description of a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalInfo {
    /// What it measures.
    pub metric: Metric,
    /// Where the value comes from, such as `/proc/PID/stat` or `NVML power_usage`.
    pub source: &'static str,
    /// Which device it belongs to, such as `cpu 0` or `NVIDIA H200 (GPU-5a1b…)`; none for the whole machine or process.
    pub device: Option<String>,
}

impl SignalInfo {
    /// The unit of the raw value.
    pub fn unit(&self) -> Unit {
        self.metric.quantity().unit()
    }

    /// Whether the value itself counts, or only the difference between two readings.
    pub fn kind(&self) -> SignalKind {
        self.metric.quantity().kind()
    }
}

/// Index of a signal in the set that made it: dense from 0, stable for the life of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignalIndex(pub u32);

impl SignalIndex {
    pub(crate) fn slot(self) -> usize {
        self.0 as usize
    }
}

/// One result of a sampling pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The signal had this value.
    Value {
        /// Which signal.
        signal: SignalIndex,
        /// `CLOCK_MONOTONIC`, in nanoseconds, halfway through the call that read it.
        t_ns: u64,
        /// The raw value, in the signal's unit. A counter that decreased is passed on as it is.
        value: i64,
    },
    /// The signal could not be read. Reported once when it begins, and again if the reason changes.
    Absent {
        /// Which signal.
        signal: SignalIndex,
        /// `CLOCK_MONOTONIC`, in nanoseconds, of the attempt.
        t_ns: u64,
        /// The reason, for people.
        reason: String,
    },
}

impl Reading {
    /// The signal this reading is of.
    pub fn signal(&self) -> SignalIndex {
        match *self {
            Self::Value { signal, .. } | Self::Absent { signal, .. } => signal,
        }
    }
}
