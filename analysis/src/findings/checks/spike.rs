//! Spikes: steps that took much longer than their neighbours and their batch explain.
//!
//! A step is a spike if it takes, inside, more than 1.5 times what is expected of it and of its kind, and more than six
//! standard deviations of the usual noise above it. Times that vary by factors have a long tail to the right, so their
//! logarithms are tested as well. A step that only waited for a CPU is not a spike: [`super::contention`] reports it.
//! Nor is the time between steps looked at here, but by [`super::gap`], and a rollout before a step is a phase of its own.

use gnntop_wire::phase::{DATA_WAIT, VALIDATION};

use crate::findings::claim::Claim;
use crate::findings::epoch_starts;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, PLACES_LISTED, Severity};
use crate::findings::number::Number;
use crate::findings::robust::sigma;
use crate::findings::stated_numbers::{StatedNumber, StatedNumbers};
use crate::store::{Phase, StepRow};

/// A step that takes this many times what is expected is a spike...
const RATIO: f64 = 1.5;
/// ...if that is also this many standard deviations above it.
const SIGMAS: f64 = 6.0;
/// ...and the logarithm of this multiple this many of its standard deviations.
const LOG_SIGMAS: f64 = 4.5;

/// A single one that takes less costs a share of a short recording, and nothing of a run.
const LEAST_ONCE_NS: f64 = 1e9;
/// A period that takes this many times as long as the inside of its step is named as well.
const MORE_THAN_STEP: f64 = 1.05;
/// What a loop does in some of its steps: collecting experience.
const ROLLOUT: &str = "rollout";

/// The rows that are spikes.
fn spikes(evidence: &StepEvidence<'_>) -> Vec<usize> {
    let rollout = evidence.store.phase(ROLLOUT).map(|phase| phase.slot);
    let excess = |row: usize| {
        let rollout_ns = rollout.map_or(0, |slot| evidence.timed[row].phase_ns(slot));
        evidence.excess_ns(row) - rollout_ns as f64
    };
    let rows = 0..evidence.rows.len();
    let log_sigma = sigma(rows.clone().map(|row| ratio(evidence, row).max(f64::MIN_POSITIVE).ln()), 0.0);
    let least_ratio = RATIO.max((LOG_SIGMAS * log_sigma).exp());
    let is_spike = |row: &usize| {
        let least_excess = (SIGMAS * evidence.noise_ns).max(evidence.preempted_ns(*row));
        ratio(evidence, *row) > least_ratio && excess(*row) > least_excess
    };
    rows.filter(is_spike).collect()
}

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let spikes = spikes(evidence);
    // The longest, as in the list of places.
    let Some(worst) = spikes.iter().copied().max_by_key(|row| evidence.rows[*row].period_ns()) else {
        return CheckOutcome::Nothing;
    };
    let usual = UsualStep::new(evidence);
    let cost: f64 = spikes.iter().map(|row| evidence.excess_ns(*row)).sum();
    let sentence = |row: &usize| usual.sentence(&mut StatedNumbers::default(), evidence, *row);
    let places = spikes.iter().take(PLACES_LISTED).map(|row| evidence.place(*row, sentence(row))).collect();
    let share = evidence.share(cost);
    let ratios = || spikes.iter().map(|row| ratio(evidence, *row));
    let (least, most) = (ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max));
    let mut finding = Finding::for_run(FindingKind::Spike, Confidence::High, Some(share), |facts| {
        let (n, cost) = (facts.count(Number::Steps, spikes.len() as u64), facts.share(Number::OfTime, share));
        let least = facts.number(Number::LeastRatio, least);
        let most = facts.number(Number::MostRatio, most);
        let worst = usual.sentence(facts, evidence, worst);
        match spikes.len() {
            1 => worst,
            _ => {
                let [least, most] = [least, most].map(|times| format!("{times:.1}"));
                let range = if least == most { most } else { format!("{least} to {most}") };
                format!("{n} steps take {range} x their usual time and cost {cost}; the worst: {worst}")
            }
        }
    })
    .with_places(places, spikes.len() as u64)
    .with_claim(Claim::Steps(spikes.iter().map(|row| evidence.excess_cost(*row, 1.0)).collect()))
    .with_evidence_from(|facts| format!("other steps vary by ± {}", facts.time(Number::Noise, evidence.noise_ns)));
    finding.severity = Severity::from_share(share);
    if spikes.len() == 1 && cost < LEAST_ONCE_NS {
        finding.severity = finding.severity.min(Severity::Minor);
    }
    let finding = match rhythm(evidence, &spikes) {
        Some(every) => {
            let finding = finding.with_evidence_from(|facts| {
                format!("they come every {} steps", facts.count(Number::EverySteps, every))
            });
            match are_first_waits(evidence, &spikes) {
                true => finding
                    .with_evidence("each waits for the first batch of an epoch")
                    .with_advice(epoch_starts::advice_on_workers(evidence)),
                false => finding.with_advice("look for work that the program does at that interval"),
            }
        }
        None => finding.with_advice("open one of these steps: its phases, marks, page faults and context switches"),
    };
    finding.into()
}

