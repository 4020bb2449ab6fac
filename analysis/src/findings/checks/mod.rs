//! The checks: one file for each kind of finding.

mod aliasing;
mod allocation_churn;
mod bookkeeping;
mod check;
mod contention;
mod data_bound;
mod denormals;
mod doubtful_energy;
mod drift;
mod gap;
mod gap_filling;
mod gpu_idle;
mod gpu_throttled;
mod memory_growth;
mod modelled_energy;
mod page_faults;
mod partial_batch;
mod phase_shift;
mod restarts;
mod slow_rhythm;
mod slower_since;
pub(super) mod spike;
mod stall;
mod step_kinds;
mod tiny_batch;
mod warm_up;

use check::StepCheck;

use super::attribution::attribute;
use super::evidence::StepEvidence;
use super::finding::{CheckOutcome, Findings, NotEnough};

/// All checks over one session.
static ALL: [&dyn StepCheck; 24] = [
    &spike::Spikes,
    &partial_batch::PartialBatches,
    &step_kinds::StepKinds,
    &tiny_batch::TinyBatches,
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
    &restarts::RunRestarts,
    &slower_since::SlowerSince,
    &slow_rhythm::SlowRhythm,
    &phase_shift::PhaseShift,
    &modelled_energy::ModelledEnergy,
    &doubtful_energy::DoubtfulEnergy,
    &aliasing::Aliasing,
    &bookkeeping::Bookkeeping,
];

/// What all checks find, the weightiest first.
pub(super) fn findings(evidence: &StepEvidence<'_>) -> Findings {
    let mut findings = Findings::default();
    for check in ALL {
        match check.check(evidence) {
            CheckOutcome::Found(found) => findings.found.extend(found),
            CheckOutcome::Nothing => (),
            CheckOutcome::NotEnough(reason) => findings.not_enough.push(NotEnough { kind: check.kind(), reason }),
        }
    }
    attribute(&mut findings.found, evidence);
    findings.sort();
    findings
}
