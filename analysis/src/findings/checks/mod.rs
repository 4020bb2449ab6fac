//! The checks: one file for each kind of finding.

mod aliasing;
mod allocation_churn;
mod bookkeeping;
mod contention;
mod data_bound;
mod denormals;
mod drift;
mod gap;
mod gpu_idle;
mod gpu_throttled;
mod memory_growth;
mod modelled_energy;
mod page_faults;
mod partial_batch;
mod phase_shift;
pub(super) mod spike;
mod stall;
mod warm_up;

use super::evidence::Evidence;
use super::finding::{Kind, Outcome};

/// Looks for one kind of finding.
pub(super) trait Check: Sync {
    /// What it looks for.
    fn kind(&self) -> Kind;

    /// What there is of it.
    fn look(&self, evidence: &Evidence<'_>) -> Outcome;
}

/// All checks over one session.
pub(super) static ALL: [&dyn Check; 18] = [
    &spike::Spikes,
    &partial_batch::PartialBatches,
    &data_bound::DataBound,
    &gap::Gap,
    &stall::Stalls,
    &page_faults::PageFaults,
    &denormals::Denormals,
    &contention::Contention,
    &gpu_idle::GpuIdle,
    &gpu_throttled::GpuThrottled,
    &memory_growth::MemoryGrowth,
    &allocation_churn::AllocationChurn,
    &warm_up::WarmUp,
    &drift::Drift,
    &phase_shift::PhaseShift,
    &modelled_energy::ModelledEnergy,
    &aliasing::Aliasing,
    &bookkeeping::Bookkeeping,
];

/// What is said where there are too few steps.
pub(super) fn too_few_steps(evidence: &Evidence<'_>) -> Outcome {
    Outcome::NotEnough(format!("only {} steps after the warm-up", evidence.rows.len()))
}