/// Whether most of these steps begin epochs and wait for loader workers meanwhile.
fn are_first_waits(evidence: &StepEvidence<'_>, spikes: &[usize]) -> bool {
    let has_workers = evidence.store.session().loader_workers().is_some_and(|workers| workers > 0);
    let Some(wait) = evidence.store.phases().iter().find(|phase| &*phase.text == DATA_WAIT) else { return false };
    let waits = |row: &&usize| {
        let wait_ns = evidence.timed[**row].phase_ns(wait.slot) as f64;
        evidence.begins_epoch(**row) && wait_ns > 0.5 * evidence.excess_ns(**row)
    };
    has_workers && spikes.iter().filter(waits).count() * 4 >= spikes.len() * 3
}

fn ratio(evidence: &StepEvidence<'_>, row: usize) -> f64 {
    evidence.inside_ns[row] / evidence.expected_ns[row]
}

/// The steps from one spike to the next, if they come at equal intervals.
fn rhythm(evidence: &StepEvidence<'_>, spikes: &[usize]) -> Option<u64> {
    if spikes.len() < 4 {
        return None;
    }
    let ordinal = |i: usize| evidence.rows[spikes[i]].ordinal();
    let mut distances: Vec<u64> = (1..spikes.len()).map(|i| ordinal(i) - ordinal(i - 1)).collect();
    distances.sort_unstable();
    let usual = distances[distances.len() / 2];
    let equal = distances.iter().filter(|distance| **distance == usual).count();
    (usual > 1 && equal * 4 >= distances.len() * 3).then_some(usual)
}

/// This many page faults.
fn page_faults(n: StatedNumber, count: u64) -> String {
    format!("{n} page fault{}", if count == 1 { "" } else { "s" })
}

/// Its period, which other places show, where it has more in it: validation, or time between steps.
fn period(facts: &mut StatedNumbers, evidence: &StepEvidence<'_>, index: usize) -> String {
    let period_ns = evidence.rows[index].period_ns() as f64;
    match period_ns > MORE_THAN_STEP * evidence.inside_ns[index] {
        true => format!(" of its period of {}", facts.time(Number::LongestPeriod, period_ns)),
        false => String::new(),
    }
}

/// Usual values of the numbers that may explain a spike.
struct UsualStep<'a> {
    inside_ns: f64,
    phases: Vec<(&'a Phase, f64)>,
    minor_faults: Option<f64>,
    involuntary: Option<f64>,
}

impl<'a> UsualStep<'a> {
    fn new(evidence: &StepEvidence<'a>) -> Self {
        let median = |phase: &'a Phase| {
            let ns = evidence.timed_median(|row| Some(row.phase_ns(phase.slot) as f64));
            (phase, ns.unwrap_or(0.0))
        };
        let usage = |number: fn(&gnntop_wire::ThreadUsage) -> u64| {
            evidence.median(|row| row.usage().map(|usage| number(&usage) as f64))
        };
        Self {
            inside_ns: evidence.usual_inside_ns().max(1.0),
            // Validation is in the step's period, and no part of what it took.
            phases: evidence
                .store
                .phases()
                .iter()
                .filter(|phase| !phase.is_gap() && &*phase.text != VALIDATION)
                .map(median)
                .collect(),
            minor_faults: usage(|usage| usage.minor_faults),
            involuntary: usage(|usage| usage.involuntary_switches),
        }
    }

    fn sentence(&self, facts: &mut StatedNumbers, evidence: &StepEvidence<'_>, index: usize) -> String {
        let (row, timed) = (&evidence.rows[index], &evidence.timed[index]);
        let of_kind = if evidence.kinds.all.is_empty() { "" } else { " of its kind" };
        let mut text = format!(
            "step {} took {}{}, {:.1} x the usual{of_kind}",
            row.step().0,
            facts.time(Number::Longest, evidence.inside_ns[index]),
            period(facts, evidence, index),
            facts.number(Number::MostRatio, ratio(evidence, index))
        );
        // A phase may have grown by less than the median over all batch sizes suggests.
        let scale = evidence.expected_ns[index] / self.inside_ns;
        let excess =
            |(phase, usual): &(&'a Phase, f64)| (phase.text.clone(), timed.phase_ns(phase.slot) as f64 - usual * scale);
        let worst = self.phases.iter().map(excess).max_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((phase, more)) = worst.filter(|(_, more)| *more > 0.25 * evidence.excess_ns(index)) {
            let more = facts.about(&phase, |facts| facts.time(Number::More, more));
            text += &format!(": {more} more in {phase}");
        }
        text.extend(self.usage(facts, row));
        text
    }

    /// What happened to its thread that is far from usual.
    fn usage(&self, facts: &mut StatedNumbers, row: &StepRow<'_>) -> Option<String> {
        let usage = row.usage()?;
        let many = |n: u64, usual: Option<f64>, least: f64| n as f64 > least + 4.0 * usual.unwrap_or(0.0);
        let mut parts = Vec::new();
        if usage.major_faults > 0 {
            parts.push(format!(
                "{} read from disk",
                page_faults(facts.count(Number::FromDisk, usage.major_faults), usage.major_faults)
            ));
        }
        if many(usage.minor_faults, self.minor_faults, 1000.0) {
            parts.push(format!("{} page faults", facts.count(Number::PageFaults, usage.minor_faults)));
        }
        if many(usage.involuntary_switches, self.involuntary, 3.0) {
            parts.push(format!("{} preemptions", facts.count(Number::Preemptions, usage.involuntary_switches)));
        }
        (!parts.is_empty()).then(|| format!(", with {}", parts.join(" and ")))
    }
}
