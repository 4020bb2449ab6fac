//! A device's memory in a report: by phase and by what it is for, as the program publishes it.

use serde::Serialize;

use crate::report::document::Block;
use gnntop_analysis::figures::{bytes, percent, quantity};
use gnntop_analysis::store::{CounterSeries, Store};

/// A device's memory, in bytes. What the program does not report is `null`.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceMemory {
    /// In tensors, the most in the whole session.
    pub peak_bytes: Option<u64>,
    /// In tensors, when the last measured step ended.
    pub used_bytes: Option<u64>,
    /// Taken from the device then.
    pub reserved_bytes: Option<u64>,
    /// Taken from the device, the most in the whole session.
    pub reserved_peak_bytes: Option<u64>,
    /// Share (0 to 1) of what was reserved then that no tensor used.
    pub fragmentation: Option<f64>,
    /// What no program had taken, the least at the ends of measured steps.
    pub least_free_bytes: Option<u64>,
    /// Of the device.
    pub total_bytes: Option<u64>,
    /// Allocations in a measured step, on average.
    pub allocations_per_step: Option<f64>,
    /// By phase, in the order of appearance.
    pub phases: Vec<DevicePhaseMemory>,
    /// By what it is for.
    pub kinds: Vec<MemoryKind>,
}

/// A device's memory in one phase, over the steps in which it was measured.
#[derive(Clone, Debug, Serialize)]
pub struct DevicePhaseMemory {
    /// The phase's name.
    pub name: String,
    /// In tensors while it ran, the most on average.
    pub mean_peak_bytes: Option<f64>,
    /// In tensors while it ran, the most.
    pub peak_bytes: u64,
    /// Reserved while it ran, the most.
    pub reserved_peak_bytes: Option<u64>,
}

/// What memory is for.
#[derive(Clone, Debug, Serialize)]
pub struct MemoryKind {
    /// Parameters, gradients, optimizer state, batch, activations or workspace.
    pub name: &'static str,
    /// In the last measured step.
    pub bytes: Option<u64>,
    /// The most in any measured step.
    pub peak_bytes: u64,
    /// How the figure comes about.
    pub derived: &'static str,
}

impl DeviceMemory {
    /// `None` if the program does not publish it.
    pub(in crate::report) fn new(store: &Store) -> Option<Self> {
        let memory = store.device_memory()?;
        let last = |counter: Option<&CounterSeries>| whole(counter?.last()?);
        let most = |counter: Option<&CounterSeries>| whole(counter?.series.summary().max);
        let phase = |(name, peak, reserved): &(&str, &CounterSeries, Option<&CounterSeries>)| DevicePhaseMemory {
            name: (*name).to_owned(),
            mean_peak_bytes: peak.series.summary().mean(),
            peak_bytes: most(Some(peak)).unwrap_or(0),
            reserved_peak_bytes: most(*reserved),
        };
        let kind = |(name, derived, counter): &(&'static str, &'static str, &CounterSeries)| MemoryKind {
            name,
            bytes: last(Some(counter)),
            peak_bytes: most(Some(counter)).unwrap_or(0),
            derived,
        };
        Some(Self {
            peak_bytes: most(memory.peak),
            used_bytes: last(memory.used),
            reserved_bytes: last(memory.reserved),
            reserved_peak_bytes: most(memory.reserved_peak),
            fragmentation: memory.fragmentation(),
            least_free_bytes: memory.free.and_then(|free| whole(free.series.summary().min)),
            total_bytes: last(memory.total),
            allocations_per_step: memory.allocations.and_then(|counter| counter.series.summary().mean()),
            phases: memory.phases.iter().map(phase).collect(),
            kinds: memory.kinds.iter().map(kind).collect(),
        })
    }

    /// The whole of it, a line each.
    fn facts(&self) -> [(&'static str, String); 4] {
        let size = |of: Option<u64>| of.map_or_else(|| "-".to_owned(), |n| bytes(n as f64));
        let of_total = self.total_bytes.map(|total| format!(" of {}", bytes(total as f64))).unwrap_or_default();
        let share = self.fragmentation.map(|share| format!(", {} of it unused", percent(share))).unwrap_or_default();
        let count = |count: f64| quantity(count);
        [
            ("in tensors", format!("at most {}, {} after a step", size(self.peak_bytes), size(self.used_bytes))),
            (
                "reserved",
                format!("at most {}, {} now{share}", size(self.reserved_peak_bytes), size(self.reserved_bytes)),
            ),
            ("free", format!("at least {}{of_total}", size(self.least_free_bytes))),
            ("allocations", self.allocations_per_step.map_or_else(|| "not counted by its pool".to_owned(), count)),
        ]
    }

    /// By phase, with a head.
    fn phase_rows(&self) -> Vec<Vec<String>> {
        let head = ["device memory in", "peak, mean", "peak, most", "reserved, most"].map(str::to_owned);
        let row = |phase: &DevicePhaseMemory| {
            let size = |n: Option<f64>| n.map_or_else(|| "-".to_owned(), bytes);
            let peaks =
                [phase.mean_peak_bytes, Some(phase.peak_bytes as f64), phase.reserved_peak_bytes.map(|n| n as f64)];
            std::iter::once(phase.name.clone()).chain(peaks.map(size)).collect()
        };
        std::iter::once(head.into()).chain(self.phases.iter().map(row)).collect()
    }

    /// By what it is for, with a head.
    fn kind_rows(&self) -> Vec<Vec<String>> {
        let head = ["device memory of", "last", "most"].map(str::to_owned);
        let row = |kind: &MemoryKind| {
            let last = kind.bytes.map_or_else(|| "-".to_owned(), |n| bytes(n as f64));
            vec![kind.name.to_owned(), last, bytes(kind.peak_bytes as f64)]
        };
        std::iter::once(head.into()).chain(self.kinds.iter().map(row)).collect()
    }
}

/// A counter's value as a number of bytes; `None` if it is not one.
fn whole(value: f64) -> Option<u64> {
    (value.is_finite() && value >= 0.0).then_some(value as u64)
}

/// The section; nothing if the program does not publish it.
pub(in crate::report) fn blocks(memory: Option<&DeviceMemory>) -> Vec<Block> {
    let Some(memory) = memory else { return Vec::new() };
    let facts = memory.facts().map(|(what, text)| vec![what.to_owned(), text]);
    let facts = std::iter::once(vec![String::new(); 2]).chain(facts).collect();
    let tables = [memory.phase_rows(), memory.kind_rows()].into_iter().filter(|rows| rows.len() > 1);
    [Block::heading("Device memory"), Block::Facts(facts)].into_iter().chain(tables.map(Block::table)).collect()
}
