//! Memory in a report: totals by phase, as the program's allocator reports them.

use serde::Serialize;

use super::device_memory::DeviceMemory;
use crate::report::document::Block;
use gnntop_analysis::figures::{bytes, count};
use gnntop_analysis::store::Store;

/// Memory, as the program's allocator reports it, empty if it does not count; and that of its device.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Memory {
    /// The most bytes that were live in the whole process.
    pub peak_live_bytes: Option<u64>,
    /// Bytes live at the end.
    pub last_live_bytes: Option<u64>,
    /// Single allocations and releases at or above the program's threshold.
    pub large_allocations: u64,
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
    pub(in crate::report) fn new(store: &Store) -> Self {
        let memory = store.memory();
        let line = |phase: &gnntop_wire::PhaseMemory| PhaseMemory {
            name: phase_name(store, phase.phase),
            allocated_bytes: phase.allocated_bytes,
            allocations: phase.allocated_count,
            freed_bytes: phase.freed_bytes,
            releases: phase.freed_count,
            peak_live_bytes: phase.peak_bytes,
        };
        let mut phases: Vec<PhaseMemory> = memory.phases().iter().map(line).collect();
        phases.sort_by_key(|phase| std::cmp::Reverse(phase.allocated_bytes));
        Self {
            peak_live_bytes: memory.peak_bytes(),
            last_live_bytes: memory.live_bytes().last().and_then(|point| point.value()).map(|bytes| bytes as u64),
            large_allocations: memory.allocation_count(),
            phases,
            device: DeviceMemory::new(store),
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

fn phase_name(store: &Store, name: gnntop_wire::NameId) -> String {
    if name == gnntop_wire::NameId::NONE { "outside phases".to_owned() } else { store.name(name).to_owned() }
}
