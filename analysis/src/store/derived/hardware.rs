//! Hardware readings for people: percentages and bytes from raw signals, or why they are missing.

use std::fmt;

use gnntop_wire::{Metric, Quantity, Scope, SignalKind};

use crate::store::contents::Store;
use crate::store::signals::series::Point;
use crate::store::signals::signal::Signal;

/// Rates of cumulative counters are taken over at least this long, so that a counter with 10 ms ticks does not flicker.
pub const RATE_WINDOW_NS: u64 = 1_000_000_000;

/// Reasons for lower clocks that cost speed: bits of NVML's `nvmlClocksThrottleReasons` (nvml.h), in words.
/// Idle clocks (0x1), clocks set by the user (0x2), sync boost (0x10) and display clocks (0x100) are not among them.
pub const THROTTLE_REASONS: [(u64, &str); 5] = [
    (0x4, "its power limit"),
    (0x8, "a hardware slowdown"),
    (0x20, "heat (software slowdown)"),
    (0x40, "heat (hardware slowdown)"),
    (0x80, "the power supply"),
];

/// A value, or why it is missing.
pub type HardwareValue<'a> = Result<f64, Absence<'a>>;

/// Why a value is missing. Its `Display` is a reason for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence<'a> {
    /// The session has no such signal.
    NotPublished,
    /// The signal exists but has not been read yet.
    NotReadYet,
    /// The reason given by the sensor.
    Reason(&'a str),
}

impl fmt::Display for Absence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotPublished => "not recorded",
            Self::NotReadYet => "not read yet",
            Self::Reason(reason) => reason,
        })
    }
}

/// CPU use of one core or of the whole machine, as shares (0 to 1) of one core's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuUse<'a> {
    /// Time spent working.
    pub busy: HardwareValue<'a>,
    /// Time waiting for disks.
    pub iowait: HardwareValue<'a>,
    /// Time taken by the host.
    pub steal: HardwareValue<'a>,
}

/// Readings of the hardware, for screens and reports.
#[derive(Clone, Copy, Debug)]
pub struct HardwareReadings<'a> {
    store: &'a Store,
}

impl Store {
    /// Hardware readings for people.
    pub fn hardware(&self) -> HardwareReadings<'_> {
        HardwareReadings { store: self }
    }
}

impl<'a> HardwareReadings<'a> {
    /// The newest value of a signal: a gauge's raw value, a counter's increase per second, in the signal's unit.
    pub fn reading(&self, metric: impl Into<Metric>) -> HardwareValue<'a> {
        let signal = self.store.signals().find(metric).ok_or(Absence::NotPublished)?;
        self.value(signal)
    }

    /// The newest value of `signal`: a gauge's raw value, a counter's increase per second, in the signal's unit.
    pub fn value(&self, signal: &'a Signal) -> HardwareValue<'a> {
        match signal.series.last() {
            None => Err(Absence::NotReadYet),
            Some(Point::Break { reason, .. }) => Err(Absence::Reason(self.store.name(*reason))),
            Some(Point::Value { value, .. }) if signal.kind() == SignalKind::Gauge => Ok(*value as f64),
            Some(Point::Value { .. }) => signal.series.recent_rate_per_s(RATE_WINDOW_NS).ok_or(Absence::NotReadYet),
        }
    }

    /// CPU time of the process per second, in cores: 1.5 is one and a half cores.
    pub fn process_cores(&self) -> HardwareValue<'a> {
        self.reading(Quantity::ProcessCpuTime).map(|ns_per_s| ns_per_s / 1e9)
    }

    /// Whether a GPU was slowed down at its newest reading.
    pub fn is_throttled(&self, gpu: u32) -> bool {
        let costly = THROTTLE_REASONS.iter().fold(0, |all, (bit, _)| all | bit);
        self.reading(Quantity::GpuThrottle.with_instance(gpu)).is_ok_and(|bits| bits as u64 & costly != 0)
    }

    /// Resident memory of the process, in bytes.
    pub fn process_rss_bytes(&self) -> HardwareValue<'a> {
        self.reading(Quantity::ProcessRss)
    }

    /// CPU use of the machine, in cores: the sum over all of them.
    pub fn machine_cpu(&self) -> CpuUse<'a> {
        self.cpu([Quantity::MachineCpuBusy, Quantity::MachineCpuIowait, Quantity::MachineCpuSteal], 0)
    }

    /// CPU use of each core whose signals are published, by core number.
    pub fn cores(&self) -> Vec<(u32, CpuUse<'a>)> {
        let cores = self.instances(|quantity| quantity == Quantity::CoreBusy);
        let quantities = [Quantity::CoreBusy, Quantity::CoreIowait, Quantity::CoreSteal];
        cores.into_iter().map(|core| (core, self.cpu(quantities, core))).collect()
    }

    fn cpu(&self, quantities: [Quantity; 3], instance: u32) -> CpuUse<'a> {
        let share = |quantity: Quantity| self.reading(quantity.with_instance(instance)).map(|ns_per_s| ns_per_s / 1e9);
        let [busy, iowait, steal] = quantities.map(share);
        CpuUse { busy, iowait, steal }
    }

    /// The instances of which one of these quantities is published, in order.
    fn instances(&self, is_one: impl Fn(Quantity) -> bool) -> Vec<u32> {
        let metrics = self.store.signals().all().iter().filter_map(|signal| signal.metric.metric());
        let mut numbers: Vec<u32> =
            metrics.filter(|metric| is_one(metric.quantity())).map(|metric| metric.instance()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Memory in use on the machine, in bytes.
    pub fn machine_memory_used_bytes(&self) -> HardwareValue<'a> {
        self.reading(Quantity::MachineMemoryUsed)
    }

    /// Memory installed in the machine, in bytes.
    pub fn machine_memory_total_bytes(&self) -> HardwareValue<'a> {
        self.reading(Quantity::MachineMemoryTotal)
    }

    /// Numbers of the GPUs whose signals are published.
    pub fn gpus(&self) -> Vec<u32> {
        self.instances(|quantity| quantity.scope() == Scope::Gpu)
    }

    /// Why there are no GPU readings at all; `None` if there is a GPU.
    pub fn gpu_absence(&self) -> Option<Absence<'a>> {
        match self.reading(Quantity::GpuCount) {
            _ if !self.gpus().is_empty() => None,
            Ok(_) => Some(Absence::Reason("no GPU in this machine")),
            Err(absence) => Some(absence),
        }
    }
}
