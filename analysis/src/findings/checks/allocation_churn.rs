//! Allocation churn: memory that every step takes from the system and gives back, at a cost in the kernel.

use gnntop_wire::Quantity;

use crate::figures::duration;
use crate::findings::claim::Claim;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::hardware;
use crate::findings::number::Number;

/// With at least this many page faults in a usual step, every step takes memory from the system.
const FAULTS: f64 = 500.0;
/// CPU time in the kernel is read rarely: over a shorter time it shows chance and the program's start.
const LEAST_NS: u64 = 2_000_000_000;
/// The most that taking, clearing and giving back a page costs. It takes 1.7 to 2.4 us on a virtual machine of two cores, and
/// less on others. A kernel that takes more does something else most of the time, such as starting processes, and the faults
/// may be a part of that: pages are copied after a fork.
pub(super) const MOST_PER_FAULT_NS: f64 = 5e3;
/// The most that it was measured to cost. What the kernel takes beyond that, such as for reading files or for sockets, is no part of
/// the cost.
const PER_FAULT_NS: f64 = 2.4e3;
/// Reported from this share of the process's CPU time in the kernel.
const IN_KERNEL: f64 = 0.15;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let Some(faults) = evidence.median(|row| row.usage().map(|usage| usage.minor_faults as f64)) else {
        return CheckOutcome::NotEnough("page faults of steps are not recorded".to_owned());
    };
    let Some(span) = evidence.span_ns() else { return CheckOutcome::Nothing };
    if span.end - span.start < LEAST_NS {
        let reason = format!(
            "only {} of steps: too short, as CPU time is counted in hundredths of a second",
            duration(span.end - span.start)
        );
        return CheckOutcome::NotEnough(reason);
    }
    let rate = |quantity: Quantity| hardware::rate_per_s(evidence.store, quantity, &span);
    let (Some(kernel), Some(all)) = (rate(Quantity::ProcessCpuTimeSystem), rate(Quantity::ProcessCpuTime)) else {
        return CheckOutcome::NotEnough("the process's time in the kernel is not recorded".to_owned());
    };
    let of_thread = faults * evidence.rows.len() as f64 * 1e9 / (span.end - span.start) as f64;
    let of_process = rate(Quantity::ProcessFaultsMinor);
    let does_something_else = kernel > of_process.unwrap_or(0.0).max(of_thread) * MOST_PER_FAULT_NS;
    let in_kernel = kernel / all.max(1.0);
    if faults < FAULTS || in_kernel < IN_KERNEL || does_something_else {
        return CheckOutcome::Nothing;
    }
    // The time of several threads passes at once.
    let share = kernel.min(of_process.unwrap_or(of_thread) * PER_FAULT_NS) / all.max(1e9);
    let mut finding = Finding::for_run(FindingKind::AllocationChurn, Confidence::Medium, Some(share), |facts| {
        let faults = facts.count(Number::UsualFaults, faults as u64);
        let in_kernel = facts.share(Number::InKernel, in_kernel);
        format!(
            "every step takes new memory from the system ({faults} page faults); the kernel uses {in_kernel} of the CPU time"
        )
    })
    .with_claim(Claim::Everywhere(share));
    let (taken, times) = evidence.store.memory().phases().iter().fold((0u64, 0u64), |sum, phase| {
        (sum.0.saturating_add(phase.allocated_bytes), sum.1.saturating_add(phase.allocated_count))
    });
    let steps = evidence.store.steps().total().max(1) as f64;
    if taken > 0 {
        finding = finding.with_evidence_from(|facts| {
            let times = facts.count(Number::AllocationsPerStep, (times as f64 / steps) as u64);
            let taken = facts.bytes(Number::BytesPerStep, taken as f64 / steps);
            format!("{taken} in {times} allocations a step, by the program's own allocator")
        });
    }
    finding
        .with_evidence("time in the kernel has other causes too: reading files, copying to devices")
        .with_advice(
            "let malloc keep freed memory: set MALLOC_TRIM_THRESHOLD_=4294967296, MALLOC_TOP_PAD_=268435456 and \
             MALLOC_MMAP_MAX_=0 for glibc, or preload jemalloc or tcmalloc (LD_PRELOAD)",
        )
        .into()
}
