//! Threads that the program computes with: far fewer than the free cores that it may use, or more than it may use.

use gnntop_wire::Quantity;
use gnntop_wire::phase::{BACKWARD, FORWARD, OPTIMIZER};

use super::contention;
use super::thread_count::ThreadCount;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, Severity};
use crate::findings::hardware;
use crate::findings::number::Number;

/// There are few threads if this many times as many cores are free.
const FEW: f64 = 3.0;
/// A program that computes with its threads uses at most this many cores more.
const MORE_THAN_THREADS: f64 = 0.5;
/// It computes if that takes this share of the time.
const COMPUTES: f64 = 0.5;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let Some(count) = ThreadCount::find(evidence) else {
        return CheckOutcome::NotEnough("it is not recorded how many threads and cores the program has".to_owned());
    };
    if count.threads == 0 || evidence.store.device().is_some() || computing(evidence) < COMPUTES {
        return CheckOutcome::Nothing;
    }
    if count.are_many() {
        return too_many(evidence, count).into();
    }
    few(evidence, count).map_or(CheckOutcome::Nothing, CheckOutcome::from)
}

/// Share of the time in which the model is computed.
fn computing(evidence: &StepEvidence<'_>) -> f64 {
    let phases = [FORWARD, BACKWARD, OPTIMIZER].into_iter().filter_map(|text| evidence.store.phase(text));
    evidence.share(phases.map(|phase| evidence.phase_total_ns(phase.slot)).sum())
}

fn too_many(evidence: &StepEvidence<'_>, ThreadCount { threads, cores }: ThreadCount) -> Finding {
    // Whether that costs anything, the waits for a CPU show.
    let confidence = if contention::waits(evidence) > 0.0 { Confidence::Medium } else { Confidence::Low };
    let finding = Finding::for_run(FindingKind::Threads, confidence, None, |facts| {
        let threads = facts.count(Number::Threads, threads);
        let cores = ThreadCount::cores_in_words(facts.number(Number::MayUseCores, cores));
        format!("the program computes with {threads} threads and may use {cores}")
    });
    // It is what the contention comes from, and is named beside it.
    let is_cause = contention::is_by_own_threads(evidence);
    Finding { severity: if is_cause { Severity::Major } else { Severity::Minor }, ..finding }
        .with_evidence("threads that share a core wait for each other at the end of each operation")
        .with_advice("set OMP_NUM_THREADS, or torch.set_num_threads, to the cores that the program may use")
}

fn few(evidence: &StepEvidence<'_>, ThreadCount { threads, cores }: ThreadCount) -> Option<Finding> {
    let span = evidence.span_ns()?;
    let used = hardware::rate_per_s(evidence.store, Quantity::ProcessCpuTime, &span)? / 1e9;
    let busy = hardware::rate_per_s(evidence.store, Quantity::MachineCpuBusy, &span)? / 1e9;
    let machine = evidence.store.hardware().cores().len() as f64;
    let free = (machine - busy).min(cores - used);
    if free < FEW * threads as f64 || used > threads as f64 + MORE_THAN_THREADS {
        return None;
    }
    let finding = Finding::for_run(FindingKind::Threads, Confidence::Low, None, |facts| {
        let plural = if threads == 1 { "" } else { "s" };
        let (threads, cores) = (facts.count(Number::Threads, threads), facts.number(Number::MayUseCores, cores));
        let free = facts.number(Number::FreeCores, free);
        format!(
            "the program computes with {threads} thread{plural}, and {free:.1} of the {cores:.0} cores that it may use are free"
        )
    });
    let finding = Finding { severity: Severity::Minor, ..finding }
        .with_evidence_from(|facts| {
            let computing = facts.share(Number::OfCompute, computing(evidence));
            format!("it computes {computing} of the time; small operations are no faster with more threads")
        })
        .with_advice("set OMP_NUM_THREADS (torchrun sets it to 1), or torch.set_num_threads");
    Some(finding)
}
