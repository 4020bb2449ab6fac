//! Growth that is the same in each step, seen within some hundred steps: too few readings for more than a possibility.

use super::growth_time::{GrowthTime, LEAST_BYTES, LEAST_SHARE};
use super::memory_kind::MemoryKind;
use super::owner;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{Confidence, Finding, FindingKind, Severity};
use crate::findings::number::Number;
use crate::findings::robust::{LinearFit, correlation};

/// With fewer steps or readings, a program may still be taking its memory.
const ENOUGH_STEPS: usize = 200;
const ENOUGH_READINGS: usize = 6;
/// Memory and steps follow a straight line (correlation).
const STRAIGHT: f64 = 0.99;

/// The finding; `None` if the memory does not rise from reading to reading, by the same for each step.
pub(super) fn finding(evidence: &StepEvidence<'_>, time: &GrowthTime, of: MemoryKind) -> Option<Finding> {
    let step_at = |t_ns: u64| Some(evidence.rows[evidence.row_at(t_ns)?].ordinal() as f64);
    let readings = of.readings(evidence.store, time).into_iter();
    let pairs: Vec<(f64, f64)> = readings.filter_map(|(t_ns, bytes)| Some((step_at(t_ns)?, bytes))).collect();
    if evidence.rows.len() < ENOUGH_STEPS || pairs.len() < ENOUGH_READINGS {
        return None;
    }
    let (first, last) = (pairs[0], pairs[pairs.len() - 1]);
    let grown = last.1 - first.1;
    let rises = pairs.windows(2).all(|pair| pair[1].1 > pair[0].1);
    if !rises || grown < LEAST_BYTES.max(LEAST_SHARE * first.1) || correlation(&pairs)? < STRAIGHT {
        return None;
    }
    let each = LinearFit::fit(&pairs)?.slope;
    let finding = Finding::for_run(FindingKind::MemoryGrowth, Confidence::Low, None, |facts| {
        let (from, to) = (facts.bytes(Number::From, first.1), facts.bytes(Number::To, last.1));
        let steps = facts.count(Number::Steps, (last.0 - first.0) as u64);
        let each = facts.bytes(Number::BytesPerStep, each);
        format!("{of} grows from {from} to {to} in {steps} steps, by the same {each} in each")
    });
    let finding = finding.with_evidence_from(|facts| {
        let readings = facts.count(Number::Readings, pairs.len() as u64);
        format!("it is higher in each of {readings} readings; a program that still fills its caches looks the same")
    });
    owner::finding(evidence, time, of, grown, Finding { severity: Severity::Minor, ..finding })
}
