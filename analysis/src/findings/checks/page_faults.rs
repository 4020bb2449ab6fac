//! Page faults: steps in which the system had to provide or read back memory, and a machine short of memory.

use gnntop_wire::Quantity;

use super::allocation_churn::MOST_PER_FAULT_NS;
use crate::findings::claim::Claim;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, PLACES_LISTED};
use crate::findings::hardware;
use crate::findings::number::Number;
use crate::findings::stated_numbers::StatedNumbers;

/// With fewer faults in a step it is not a storm.
const STORM: f64 = 1000.0;
/// A storm has this many times the usual faults.
const TIMES_USUAL: f64 = 5.0;
/// A storm costs at least this share of a step, which must also take this many standard deviations longer.
const COST: f64 = 0.1;
const SIGMAS: f64 = 3.0;
/// Share of the steps with that many faults that must take longer.
const MOSTLY: f64 = 0.34;
/// The most that a page takes to be read from a disk: a seek of a slow one, and the queue before it.
const MOST_PER_READ_NS: f64 = 20e6;
/// A smaller share of the time is shown as none.
const WORTH_REPORTING: f64 = 0.0005;
/// CPU time in the kernel is counted in hundredths of a second: over a shorter time it shows nothing.
const LEAST_NS: u64 = 2_000_000_000;
/// Share of the time in which something waits for memory that is reclaimed.
const RECLAIM: f64 = 0.02;
/// A process that reads fewer pages back from a disk in a second is not the one that waits.
const READ_BACK_PER_S: f64 = 1.0;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let reclaim = evidence.span_ns().and_then(|span| reclaim(evidence, &span));
    if evidence.rows.iter().all(|row| row.usage().is_none()) && reclaim.is_none() {
        return CheckOutcome::NotEnough("neither page faults of steps nor memory pressure are recorded".to_owned());
    }
    let found = [storms(evidence), reclaim.flatten()];
    found.into_iter().flatten().collect::<Vec<Finding>>().into()
}

/// The minor and the major faults of a step.
fn faults(evidence: &StepEvidence<'_>, row: usize) -> (u64, u64) {
    evidence.rows[row].usage().map_or((0, 0), |usage| (usage.minor_faults, usage.major_faults))
}

/// What a step's faults cost.
fn sentence(evidence: &StepEvidence<'_>, facts: &mut StatedNumbers, row: usize) -> String {
    let (step, (minor, major)) = (evidence.rows[row].step().0, faults(evidence, row));
    let from_disk = (major > 0).then(|| format!(", {} of them read from a disk", facts.count(Number::FromDisk, major)));
    let faults = facts.count(Number::PageFaults, minor.saturating_add(major));
    let more = facts.time(Number::More, evidence.excess_ns(row));
    format!("step {step} has {faults} page faults{} and takes {more} longer", from_disk.unwrap_or_default())
}

