//! The checks: one file for each kind of finding.

mod after_checkpoint;
mod aliasing;
mod allocation_churn;
mod bookkeeping;
mod check;
mod contention;
mod cpu_clock;
mod data_bound;
mod debugging;
mod denormals;
mod divergence;
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
mod numa;
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
mod thread_count;
mod threads;
mod tiny_batch;
mod unnamed_validation;
mod validation;
mod warm_up;

use check::StepCheck;

use super::attribution::attribute;
use super::evidence::StepEvidence;
use super::finding::{Finding, FindingKind, Findings};

/// All checks over one session.
static ALL: [StepCheck; 38] = [
    StepCheck::new(FindingKind::Hang, hang::check),
    StepCheck::over_steps(FindingKind::Spike, spike::check).of_single_steps(),
    StepCheck::over_steps(FindingKind::PartialBatch, partial_batch::check).of_single_steps(),
    StepCheck::over_steps(FindingKind::StepKinds, step_kinds::check).of_single_steps(),
    StepCheck::over_steps(FindingKind::TinyBatch, tiny_batch::check),
    StepCheck::over_steps(FindingKind::DataBound, data_bound::check),
    StepCheck::over_steps(FindingKind::SlowStorage, slow_storage::check),
    StepCheck::over_steps(FindingKind::Gap, gap::check),
    StepCheck::over_steps(FindingKind::Stall, stall::check),
    StepCheck::over_steps(FindingKind::AfterCheckpoint, after_checkpoint::check).of_single_steps(),
    StepCheck::over_steps(FindingKind::Validation, validation::check),
    StepCheck::over_steps(FindingKind::IdlePhase, idle_phase::check),
    StepCheck::over_steps(FindingKind::Interpreter, interpreter::check),
    StepCheck::new(FindingKind::Debugging, debugging::check),
    StepCheck::over_steps(FindingKind::Recompilation, recompilation::check),
    StepCheck::over_steps(FindingKind::PageFaults, page_faults::check),
    StepCheck::over_steps(FindingKind::Denormals, denormals::check),
    StepCheck::over_steps(FindingKind::Contention, contention::check),
    StepCheck::over_steps(FindingKind::Threads, threads::check),
    StepCheck::over_steps(FindingKind::GpuIdle, gpu_idle::check),
    StepCheck::over_steps(FindingKind::HostSync, host_sync::check),
    StepCheck::over_steps(FindingKind::GpuThrottled, gpu_throttled::check),
    StepCheck::over_steps(FindingKind::CpuClock, cpu_clock::check),
    StepCheck::over_steps(FindingKind::Numa, numa::check),
    StepCheck::new(FindingKind::MemoryGrowth, memory_growth::check),
    StepCheck::over_steps(FindingKind::AllocationChurn, allocation_churn::check),
    StepCheck::over_steps(FindingKind::GpuAllocator, gpu_allocator::check),
    StepCheck::over_steps(FindingKind::WarmUp, warm_up::check).of_single_steps(),
    StepCheck::new(FindingKind::Drift, drift::check),
    StepCheck::new(FindingKind::Divergence, divergence::check),
    StepCheck::new(FindingKind::Restarts, restarts::check),
    StepCheck::new(FindingKind::SlowerSince, slower_since::check),
    StepCheck::new(FindingKind::SlowRhythm, slow_rhythm::check).of_single_steps(),
    StepCheck::over_steps(FindingKind::PhaseShift, phase_shift::check).of_single_steps(),
    StepCheck::new(FindingKind::ModelledEnergy, modelled_energy::check),
    StepCheck::new(FindingKind::DoubtfulEnergy, doubtful_energy::check),
    StepCheck::over_steps(FindingKind::Aliasing, aliasing::check),
    StepCheck::new(FindingKind::Bookkeeping, bookkeeping::check),
];

/// What all checks find, the weightiest first.
pub(super) fn findings(evidence: &StepEvidence<'_>) -> Findings {
    let left_out = if evidence.has_steps() { evidence.warm_up.len() as u64 } else { 0 };
    let mut findings = Findings { without_first: left_out, ..Findings::default() };
    ALL.iter().for_each(|check| findings.add(check.kind, check.outcome(evidence)));
    drop_spikes_of_contention(&mut findings.found);
    attribute(&mut findings.found, evidence);
    findings.sort();
    findings
}

/// Where a thread waits for a CPU, a few waits are longer than the others: spikes that cost less than this part of that are none.
const PART_OF_CONTENTION: f64 = 0.1;

fn drop_spikes_of_contention(found: &mut Vec<Finding>) {
    let contention = found.iter().filter(|finding| finding.kind == FindingKind::Contention);
    let Some(least) = contention.filter_map(|finding| finding.share).reduce(f64::max) else { return };
    found.retain(|finding| {
        finding.kind != FindingKind::Spike || finding.share.is_none_or(|share| share >= PART_OF_CONTENTION * least)
    });
}

#[cfg(test)]
mod tests {
    use super::super::finding::Confidence;
    use super::*;

    #[test]
    fn spikes_that_cost_little_beside_contention_are_part_of_it() {
        let finding = |kind, share| Finding::for_run(kind, Confidence::High, Some(share), |_| String::new());
        let left = |contention, spike| {
            let mut found = vec![finding(FindingKind::Contention, contention), finding(FindingKind::Spike, spike)];
            drop_spikes_of_contention(&mut found);
            found.len()
        };
        assert_eq!([left(0.5, 0.04), left(0.5, 0.06), left(0.1, 0.02)], [1, 2, 2]);
    }
}
