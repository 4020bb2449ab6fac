//! A GPU that the driver slows down, or whose clock drops under load.

use gnntop_wire::{Quantity, SignalSource};

use crate::figures::FigureUnit;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, Severity};
use crate::findings::hardware;
use crate::findings::number::Number;
use crate::findings::robust::quantile;
use crate::findings::stated_numbers::StatedNumbers;
use crate::store::THROTTLE_REASONS;

/// Reported from this share of the time.
const WORTH_REPORTING: f64 = 0.05;
/// A clock below this share of its maximum has dropped.
const DROPPED: f64 = 0.9;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let gpus = evidence.store.hardware().gpus();
    if gpus.is_empty() {
        return CheckOutcome::NotEnough("no GPU is measured".to_owned());
    }
    let of_gpu = |gpu: u32| throttled(evidence, gpu).or_else(|| clock_dropped(evidence, gpu));
    gpus.into_iter().filter_map(of_gpu).collect::<Vec<Finding>>().into()
}

fn throttled(evidence: &StepEvidence<'_>, gpu: u32) -> Option<Finding> {
    let signal = evidence.store.signals().find(Quantity::GpuThrottle.with_instance(gpu))?;
    let span = evidence.span_ns()?;
    let share_of = |bits: u64| hardware::held_share(signal, &span, |value| value as u64 & bits != 0);
    let all = share_of(THROTTLE_REASONS.iter().fold(0, |all, (bit, _)| all | bit))?;
    if all < WORTH_REPORTING {
        return None;
    }
    let (reason, _) = THROTTLE_REASONS
        .iter()
        .filter_map(|(bit, text)| Some((*text, share_of(*bit)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let mut finding = Finding::for_run(FindingKind::GpuThrottled, Confidence::High, None, |facts| {
        facts.count(Number::Gpu, gpu.into());
        format!("GPU {gpu} is slowed down {} of the time, mostly by {reason}", facts.share(Number::OfTime, all))
    });
    finding.severity = Severity::from_share(all);
    finding = finding.with_evidence(source(&signal.source)).with_evidence_lines(|facts| {
        let (least, most) = clocks_in_words(facts, clock_range(evidence, gpu)?);
        Some(format!("its clock is between {least} and {most} MHz"))
    });
    Some(finding.with_advice("check its cooling and power limit (nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE)"))
}

fn source(source: &SignalSource) -> String {
    match source {
        SignalSource::Column(name) => format!("read from the table's column \"{name}\""),
        other => format!("reported by {other}"),
    }
}

/// A tenth of the SM clock's readings is below the first number, a tenth above the second.
fn clock_range(evidence: &StepEvidence<'_>, gpu: u32) -> Option<(f64, f64)> {
    let signal = evidence.store.signals().find(Quantity::GpuClockSm.with_instance(gpu))?;
    let span = evidence.span_ns()?;
    // Held values are weighted by counting each once per tenth of a second.
    let weighted = |(value, ns): (f64, u64)| std::iter::repeat_n(value, (ns / 100_000_000).clamp(1, 600) as usize);
    let mut values: Vec<f64> = hardware::held_values(signal, &span).flat_map(weighted).collect();
    Some((quantile(&mut values, 0.1)?, quantile(&mut values, 0.9)?))
}

/// Two clock frequencies in megahertz, as text.
fn clocks_in_words(facts: &mut StatedNumbers, (low, high): (f64, f64)) -> (String, String) {
    facts.note(Number::LowClock, low * 1e6, FigureUnit::Frequency);
    facts.note(Number::HighClock, high * 1e6, FigureUnit::Frequency);
    (format!("{low:.0}"), format!("{high:.0}"))
}

fn clock_dropped(evidence: &StepEvidence<'_>, gpu: u32) -> Option<Finding> {
    let (least, most) = clock_range(evidence, gpu)?;
    let span = evidence.span_ns()?;
    let util = evidence.store.signals().find(Quantity::GpuUtil.with_instance(gpu))?;
    let is_loaded = hardware::held_mean(util, &span)? / 1e3 >= 50.0;
    if !is_loaded || most <= 0.0 || least >= DROPPED * most {
        return None;
    }
    let finding = Finding::for_run(FindingKind::GpuThrottled, Confidence::Medium, None, |facts| {
        facts.count(Number::Gpu, gpu.into());
        let (least, most) = clocks_in_words(facts, (least, most));
        format!("GPU {gpu}'s clock drops from {most} to {least} MHz under load")
    });
    Some(
        finding
            .with_evidence("the driver gives no reason")
            .with_advice("lock its clocks before comparing runs (nvidia-smi -lgc)"),
    )
}
