//! Aliasing: a sensor whose readings fall on the same part of every step, so that its mean describes only that part.
//!
//! The position of a reading in its step is an angle. If all were equally likely, the mean vector would be short.
//! Its length is tested by Rayleigh's test (Mardia and Jupp, *Directional Statistics*, 2000, section 6.3).

use std::f64::consts::TAU;

use gnntop_wire::SignalKind;

use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::number::Number;
use crate::store::{Point, Signal};

/// With fewer readings there is no pattern.
const ENOUGH: usize = 40;
/// Readings favour a part of the step from this length of the mean vector (0 to 1).
const FAVOURS: f64 = 0.5;
/// More readings a step than this cover all of it.
const MANY_PER_STEP: f64 = 2.0;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let is_gauge = |signal: &&Signal| signal.kind() == SignalKind::Gauge && !signal.series.is_empty();
    let mut gauges = evidence.store.signals().all().iter().filter(is_gauge).peekable();
    if gauges.peek().is_none() {
        return CheckOutcome::NotEnough("no gauge is sampled, and counters lose nothing between readings".to_owned());
    }
    if !gauges.any(|gauge| gauge.source.is_sampled()) {
        let reason = "readings were imported, one per step: they are means or last values, not samples";
        return CheckOutcome::NotEnough(reason.to_owned());
    }
    let times = reading_times(evidence);
    if times.len() < ENOUGH {
        return CheckOutcome::NotEnough(format!("sensors were read only {} times during these steps", times.len()));
    }
    if times.len() as f64 > MANY_PER_STEP * evidence.rows.len() as f64 {
        return CheckOutcome::Nothing;
    }
    let angle = |t_ns: &u64| {
        let row = &evidence.rows[evidence.row_at(*t_ns)?];
        Some(t_ns.saturating_sub(row.period_start_ns()) as f64 / row.period_ns().max(1) as f64 * TAU)
    };
    let angles: Vec<f64> = times.iter().filter_map(angle).collect();
    let n = angles.len().max(1) as f64;
    let mean = |f: fn(f64) -> f64| angles.iter().map(|angle| f(*angle)).sum::<f64>() / n;
    let (x, y) = (mean(f64::cos), mean(f64::sin));
    let favours = x.hypot(y);
    if favours < FAVOURS {
        return CheckOutcome::Nothing;
    }
    let at = y.atan2(x).rem_euclid(TAU) / TAU;
    let apart = times[times.len() - 1].saturating_sub(times[0]) / (times.len() as u64 - 1).max(1);
    let finding = Finding::for_run(FindingKind::Aliasing, Confidence::High, None, |facts| {
        let part = facts.share(Number::AtPart, at);
        let is_inside = (0.05..=0.95).contains(&at);
        let place = if is_inside { format!("{part} into a step") } else { "between two steps".to_owned() };
        format!("sensors are read mostly {place}, so their means describe only that part of a step")
    })
    .with_evidence_from(|facts| {
        let apart = facts.time(Number::ReadingsApart, apart as f64);
        let (readings, length) =
            (facts.count(Number::Readings, times.len() as u64), facts.number(Number::Favours, favours));
        format!("{readings} readings, {apart} apart; their mean vector has length {length:.2}")
    });
    finding.with_advice("sample at an interval that is not a multiple of the step time").into()
}

/// When sensors were read during the rows, each time counted once.
fn reading_times(evidence: &StepEvidence<'_>) -> Vec<u64> {
    let Some(span) = evidence.span_ns() else { return Vec::new() };
    // Signals of one pass are read a moment apart: the one with the most readings represents all.
    let within = |signal: &Signal| {
        let times = signal.series.points().map(Point::t_ns).filter(|t_ns| span.contains(t_ns));
        times.collect::<Vec<u64>>()
    };
    let sampled = evidence.store.signals().all().iter().filter(|signal| signal.source.is_sampled());
    sampled.map(within).max_by_key(Vec::len).unwrap_or_default()
}
