//! Rare marks without durations: steps that are long at one, far more often than elsewhere.

use std::collections::BTreeSet;

use super::marked::{Effect, Marked, advised, between_excess};
use crate::findings::claim::Claim;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{Confidence, Finding, FindingKind, PLACES_LISTED};
use crate::findings::number::Number;
use crate::findings::robust::median;

/// Time that a mark must cost, as a share of a usual step...
const WORTH_REPORTING: f64 = 0.2;
/// ...and in standard deviations of the usual noise.
const SIGMAS: f64 = 5.0;
/// Share of a mark's places that must be long.
const MOSTLY: f64 = 0.34;
/// How many times as often as elsewhere that must be.
const MORE_OFTEN: f64 = 5.0;

/// The finding about such marks; `None` if steps elsewhere are long as often.
pub(super) fn finding(evidence: &StepEvidence<'_>, text: &str, marked: &Marked) -> Option<Finding> {
    let effects = &marked.effects;
    let is_long = |effect: &&Effect| long(evidence, effect.row, effect.excess_ns, effect.is_inside);
    let stalls: Vec<&Effect> = effects.iter().filter(is_long).collect();
    if stalls.is_empty() {
        return None;
    }
    let elsewhere = share_elsewhere(evidence, &stalls);
    if (stalls.len() as f64) < MOSTLY.max(MORE_OFTEN * elsewhere) * effects.len() as f64 {
        return None;
    }
    let cost: f64 = stalls.iter().map(|effect| effect.excess_ns).sum();
    let share = evidence.share(cost);
    // The time at a mark is not measured to be its.
    let confidence = if stalls.len() >= 3 { Confidence::Medium } else { Confidence::Low };
    let places = stalls.iter().take(PLACES_LISTED).map(|effect| effect.place(evidence, text)).collect();
    let finding = Finding::for_run(FindingKind::Stall, confidence, Some(share), |facts| {
        let each = facts.time(Number::Each, cost / stalls.len() as f64);
        let (share, places) = (facts.share(Number::OfTime, share), marked.describe_place(facts));
        format!("\"{text}\" costs {each} each time, {share} of the time in all: {places}")
    })
    .with_places(places, stalls.len() as u64)
    .with_claim(Claim::Steps(stalls.iter().map(|effect| effect.claim(evidence)).collect()))
    .with_evidence_from(|facts| {
        let costly = facts.count(Number::Costly, stalls.len() as u64);
        format!("time is lost at {costly} of {} such marks", facts.count(Number::Times, effects.len() as u64))
    })
    .with_evidence_from(|facts| {
        format!("{} of the other steps are as long", facts.share(Number::AsLongElsewhere, elsewhere))
    });
    Some(advised(finding, text, marked.outside))
}

fn long(evidence: &StepEvidence<'_>, row: usize, excess_ns: f64, is_inside: bool) -> bool {
    let noise_ns = if is_inside { evidence.noise_ns } else { evidence.between_noise_ns };
    excess_ns > WORTH_REPORTING * (evidence.expected_ns[row] + evidence.usual_between_ns)
        && excess_ns > SIGMAS * noise_ns
}

/// The share of steps without one of these marks that are about as long as these stalls, or have as much before them.
/// On a busy machine many steps are a little late, which is no reason to miss what costs far more.
fn share_elsewhere(evidence: &StepEvidence<'_>, stalls: &[&Effect]) -> f64 {
    let at_stalls: BTreeSet<usize> = stalls.iter().map(|stall| stall.row).collect();
    let mut costs: Vec<f64> = stalls.iter().map(|stall| stall.excess_ns).collect();
    let as_long = median(&mut costs).unwrap_or(0.0) / 2.0;
    let is_as_long = |row: usize| {
        let (inside, between) = (evidence.excess_ns(row), between_excess(evidence, row));
        let inside = inside > as_long && long(evidence, row, inside, true);
        inside || between > as_long && long(evidence, row, between, false)
    };
    let elsewhere = (0..evidence.rows.len()).filter(|row| is_as_long(*row) && !at_stalls.contains(row)).count();
    elsewhere as f64 / evidence.rows.len() as f64
}
