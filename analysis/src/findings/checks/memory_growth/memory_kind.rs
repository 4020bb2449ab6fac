//! The kinds of memory that may grow, and what is left of each.

use std::fmt;

use gnntop_wire::{Metric, Quantity};

use super::growth_time::{GrowthTime, STRETCHES};
use crate::store::{Bin, Store, TimeColumns};

/// The memory that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemoryKind {
    /// What the program's allocator has handed out.
    Live,
    /// What the process holds of the machine's.
    Process,
    /// What the processes of this many loader workers hold.
    Workers(usize),
    /// The machine's, of a program with this many loader workers whose own memory is not measured.
    Machine(usize),
    /// Memory in use on the GPU with this number.
    Gpu(u32),
}

impl MemoryKind {
    pub(super) fn is_gpu(self) -> bool {
        matches!(self, Self::Gpu(_))
    }

    /// The signal that shows it; `None` for the allocator's.
    fn metric(self, store: &Store) -> Option<Metric> {
        match self {
            Self::Live => None,
            Self::Process => Some(store.without_mapped_files(Quantity::ProcessRss).into()),
            Self::Workers(_) => Some(store.without_mapped_files(Quantity::ChildrenRss).into()),
            Self::Machine(_) => Some(Quantity::MachineMemoryUsed.into()),
            Self::Gpu(gpu) => Some(Quantity::GpuMemoryUsed.with_instance(gpu)),
        }
    }

    /// Whether the pages of mapped files are known and left out.
    pub(super) fn is_without_mapped_files(self, store: &Store) -> bool {
        let own = [Quantity::ProcessRssOwn, Quantity::ChildrenRssOwn];
        own.iter().any(|own| self.metric(store) == Some((*own).into()))
    }

    /// Bytes left to grow into, if known.
    pub(super) fn free(self, store: &Store) -> Option<(String, f64)> {
        let Self::Gpu(gpu) = self else {
            let free = store.hardware().reading(Quantity::MachineMemoryAvailable).ok()?;
            return Some(("the machine's free memory".to_owned(), free));
        };
        let reading = |quantity: Quantity| store.hardware().reading(quantity.with_instance(gpu)).ok();
        let free = reading(Quantity::GpuMemoryTotal)? - reading(Quantity::GpuMemoryUsed)?;
        Some((format!("GPU {gpu}'s free memory"), free))
    }

    /// The maximum before a time.
    pub(super) fn max_before(self, store: &Store, t_ns: u64) -> Option<f64> {
        let time = TimeColumns::from_edges(vec![store.first_ns()?, t_ns]);
        let most = |bins: Vec<Option<Bin>>| bins.first().copied().flatten().map(|bin| bin.max);
        match self.metric(store) {
            None => most(store.memory().live_bytes().value_columns(&time, t_ns, Some(0))),
            Some(metric) => most(store.signals().find(metric)?.series.value_columns(&time, t_ns, Some(0))),
        }
    }

    /// Lowest readings of the stretches of a time; `None` where there are too few readings.
    pub(super) fn lowest(self, store: &Store, time: &GrowthTime) -> Option<[f64; STRETCHES]> {
        match self.metric(store) {
            None => time.lowest(store.memory().live_bytes()),
            Some(metric) => time.lowest(&store.signals().find(metric)?.series),
        }
    }

    /// The single readings of a time, each with its instant.
    pub(super) fn readings(self, store: &Store, time: &GrowthTime) -> Vec<(u64, f64)> {
        match self.metric(store) {
            None => time.readings(store.memory().live_bytes()),
            Some(metric) => store.signals().find(metric).map_or_else(Vec::new, |signal| time.readings(&signal.series)),
        }
    }
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Live => f.write_str("the program's live memory"),
            Self::Process => f.write_str("the process's resident memory"),
            Self::Workers(_) => f.write_str("the memory of its loader's workers"),
            Self::Machine(_) => f.write_str("the machine's memory in use"),
            Self::Gpu(gpu) => write!(f, "GPU {gpu}'s memory in use"),
        }
    }
}
