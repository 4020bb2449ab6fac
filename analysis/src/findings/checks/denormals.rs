//! Denormal numbers: results too small for the usual form of a float, which many CPUs compute a hundred times slower.
//!
//! A stream has times and counts, not numbers, so denormals can only be *seen* if the program counts them and reports that
//! it does, or if gradients were looked at. Without that, slow arithmetic cannot be distinguished from other causes, and nothing
//! is claimed.

use gnntop_wire::Reported;

use crate::figures::quantity;
use crate::findings::claim::{Claim, StepCost};
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::number::Number;
use crate::findings::robust::{correlation, median};

/// Steps with denormals needed to relate them to time.
const ENOUGH: usize = 10;
/// Count and excess time are related from this correlation.
const RELATED: f64 = 0.5;

/// Samples of gradients needed...
const ENOUGH_SAMPLES: usize = 3;
/// ...with this share of denormal numbers...
const MANY: f64 = 0.01;
/// ...on a processor that takes this many times as long for them, or clearly more.
const COSTLY: f64 = 1.25;
const CLEARLY_COSTLY: f64 = 2.0;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let Some(counter) = evidence.store.counter_of(Reported::Denormals) else {
        return in_gradients(evidence);
    };
    let mut counts = vec![None; evidence.rows.len()];
    for point in counter.series.points() {
        if let (Some(row), Some(value)) = (evidence.row_at(point.t_ns()), point.value()) {
            counts[row] = Some(value);
        }
    }
    related(evidence, evidence.store.name(counter.name), &counts)
}

fn related(evidence: &StepEvidence<'_>, name: &str, counts: &[Option<f64>]) -> CheckOutcome {
    let known: Vec<(usize, f64)> = counts.iter().enumerate().filter_map(|(row, n)| Some((row, (*n)?))).collect();
    if known.len() < ENOUGH {
        return CheckOutcome::NotEnough(format!("\"{name}\" is set in only {} steps", known.len()));
    }
    let shape_ns = |row: usize| {
        let explained = evidence.shape.explained_ns(&evidence.rows[row]);
        evidence.inside_ns[row] - explained.unwrap_or(0.0)
    };
    let time = |some: bool| {
        let of = |(row, n): &(usize, f64)| ((*n > 0.0) == some).then(|| shape_ns(*row));
        median(&mut known.iter().filter_map(of).collect::<Vec<f64>>())
    };
    let Some(with_ns) = time(true) else { return CheckOutcome::Nothing };
    let pairs: Vec<(f64, f64)> = known.iter().map(|(row, n)| (*n, shape_ns(*row))).collect();
    let r = correlation(&pairs).unwrap_or(0.0);
    let mean = known.iter().map(|(_, n)| n).sum::<f64>() / known.len() as f64;
    let Some(without_ns) = time(false).filter(|ns| with_ns > *ns && r >= RELATED) else {
        let finding = Finding::for_run(FindingKind::Denormals, Confidence::Low, None, |facts| {
            let each = quantity(facts.number(Number::DenormalsPerStep, mean));
            format!("denormal numbers occur, {each} a step; their cost cannot be measured")
        });
        return with_advice(finding).into();
    };
    let more = with_ns - without_ns;
    let with = known.iter().filter(|(_, n)| *n > 0.0).count() as f64;
    let share = evidence.share(more * with / known.len() as f64 * evidence.rows.len() as f64);
    let costs = known.iter().filter(|(_, n)| *n > 0.0).map(|(row, _)| StepCost {
        row: *row,
        is_inside: true,
        ns: more,
        without_ns: Some((evidence.inside_ns[*row] - more).max(0.0)),
    });
    let finding = Finding::for_run(FindingKind::Denormals, Confidence::High, Some(share), |facts| {
        format!("steps with denormal numbers take {} more than those without", facts.time(Number::More, more))
    })
    .with_claim(Claim::Steps(costs.collect()))
    .with_evidence_from(|facts| {
        let r = facts.number(Number::Correlation, r);
        format!("step time grows with \"{name}\" (r = {r:.2})")
    });
    with_advice(finding).into()
}

/// By the samples of gradients, which the hooks of PyTorch take once there is something to see.
fn in_gradients(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let values = |what| {
        let points = evidence.store.counter_of(what).into_iter().flat_map(|counter| counter.series.points());
        points
            .filter(|point| evidence.row_at(point.t_ns()).is_some())
            .filter_map(|point| point.value())
            .collect::<Vec<f64>>()
    };
    let mut shares = values(Reported::DenormalGradients);
    if shares.is_empty() {
        let how = "report them, gnntop.denormals(n): times alone do not show them";
        return CheckOutcome::NotEnough(how.to_owned());
    }
    let samples = shares.len();
    let Some(share) = median(&mut shares).map(|of_million| of_million / 1e6) else { return CheckOutcome::Nothing };
    // The program tells the most that it has measured so far.
    let cost = values(Reported::DenormalCost).into_iter().fold(100.0, f64::max) / 100.0;
    if samples < ENOUGH_SAMPLES || share < MANY || cost < COSTLY {
        return CheckOutcome::Nothing;
    }
    let confidence = if cost < CLEARLY_COSTLY { Confidence::Low } else { Confidence::Medium };
    let finding = Finding::for_run(FindingKind::Denormals, confidence, None, |facts| {
        let share = facts.share(Number::DenormalGradients, share);
        let cost = quantity(facts.number(Number::Ratio, cost));
        format!(
            "{share} of the gradients' numbers are denormal, and this processor takes {cost} times as long for such numbers"
        )
    });
    with_advice(finding.with_evidence_from(|facts| {
        let samples = facts.count(Number::Times, samples as u64);
        format!("gradients were sampled {samples} times; what the steps lose by it is not known")
    }))
    .into()
}

fn with_advice(finding: Finding) -> Finding {
    finding.with_advice("flush them to zero (torch.set_flush_denormal(True), or FTZ and DAZ in MXCSR)")
}
