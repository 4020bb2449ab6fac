//! A device's memory in a report: by phase and by what it is for, as the program publishes it.

use serde::Serialize;

use crate::report::document::Block;
use gnntop_analysis::catalogue::{Catalogue, Statistic};
use gnntop_analysis::figures::{bytes, percent, quantity};
use gnntop_analysis::store::CounterSeries;

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
    pub(in crate::report) fn new(figures: &Catalogue<'_>) -> Option<Self> {
        let published = figures.store().device_memory()?;
        let whole = |subject, statistic| figures.subject(subject, "").whole(statistic);
        let phase = |(name, ..): &(&str, &CounterSeries, Option<&CounterSeries>)| {
            let in_tensors = figures.subject("device.memory.PHASE", name);
            DevicePhaseMemory {
                name: (*name).to_owned(),
                mean_peak_bytes: in_tensors.value(Statistic::Mean),
                peak_bytes: in_tensors.whole(Statistic::Peak).unwrap_or(0),
                reserved_peak_bytes: figures.subject("device.reserved.PHASE", name).whole(Statistic::Peak),
            }
        };
        let kind = |(name, derived, _): &(&'static str, &'static str, &CounterSeries)| {
            let of_kind = figures.subject("device.memory_of.KIND", name);
            let (bytes, peak_bytes) = (of_kind.whole(Statistic::Last), of_kind.whole(Statistic::Peak).unwrap_or(0));
            MemoryKind { name, bytes, peak_bytes, derived }
        };
        Some(Self {
            peak_bytes: whole("device.memory", Statistic::Peak),
            used_bytes: whole("device.memory", Statistic::Last),
            reserved_bytes: whole("device.reserved", Statistic::Last),
            reserved_peak_bytes: whole("device.reserved", Statistic::Peak),
            fragmentation: figures.value("device.reserved.share"),
            least_free_bytes: whole("device.free", Statistic::Min),
            total_bytes: whole("device.capacity", Statistic::Last),
            allocations_per_step: figures.value("device.allocations.mean"),
            phases: published.phases.iter().map(phase).collect(),
            kinds: published.kinds.iter().map(kind).collect(),
        })
    }

    /// The whole of it, a line each; of what is not known, nothing.
    fn facts(&self) -> [(&'static str, String); 4] {
        let size = |n: u64| bytes(n as f64);
        let joined = |parts: [Option<String>; 2]| parts.into_iter().flatten().collect::<Vec<String>>().join(", ");
        let share = self.fragmentation.map(|share| format!(", {} of it unused", percent(share))).unwrap_or_default();
        let at_most = |of: Option<u64>| of.map(|n| format!("at most {}", size(n)));
        let after = self.used_bytes.map(|n| format!("{} after a step", size(n)));
        let now = self.reserved_bytes.map(|n| format!("{} now{share}", size(n)));
        let of_all = self.total_bytes.map(|total| format!("{} in all", size(total)));
        let free = self.least_free_bytes.map(|n| format!("at least {}", size(n)));
        let count = self.allocations_per_step.map(|count| format!("{} a step", quantity(count)));
        [
            ("in tensors", joined([at_most(self.peak_bytes), after])),
            ("reserved", joined([at_most(self.reserved_peak_bytes), now])),
            if free.is_some() { ("free", joined([free, of_all])) } else { ("memory", joined([of_all, None])) },
            ("allocations", count.unwrap_or_else(|| "not counted by its pool".to_owned())),
        ]
    }

    /// By phase, with a head. What was reserved has a column where it is known.
    fn phase_rows(&self) -> Vec<Vec<String>> {
        let is_reserved_known = self.phases.iter().any(|phase| phase.reserved_peak_bytes.is_some());
        let columns = if is_reserved_known { 4 } else { 3 };
        let head = ["device memory in", "peak, mean", "peak, most", "reserved, most"].map(str::to_owned);
        let row = |phase: &DevicePhaseMemory| {
            let size = |n: Option<f64>| n.map_or_else(|| "-".to_owned(), bytes);
            let peaks =
                [phase.mean_peak_bytes, Some(phase.peak_bytes as f64), phase.reserved_peak_bytes.map(|n| n as f64)];
            std::iter::once(phase.name.clone()).chain(peaks.map(size)).take(columns).collect()
        };
        std::iter::once(head[..columns].to_vec()).chain(self.phases.iter().map(row)).collect()
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

/// The section; nothing if the program does not publish it.
pub(in crate::report) fn blocks(memory: Option<&DeviceMemory>) -> Vec<Block> {
    let Some(memory) = memory else { return Vec::new() };
    let facts = memory.facts().map(|(what, text)| vec![what.to_owned(), text]);
    let facts = std::iter::once(vec![String::new(); 2]).chain(facts).collect();
    let tables = [memory.phase_rows(), memory.kind_rows()].into_iter().filter(|rows| rows.len() > 1);
    [Block::heading("Device memory"), Block::Facts(facts)].into_iter().chain(tables.map(Block::table)).collect()
}
