//! The checks: one file for each kind of finding.

mod after_checkpoint;
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
mod gpu_allocator;
mod gpu_idle;
mod gpu_throttled;
mod hang;
mod host_sync;
mod idle_phase;
mod interpreter;
mod memory_growth;
mod modelled_energy;
mod page_faults;
mod partial_batch;
mod phase_shift;
mod recompilation;
mod restarts;
mod slow_rhythm;
mod slow_storage;
mod slower_since;
pub(super) mod spike;
mod stall;
mod step_kinds;
mod threads;
mod tiny_batch;
mod validation;
mod warm_up;

use check::StepCheck;

use super::attribution::attribute;
use super::evidence::StepEvidence;
use super::finding::{FindingKind, Findings};

/// All checks over one session.
static ALL: [StepCheck; 34] = [
    StepCheck::new(FindingKind::Hang, hang::check),
    StepCheck::over_steps(FindingKind::Spike, spike::check),
    StepCheck::over_steps(FindingKind::PartialBatch, partial_batch::check),
    StepCheck::over_steps(FindingKind::StepKinds, step_kinds::check),
    StepCheck::over_steps(FindingKind::TinyBatch, tiny_batch::check),
    StepCheck::over_steps(FindingKind::DataBound, data_bound::check),
    StepCheck::over_steps(FindingKind::SlowStorage, slow_storage::check),
    StepCheck::over_steps(FindingKind::Gap, gap::check),
    StepCheck::over_steps(FindingKind::Stall, stall::check),
    StepCheck::over_steps(FindingKind::AfterCheckpoint, after_checkpoint::check),
    StepCheck::over_steps(FindingKind::Validation, validation::check),
    StepCheck::over_steps(FindingKind::IdlePhase, idle_phase::check),
    StepCheck::over_steps(FindingKind::Interpreter, interpreter::check),
    StepCheck::over_steps(FindingKind::Recompilation, recompilation::check),
    StepCheck::over_steps(FindingKind::PageFaults, page_faults::check),
    StepCheck::over_steps(FindingKind::Denormals, denormals::check),
    StepCheck::over_steps(FindingKind::Contention, contention::check),
    StepCheck::over_steps(FindingKind::Threads, threads::check),
    StepCheck::over_steps(FindingKind::GpuIdle, gpu_idle::check),
    StepCheck::over_steps(FindingKind::HostSync, host_sync::check),
    StepCheck::over_steps(FindingKind::GpuThrottled, gpu_throttled::check),
    StepCheck::new(FindingKind::MemoryGrowth, memory_growth::check),
    StepCheck::over_steps(FindingKind::AllocationChurn, allocation_churn::check),
    StepCheck::over_steps(FindingKind::GpuAllocator, gpu_allocator::check),
    StepCheck::over_steps(FindingKind::WarmUp, warm_up::check),
    StepCheck::new(FindingKind::Drift, drift::check),
    StepCheck::new(FindingKind::Restarts, restarts::check),
    StepCheck::new(FindingKind::SlowerSince, slower_since::check),
    StepCheck::new(FindingKind::SlowRhythm, slow_rhythm::check),
    StepCheck::over_steps(FindingKind::PhaseShift, phase_shift::check),
    StepCheck::new(FindingKind::ModelledEnergy, modelled_energy::check),
    StepCheck::new(FindingKind::DoubtfulEnergy, doubtful_energy::check),
    StepCheck::over_steps(FindingKind::Aliasing, aliasing::check),
    StepCheck::new(FindingKind::Bookkeeping, bookkeeping::check),
];

/// What all checks find, the weightiest first.
pub(super) fn findings(evidence: &StepEvidence<'_>) -> Findings {
    let mut findings = Findings::default();
    ALL.iter().for_each(|check| findings.add(check.kind, check.outcome(evidence)));
    attribute(&mut findings.found, evidence);
    findings.sort();
    findings
}
