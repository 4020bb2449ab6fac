//! A GPU of the run that is idle much of the time: by its kernels if they were traced, else by a sensor's readings, and
//! at least for the time in which nothing can run on it, whatever the readings say.

use gnntop_wire::phase::DATA_WAIT;
use gnntop_wire::{Quantity, SignalSource};

use super::gap_filling;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::hardware;
use crate::findings::number::Number;
use crate::findings::stated_numbers::StatedNumbers;
use crate::store::Signal;

/// Reported from this share of idle time.
const WORTH_REPORTING: f64 = 0.3;
/// A GPU that was never busier than this, in percent, is not used by the run.
const TAKES_PART: f64 = 5.0;
/// Copies are named from this share of the time on, and are the cause from this part of the idle time on.
const WORTH_NAMING: f64 = 0.02;
const MOSTLY: f64 = 0.5;
/// With fewer readings a mean means little.
const ENOUGH_READINGS: usize = 5;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let gpus = evidence.store.hardware().gpus();
    if let Some(idle) = evidence.span_ns().and_then(|span| hardware::idle_share(evidence.store, span)) {
        return check_kernels(evidence, idle).into_iter().collect::<Vec<Finding>>().into();
    }
    if gpus.is_empty() {
        return CheckOutcome::NotEnough("no GPU is measured".to_owned());
    }
    gpus.into_iter().filter_map(|gpu| check_gpu(evidence, gpu)).collect::<Vec<Finding>>().into()
}

/// Every kernel was traced.
fn check_kernels(evidence: &StepEvidence<'_>, idle: hardware::Idle) -> Option<Finding> {
    if idle.share < WORTH_REPORTING {
        return None;
    }
    let finding = Finding::for_run(FindingKind::GpuIdle, Confidence::High, Some(idle.share), |facts| {
        format!("no kernel runs on the GPU {} of the time", facts.share(Number::OfTime, idle.share))
    })
    .with_evidence_from(|facts| {
        format!("{} kernels and copies were traced", facts.count(Number::Kernels, idle.kernels))
    })
    .with_evidence_lines(|facts| {
        let copying = (idle.copying >= WORTH_NAMING).then(|| facts.share(Number::Copying, idle.copying));
        copying.map(|share| format!("copies run {share} of the time, and no kernel meanwhile"))
    });
    let finding = if idle.copying < MOSTLY * idle.share {
        finding
    } else {
        finding
            .with_advice("copy ahead, from pinned memory (pin_memory, non_blocking=True), or keep the data on the GPU")
    };
    Some(with_explanation(evidence, finding))
}

fn check_gpu(evidence: &StepEvidence<'_>, gpu: u32) -> Option<Finding> {
    let signal = evidence.store.signals().find(Quantity::GpuUtil.with_instance(gpu))?;
    let span = evidence.span_ns()?;
    let values: Vec<(f64, u64)> = hardware::held_values(signal, &span).collect();
    let most = values.iter().map(|(value, _)| value / 1e3).fold(0.0, f64::max);
    let mean = hardware::held_mean(signal, &span)? / 1e3;
    let read = 1.0 - (mean / 100.0).clamp(0.0, 1.0);
    let bound = outside_of_steps(evidence, signal).unwrap_or(0.0);
    if most < TAKES_PART || read.max(bound) < WORTH_REPORTING || values.len() < ENOUGH_READINGS {
        return None;
    }
    let readings = |facts: &mut StatedNumbers| {
        facts.count(Number::Gpu, gpu.into());
        format!("{}: {} readings", signal.source, facts.count(Number::Readings, values.len() as u64))
    };
    let finding = if bound > read {
        Finding::for_run(FindingKind::GpuIdle, Confidence::Medium, Some(bound), |facts| {
            let share = facts.share(Number::OfTime, bound);
            format!("GPU {gpu} is idle at least {share} of the time, despite its readings")
        })
        .with_evidence("the table has no GPU work between two steps, if steps were timed to their end")
        .with_evidence_from(|facts| {
            let (readings, idle) = (readings(facts), facts.share(Number::ReadIdle, read));
            format!("{readings}, which show {idle} idle but cover only steps")
        })
    } else {
        Finding::for_run(FindingKind::GpuIdle, Confidence::High, Some(read), |facts| {
            format!("GPU {gpu} has no kernel running {} of the time", facts.share(Number::OfTime, read))
        })
        .with_evidence_from(readings)
    };
    let finding = finding.with_evidence("this counts time without any kernel: a busy GPU may still be underused");
    Some(with_explanation(evidence, finding))
}

/// Share of the time between an imported table's steps that no span covers. If the program runs the device, it is
/// unknown whether the device is done when a step ends.
fn outside_of_steps(evidence: &StepEvidence<'_>, signal: &Signal) -> Option<f64> {
    let is_table = matches!(signal.source, SignalSource::Column(_));
    let outside = evidence.rows.iter().map(|row| {
        let own_ns = row.end_ns().saturating_sub(row.start_ns());
        row.period_ns().saturating_sub(own_ns) as f64
    });
    let busy_ns: f64 = gap_filling::gap_fillings(evidence).iter().map(|filling| filling.total_ns).sum();
    is_table.then(|| evidence.share((outside.sum::<f64>() - busy_ns).max(0.0)))
}

/// Adds what the run does meanwhile, and what to try.
fn with_explanation(evidence: &StepEvidence<'_>, mut finding: Finding) -> Finding {
    let phases = evidence.store.phases().iter().map(|phase| (evidence.phase_total_ns(phase.slot), &phase.text));
    let largest = phases.max_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((ns, phase)) = largest {
        finding = finding.with_evidence_from(|facts| {
            let share = facts.about(phase, |facts| facts.share(Number::OfTime, evidence.share(ns)));
            format!("{share} of the time is {phase}")
        });
    }
    let advice = match largest {
        Some((_, phase)) if phase == DATA_WAIT => "load data sooner",
        _ => "give the GPU more work at once: larger batches, or fewer and larger kernels (torch.compile, CUDA graphs)",
    };
    finding.with_evidence("this is GPU time: other findings show what the run does meanwhile").with_advice(advice)
}
