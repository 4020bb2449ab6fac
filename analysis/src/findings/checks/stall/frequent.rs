//! Marks at more than one in four steps: how much longer steps with one take than those without.

use std::collections::BTreeSet;

use super::marked::{Marked, advised, between_excess};
use crate::findings::claim::{Claim, StepCost};
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{Confidence, Finding, FindingKind};
use crate::findings::number::Number;
use crate::findings::robust::{median, sigma};
use crate::findings::stated_numbers::StatedNumbers;

/// Reported from this share of the wall time.
const WORTH_REPORTING: f64 = 0.01;
/// The difference is at least this many times its standard error.
const ERRORS: f64 = 6.0;
/// Steps needed on each side.
const ENOUGH: usize = 10;
/// The standard error of a median of normally distributed values, as a multiple of that of their mean.
const MEDIAN_ERROR_FACTOR: f64 = 1.2533;

/// The finding about such marks; `None` if steps with one take no longer, or all steps have one.
pub(super) fn finding(evidence: &StepEvidence<'_>, text: &str, marked: &Marked) -> Option<Finding> {
    let places = [marked_excess(evidence, marked, true), marked_excess(evidence, marked, false)];
    let costs: Vec<StepCost> = places.iter().flatten().flat_map(|more| more.costs.iter().copied()).collect();
    let cost_ns: f64 = costs.iter().map(|cost| cost.ns).sum();
    let share = evidence.share(cost_ns);
    if share < WORTH_REPORTING {
        return None;
    }
    let finding = Finding::for_run(FindingKind::Stall, Confidence::Medium, Some(share), |facts| {
        let times = facts.count(Number::Times, marked.count());
        let each = facts.time(Number::Each, cost_ns / costs.len() as f64);
        let (share, places) = (facts.share(Number::OfTime, share), marked.describe_place(facts));
        format!("\"{text}\": {times} times, about {each} each, {share} of the wall time, {places}")
    })
    .with_evidence_lines(|facts| places.iter().flatten().map(|more| more.describe(facts)).collect::<Vec<String>>());
    let finding = Finding { count: marked.count(), ..finding };
    Some(advised(finding.with_claim(Claim::Steps(costs)), text, marked.outside))
}

/// How much longer steps with a mark, or the time before them, are than others.
struct MarkedExcess {
    is_inside: bool,
    more_ns: f64,
    without: usize,
    costs: Vec<StepCost>,
}

impl MarkedExcess {
    fn describe(&self, facts: &mut StatedNumbers) -> String {
        let what = if self.is_inside { "steps with this mark take" } else { "the time before steps with this mark is" };
        let longer = if self.is_inside { "longer than" } else { "longer than before" };
        let place = if self.is_inside { "in steps" } else { "between steps" };
        facts.about(place, |facts| {
            let (more, without) =
                (facts.time(Number::More, self.more_ns), facts.count(Number::OfSteps, self.without as u64));
            format!("{what} {more} {longer} the {without} without")
        })
    }
}

fn marked_excess(evidence: &StepEvidence<'_>, marked: &Marked, is_inside: bool) -> Option<MarkedExcess> {
    let at_side = marked.effects.iter().filter(|effect| effect.is_inside == is_inside);
    let rows: BTreeSet<usize> = at_side.map(|effect| effect.row).collect();
    let excess = |row: usize| if is_inside { evidence.excess_ns(row) } else { between_excess(evidence, row) };
    let mut with: Vec<f64> = rows.iter().map(|row| excess(*row)).collect();
    // The time before an epoch's first step has other reasons.
    let is_other = |row: &usize| !rows.contains(row) && (is_inside || !evidence.begins_epoch(*row));
    let mut without: Vec<f64> = (0..evidence.rows.len()).filter(is_other).map(excess).collect();
    if with.len() < ENOUGH || without.len() < ENOUGH {
        return None;
    }
    let (with_ns, without_ns) = (median(&mut with)?, median(&mut without)?);
    let variance = |values: &[f64], center: f64| sigma(values.iter().copied(), center).powi(2) / values.len() as f64;
    let error_ns = MEDIAN_ERROR_FACTOR * (variance(&with, with_ns) + variance(&without, without_ns)).sqrt();
    let more_ns = with_ns - without_ns;
    let costs = || rows.iter().map(|row| StepCost { row: *row, is_inside, ns: more_ns, without_ns: None }).collect();
    (more_ns > 0.0 && more_ns > ERRORS * error_ns).then(|| MarkedExcess {
        is_inside,
        more_ns,
        without: without.len(),
        costs: costs(),
    })
}
