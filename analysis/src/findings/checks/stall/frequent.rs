//! Marks at more than one in four steps: how much longer steps with one take than those without.

use std::collections::BTreeSet;

use super::advice::{advice, outside};
use super::marked::{Marked, between_excess};
use crate::figures::{count, duration, percent};
use crate::findings::claim::{Claim, StepCost};
use crate::findings::evidence::Evidence;
use crate::findings::finding::{Confidence, Finding, Kind};
use crate::findings::robust::{median, sigma};

/// Reported from this share of the wall time.
const WORTH_SAYING: f64 = 0.01;
/// The difference is at least this many times its standard error.
const ERRORS: f64 = 6.0;
/// Steps needed on each side.
const ENOUGH: usize = 10;
/// The standard error of a median of normally distributed values, as a multiple of that of their mean.
const OF_MEDIAN: f64 = 1.2533;

/// The finding about such marks; `None` if steps with one take no longer, or all steps have one.
pub(super) fn finding(evidence: &Evidence<'_>, text: &str, marked: &Marked) -> Option<Finding> {
    let places = [more_at(evidence, marked, true), more_at(evidence, marked, false)];
    let costs: Vec<StepCost> = places.iter().flatten().flat_map(|more| more.costs.iter().copied()).collect();
    let cost_ns: f64 = costs.iter().map(|cost| cost.ns).sum();
    let share = evidence.share(cost_ns);
    if share < WORTH_SAYING {
        return None;
    }
    let summary = format!(
        "\"{text}\": {} times, about {} each, {} of the wall time, {}",
        count(marked.count()),
        duration((cost_ns / costs.len() as f64) as u64),
        percent(share),
        marked.place_in_words()
    );
    let mut finding = Finding::of_run(Kind::Stall, Confidence::Medium, Some(share), summary);
    finding.count = marked.count();
    for more in places.iter().flatten() {
        finding = finding.because(more.in_words());
    }
    if marked.outside > 0 {
        finding = finding.because(outside(marked.outside));
    }
    Some(finding.claiming(Claim::Steps(costs)).advise(advice(text)))
}

/// How much longer steps with a mark, or the time before them, are than others.
struct More {
    is_inside: bool,
    more_ns: f64,
    without: usize,
    costs: Vec<StepCost>,
}

impl More {
    fn in_words(&self) -> String {
        let what = if self.is_inside { "steps with this mark take" } else { "the time before steps with this mark is" };
        let more = if self.is_inside { "longer than" } else { "longer than before" };
        format!("{what} {} {more} the {} without", duration(self.more_ns as u64), count(self.without as u64))
    }
}

fn more_at(evidence: &Evidence<'_>, marked: &Marked, is_inside: bool) -> Option<More> {
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
    let error_ns = OF_MEDIAN * (variance(&with, with_ns) + variance(&without, without_ns)).sqrt();
    let more_ns = with_ns - without_ns;
    let costs = || rows.iter().map(|row| StepCost { row: *row, is_inside, ns: more_ns, is_excess: false }).collect();
    (more_ns > 0.0 && more_ns > ERRORS * error_ns).then(|| More {
        is_inside,
        more_ns,
        without: without.len(),
        costs: costs(),
    })
}
