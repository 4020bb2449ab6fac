//! Whose memory grows, and what to try: the program's, its loader workers', or that of the GPU's caching allocator.

use super::growth_time::GrowthTime;
use super::memory_kind::MemoryKind;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{Confidence, Finding};
use crate::findings::number::Number;
use crate::store::CounterSeries;

/// What has this part of a growth has it.
const MOSTLY: f64 = 0.5;
const KEEP_IN_ARRAYS: &str = "keep the data set in arrays or tensors, not in lists and dicts: a worker copies each page whose \
                              reference counts it changes";

/// The finding with that; `None` if this memory's growth says nothing about the program.
pub(super) fn finding(
    evidence: &StepEvidence<'_>,
    time: &GrowthTime,
    of: MemoryKind,
    grown: f64,
    finding: Finding,
) -> Option<Finding> {
    match of {
        MemoryKind::Live | MemoryKind::Process => Some(by_program(finding)),
        MemoryKind::Workers(workers) => Some(of_workers(workers, finding)),
        MemoryKind::Machine(workers) => by_workers(evidence, time, grown, workers, finding),
        MemoryKind::Gpu(_) => Some(on_gpu(evidence, time, grown, finding)),
    }
}

fn by_program(finding: Finding) -> Finding {
    finding.with_advice("look for objects kept from step to step: losses with their graph, lists of results, caches")
}

fn of_workers(workers: usize, finding: Finding) -> Finding {
    finding
        .with_evidence_from(|facts| {
            let workers = facts.count(Number::Loaders, workers as u64);
            format!("workers so far: {workers}; by what the kernel counts for each process")
        })
        .with_advice("look for what a worker keeps of each item: a cache without a bound, an open file, a list")
        .with_advice(KEEP_IN_ARRAYS)
}

/// The machine's memory grows and the process's does not: its workers' may.
fn by_workers(
    evidence: &StepEvidence<'_>,
    time: &GrowthTime,
    grown: f64,
    workers: usize,
    finding: Finding,
) -> Option<Finding> {
    let own = MemoryKind::Process.lowest(evidence.store, time)?;
    let own = own[own.len() - 1] - own[0];
    if own > MOSTLY * grown {
        return None;
    }
    let finding = Finding { confidence: Confidence::Low, ..finding };
    Some(
        finding
            .with_evidence_from(|facts| {
                let (own, workers) =
                    (facts.bytes(Number::OwnGrowth, own.max(0.0)), facts.count(Number::Loaders, workers as u64));
                format!(
                    "this process grows by {own}: it may be its loader's workers ({workers} so far), or other programs"
                )
            })
            .with_advice(KEEP_IN_ARRAYS),
    )
}

/// Whether tensors take it, or the allocator that caches their memory.
fn on_gpu(evidence: &StepEvidence<'_>, time: &GrowthTime, grown: f64, finding: Finding) -> Finding {
    let growth = |counter: Option<&CounterSeries>| {
        let lowest = time.lowest(&counter?.series)?;
        Some(lowest[lowest.len() - 1] - lowest[0])
    };
    let memory = evidence.store.device_memory();
    let (tensors, reserved) = memory.map_or((None, None), |memory| (growth(memory.used), growth(memory.reserved)));
    let (Some(tensors), Some(reserved)) = (tensors, reserved) else { return by_program(finding) };
    let finding = finding.with_evidence_from(|facts| {
        let (tensors, reserved) = (tensors.max(0.0), reserved.max(0.0));
        let tensors = facts.bytes(Number::TensorGrowth, tensors);
        format!("tensors grow by {tensors}, what their allocator holds by {}", facts.bytes(Number::Reserved, reserved))
    });
    if tensors > MOSTLY * grown {
        by_program(finding)
    } else if reserved > MOSTLY * grown {
        finding.with_advice(
            "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or give batches fewer different sizes: the allocator \
             keeps blocks that no later batch fits",
        )
    } else {
        finding.with_advice("look for what else uses the GPU: another library, or another program")
    }
}
