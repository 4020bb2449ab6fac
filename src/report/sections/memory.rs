//! Memory in a report: totals by phase, as the program's allocator reports them.

use serde::Serialize;

use super::device_memory::DeviceMemory;
use crate::report::document::Block;
use gnntop_analysis::catalogue::{Catalogue, Statistic};
use gnntop_analysis::figures::{bytes, count};

/// Memory, as the program's allocator reports it, empty if it does not count; and that of its device.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Memory {
    /// The most bytes that were live in the whole process.
    pub peak_live_bytes: Option<u64>,
    /// Bytes live at the end.
    pub last_live_bytes: Option<u64>,
    /// Single allocations and releases at or above the program's threshold.
    pub large_allocations: Option<u64>,
    /// Totals by phase, the largest first.
    pub phases: Vec<PhaseMemory>,
    /// The memory of the program's device; `null` if it is not published.
    pub device: Option<DeviceMemory>,
}

/// A phase's totals over all threads since the start of the session.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PhaseMemory {
    /// The phase's name.
    pub name: String,
    /// Bytes allocated.
    pub allocated_bytes: u64,
    /// Allocations.
    pub allocations: u64,
    /// Bytes released.
    pub freed_bytes: u64,
    /// Releases.
    pub releases: u64,
    /// Most bytes live in the whole process while any thread was in the phase.
    pub peak_live_bytes: u64,
}

impl Memory {
    pub(in crate::report) fn new(figures: &Catalogue<'_>) -> Self {
        let line = |name: &str| {
            let whole = |subject, statistic| figures.subject(subject, name).whole(statistic).unwrap_or(0);
            PhaseMemory {
                name: name.to_owned(),
                allocated_bytes: whole("allocated.PHASE", Statistic::Total),
                allocations: whole("allocated.PHASE", Statistic::Count),
                freed_bytes: whole("freed.PHASE", Statistic::Total),
                releases: whole("freed.PHASE", Statistic::Count),
                peak_live_bytes: whole("heap.PHASE", Statistic::Peak),
            }
        };
        let mut phases: Vec<PhaseMemory> = figures.store().heap_phases().map(line).collect();
        phases.sort_by_key(|phase| std::cmp::Reverse(phase.allocated_bytes));
        let heap = figures.subject("heap", "");
        Self {
            peak_live_bytes: heap.whole(Statistic::Peak),
            last_live_bytes: heap.whole(Statistic::Last),
            large_allocations: figures.subject("heap.large", "").whole(Statistic::Count),
            phases,
            device: DeviceMemory::new(figures),
        }
    }
}

/// The section by phase; nothing if the program does not count its allocations.
pub(in crate::report) fn blocks(memory: &Memory) -> Vec<Block> {
    if memory.phases.is_empty() {
        return Vec::new();
    }
    let head = ["memory", "allocated", "allocations", "freed", "releases", "peak live"].map(str::to_owned).to_vec();
    let row = |phase: &PhaseMemory| {
        vec![
            phase.name.clone(),
            bytes(phase.allocated_bytes as f64),
            count(phase.allocations),
            bytes(phase.freed_bytes as f64),
            count(phase.releases),
            bytes(phase.peak_live_bytes as f64),
        ]
    };
    let rows = std::iter::once(head).chain(memory.phases.iter().map(row)).collect();
    vec![Block::heading("Memory by phase"), Block::table(rows)]
}