fn storms(evidence: &StepEvidence<'_>) -> Option<Finding> {
    let usual = evidence.median(|row| row.usage().map(|usage| usage.minor_faults as f64))?;
    let has_many = |row: &usize| {
        let (minor, major) = faults(evidence, *row);
        minor as f64 > STORM.max(TIMES_USUAL * usual) || major > 0
    };
    let is_storm = |row: &usize| {
        let least =
            (COST * evidence.expected_ns[*row]).max(SIGMAS * evidence.noise_ns).max(evidence.preempted_ns(*row));
        has_many(row) && evidence.excess_ns(*row) > least
    };
    let storms: Vec<usize> = (0..evidence.rows.len()).filter(is_storm).collect();
    let many = (0..evidence.rows.len()).filter(has_many).count();
    // Memory first touched in a step that was slow anyway is chance.
    if storms.is_empty() || (storms.len() as f64) < MOSTLY * many as f64 {
        return None;
    }
    let excess: f64 = storms.iter().map(|row| evidence.excess_ns(*row)).sum();
    let of_storms = || storms.iter().map(|row| faults(evidence, *row));
    let all: u64 = of_storms().map(|(minor, major)| minor.saturating_add(major)).fold(0, u64::saturating_add);
    let reads: u64 = of_storms().map(|(_, major)| major).fold(0, u64::saturating_add);
    let in_kernel_ns = kernel_ns(evidence).unwrap_or(f64::INFINITY).min(all as f64 * MOST_PER_FAULT_NS);
    let most = in_kernel_ns + reads as f64 * MOST_PER_READ_NS;
    // Faults that merely come with the time are not its cause.
    if most < MOSTLY * excess {
        return None;
    }
    let part = (most / excess.max(1.0)).min(1.0);
    let cost = excess * part;
    let share = evidence.share(cost);
    if share < WORTH_REPORTING {
        return None;
    }
    let place = |row: &usize| evidence.place(*row, sentence(evidence, &mut StatedNumbers::default(), *row));
    let places = storms.iter().take(PLACES_LISTED).map(place).collect();
    let finding = Finding::for_run(FindingKind::PageFaults, Confidence::High, Some(share), |facts| {
        let (steps, cost) = (facts.count(Number::Steps, storms.len() as u64), facts.share(Number::OfTime, share));
        match storms.as_slice() {
            [one] => sentence(evidence, facts, *one),
            _ => {
                let all = facts.count(Number::PageFaults, all);
                format!("{steps} steps have page-fault storms, {all} faults in all, that cost {cost} of the time")
            }
        }
    })
    .with_places(places, storms.len() as u64)
    .with_claim(Claim::Steps(storms.iter().map(|row| evidence.excess_cost(*row, part)).collect()))
    .with_evidence_from(|facts| {
        let plural = if usual as u64 == 1 { "" } else { "s" };
        format!("{} page fault{plural} in a usual step", facts.count(Number::UsualFaults, usual as u64))
    })
    .with_evidence_from(|facts| format!("about {} per fault", facts.time(Number::Each, cost / all.max(1) as f64)))
    .with_advice("reuse large buffers instead of allocating them again (a pool)");
    Some(finding)
}

/// The process's time in the kernel, which is the most that its faults can cost if none waits for a disk; `None` if it is not
/// recorded for long enough.
fn kernel_ns(evidence: &StepEvidence<'_>) -> Option<f64> {
    let span = evidence.span_ns().filter(|span| span.end - span.start >= LEAST_NS)?;
    let rate = hardware::rate_per_s(evidence.store, Quantity::ProcessCpuTimeSystem, &span)?;
    Some(rate * (span.end - span.start) as f64 / 1e9)
}

/// Whether memory was reclaimed while something waited, and this process lost some of its own; `None` if that is not recorded.
fn reclaim(evidence: &StepEvidence<'_>, span: &std::ops::Range<u64>) -> Option<Option<Finding>> {
    let share = hardware::rate_per_s(evidence.store, Quantity::PressureMemorySome, span)? / 1e9;
    let from_disk = read_back_per_s(evidence, span);
    if share < RECLAIM || from_disk.is_some_and(|faults| faults < READ_BACK_PER_S) {
        return Some(None);
    }
    let mut finding = Finding::for_run(FindingKind::PageFaults, Confidence::Medium, Some(share), |facts| {
        let share = facts.share(Number::OfTime, share);
        format!("some process waits {share} of the time for the system to reclaim memory")
    })
    .with_claim(Claim::Everywhere(share))
    .with_evidence("/proc/pressure/memory, for the whole machine")
    .with_advice("use less memory: smaller batches, fewer workers, smaller caches");
    if let Some(faults) = from_disk {
        finding = finding.with_evidence_from(|facts| {
            let faults = facts.number(Number::FromDiskPerS, faults);
            format!("{faults:.1} major page faults a second in this process")
        });
    }
    Some(Some(finding))
}

/// How many pages a second this process reads back from a disk, by all its threads or by the training thread alone.
fn read_back_per_s(evidence: &StepEvidence<'_>, span: &std::ops::Range<u64>) -> Option<f64> {
    let of_process = hardware::rate_per_s(evidence.store, Quantity::ProcessFaultsMajor, span);
    let of_thread = || {
        let faults =
            evidence.rows.iter().map(|row| row.usage().map(|usage| usage.major_faults as f64)).sum::<Option<f64>>();
        Some(faults? * 1e9 / (span.end - span.start).max(1) as f64)
    };
    of_process.or_else(of_thread)
}
