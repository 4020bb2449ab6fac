//! Memory of the observed program, as its allocator tells it: totals by phase, live bytes over time, and
//! the most recent large allocations.

use std::collections::VecDeque;

use gnntop_wire::{Allocation, NameId, PhaseMemory};

use super::series::Series;

/// Phases whose totals are kept apart.
const MAX_PHASES: usize = 256;

/// What the program's allocator told.
#[derive(Clone, Debug)]
pub struct Memory {
    phases: Vec<PhaseMemory>,
    live_bytes: Series<f64>,
    allocations: VecDeque<Allocation>,
    allocation_count: u64,
    allocations_kept: usize,
    points: usize,
}

impl Memory {
    pub(super) fn new(allocations_kept: usize, points: usize) -> Self {
        Self {
            phases: Vec::new(),
            live_bytes: Series::new(),
            allocations: VecDeque::new(),
            allocation_count: 0,
            allocations_kept: allocations_kept.max(1),
            points,
        }
    }

    /// The newest totals of each phase, in the order in which they appeared; [`NameId::NONE`] stands for what
    /// lies outside every phase. Empty where the program does not count its allocations.
    pub fn phases(&self) -> &[PhaseMemory] {
        &self.phases
    }

    /// Bytes live in the whole process over time.
    pub fn live_bytes(&self) -> &Series<f64> {
        &self.live_bytes
    }

    /// The most bytes that were live in the whole process; `None` where the program does not tell.
    pub fn peak_bytes(&self) -> Option<u64> {
        self.phases.iter().map(|phase| phase.peak_bytes).max()
    }

    /// The most recent single allocations and releases at or above the program's threshold, oldest first.
    pub fn allocations(&self) -> impl DoubleEndedIterator<Item = &Allocation> + ExactSizeIterator {
        self.allocations.iter()
    }

    /// All such allocations and releases so far, kept or not.
    pub fn allocation_count(&self) -> u64 {
        self.allocation_count
    }

    /// The newest totals of one phase.
    pub fn phase(&self, name: NameId) -> Option<&PhaseMemory> {
        self.phases.iter().find(|phase| phase.phase == name)
    }

    pub(super) fn add_allocation(&mut self, allocation: Allocation) {
        self.allocation_count += 1;
        if self.allocations.len() >= self.allocations_kept {
            self.allocations.pop_front();
        }
        self.allocations.push_back(allocation);
    }

    /// Takes a phase's totals; `false` when there is no room for one more phase.
    pub(super) fn add_phase(&mut self, memory: PhaseMemory) -> bool {
        // All phases are read at once; one point a reading is enough.
        if self.live_bytes.last().is_none_or(|last| last.t_ns() != memory.t_ns) {
            self.live_bytes.push(memory.t_ns, memory.live_bytes as f64, self.points);
        }
        if let Some(known) = self.phases.iter_mut().find(|known| known.phase == memory.phase) {
            *known = memory;
        } else if self.phases.len() < MAX_PHASES {
            self.phases.push(memory);
        } else {
            return false;
        }
        true
    }
}
