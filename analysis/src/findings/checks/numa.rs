//! A program whose main thread runs on another NUMA node than the one that its GPU is attached to.
//!
//! What is copied between them then goes through the link between the sockets. Nobody measures what that costs.

use gnntop_wire::Quantity;

use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::hardware;
use crate::findings::number::Number;
use crate::store::Store;

/// Reported from this share of the time.
const MOSTLY: f64 = 0.5;

/// What it finds in a session. Machines with one node, and GPUs whose node the system does not know, have no such readings.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let store = evidence.store;
    let (Some(thread), Some(span)) = (store.signals().find(Quantity::MainThreadNumaNode), evidence.span_ns()) else {
        return CheckOutcome::Nothing;
    };
    let of_gpu = |gpu: u32| {
        let node = newest(store, Quantity::GpuNumaNode, gpu)?;
        let elsewhere = hardware::held_share(thread, &span, |value| value as i64 != node)?;
        (elsewhere >= MOSTLY).then(|| finding(gpu, node, elsewhere))
    };
    used_gpus(store).into_iter().filter_map(of_gpu).collect::<Vec<Finding>>().into()
}

/// The GPUs in which the program has memory; without that, all, if that is one.
fn used_gpus(store: &Store) -> Vec<u32> {
    let all = store.hardware().gpus();
    let has_memory = |gpu: &u32| newest(store, Quantity::GpuProcessMemory, *gpu).is_some_and(|bytes| bytes > 0);
    let used: Vec<u32> = all.iter().copied().filter(has_memory).collect();
    if used.is_empty() && all.len() == 1 { all } else { used }
}

fn newest(store: &Store, quantity: Quantity, gpu: u32) -> Option<i64> {
    store.signals().find(quantity.with_instance(gpu))?.series.last()?.value()
}

fn finding(gpu: u32, node: i64, elsewhere: f64) -> Finding {
    let finding = Finding::for_run(FindingKind::Numa, Confidence::Low, None, |facts| {
        facts.count(Number::Gpu, gpu.into());
        let share = facts.share(Number::OfTime, elsewhere);
        format!(
            "the main thread is {share} of the time on another NUMA node than GPU {gpu}, which is attached to node {node}"
        )
    });
    finding
        .with_evidence("memory is usually on the node of the thread that fills it: what is copied to the GPU then crosses the link between nodes")
        .with_advice(format!(
            "bind the program to the GPU's node: numactl --cpunodebind={node} --membind={node}, or torchrun --numa-binding node"
        ))
}
