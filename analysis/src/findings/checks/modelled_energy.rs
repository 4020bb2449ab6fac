//! Energy that was not measured: a number that a formula computes from time and a rated power.
//!
//! Either the sensor says so, or the number shows it: no real chip draws the same power for minutes while steps of
//! different kinds pass.

use gnntop_wire::{Quantity, SignalKind, SignalSource, Unit};

use crate::figures::FigureUnit;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::hardware;
use crate::findings::number::Number;
use crate::findings::robust::median;
use crate::findings::stated_numbers::StatedNumbers;
use crate::store::{Point, Signal};

/// With fewer readings a constant power may be chance.
const ENOUGH: usize = 20;
/// Powers that differ by no more than this share are equal.
const SAME: f64 = 0.002;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let is_energy = |unit: Unit| matches!(unit, Unit::Millijoules | Unit::Microjoules | Unit::Milliwatts);
    let has_readings = |signal: &&Signal| is_energy(signal.unit()) && signal.series.summary().count > 0;
    // A power limit is a setting, not a power.
    let signals = evidence.store.signals().all().iter().filter(has_readings).filter(|signal| !is_limit(signal));
    let signals: Vec<&Signal> = signals.collect();
    if signals.is_empty() {
        return CheckOutcome::NotEnough(nothing_measured(evidence).to_owned());
    }
    signals.into_iter().filter_map(|signal| finding(evidence, signal)).collect::<Vec<Finding>>().into()
}

fn is_limit(signal: &Signal) -> bool {
    signal.metric.metric().is_some_and(|metric| metric.quantity() == Quantity::GpuPowerLimit)
}

/// What is known of energy if no signal reports it.
fn nothing_measured(evidence: &StepEvidence<'_>) -> &'static str {
    let loads = [Quantity::MachineCpuBusy, Quantity::ProcessCpuTime];
    if loads.into_iter().any(|load| evidence.store.signals().find(load).is_some()) {
        "no energy counter is recorded; energy is modelled from the load and labelled as modelled"
    } else {
        "no energy or power is recorded"
    }
}

fn finding(evidence: &StepEvidence<'_>, signal: &Signal) -> Option<Finding> {
    let source = signal.source.to_string().to_lowercase();
    let advice = "do not compare it with measured energy";
    if ["model", "tdp", "estimate"].iter().any(|word| source.contains(word)) {
        let finding = Finding::for_run(FindingKind::ModelledEnergy, Confidence::High, None, |facts| {
            let number = modelled_number(facts, signal);
            format!("{} is modelled, not measured{number}", signal.metric)
        });
        return Some(finding.with_evidence(format!("its source: {}", signal.source)).with_advice(advice));
    }
    let (watts, by) = match constant_watts(evidence, signal) {
        Some(watts) => (watts, ""),
        None => (constant_in_steps(evidence, signal)?, " times each step's own time"),
    };
    let finding = Finding::for_run(FindingKind::ModelledEnergy, Confidence::Medium, None, |facts| {
        let power = facts.note(Number::Power, watts, FigureUnit::Power);
        format!("{} is a constant {power}{by}, so it is probably modelled, not measured", signal.metric)
    });
    Some(finding.with_evidence(format!("its source: {}", signal.source)).with_advice(advice))
}

/// What a modelled signal says: the energy that it counted, or the mean of the power or energy that it read.
fn modelled_number(facts: &mut StatedNumbers, signal: &Signal) -> String {
    let scale = if signal.unit() == Unit::Microjoules { 1e-6 } else { 1e-3 };
    let summary = signal.series.summary();
    let mut note = |name, value, unit| facts.note(name, value * scale, unit);
    match (signal.kind(), signal.unit()) {
        (SignalKind::Counter, _) => format!(": {} in all", note(Number::InAll, summary.increase, FigureUnit::Energy)),
        (SignalKind::Gauge, Unit::Milliwatts) => match summary.mean() {
            Some(mean) => format!(": {} on average", note(Number::Power, mean, FigureUnit::Power)),
            None => String::new(),
        },
        _ => String::new(),
    }
}

/// The power of nearly all readings; `None` if it varies, is close to 0, or is read too rarely.
fn constant_watts(evidence: &StepEvidence<'_>, signal: &Signal) -> Option<f64> {
    let scale = if signal.unit() == Unit::Microjoules { 1e-6 } else { 1e-3 };
    let mut watts: Vec<f64> = match signal.kind() {
        SignalKind::Counter => {
            signal.series.rates_per_s().filter_map(|(_, rate)| rate).map(|rate| rate * scale).collect()
        }
        SignalKind::Gauge => {
            let span = evidence.span_ns()?;
            hardware::held_values(signal, &span).map(|(value, _)| value * scale).collect()
        }
    };
    // A gauge repeats its value when nothing changes; a counter's increase does not.
    constant(&mut watts, if signal.kind() == SignalKind::Counter { 0.5 } else { 0.95 })
}

/// The power that an imported table's rows have as energy over a step's own time; `None` if it varies, and for a
/// sensor, which knows nothing of steps.
fn constant_in_steps(evidence: &StepEvidence<'_>, signal: &Signal) -> Option<f64> {
    if signal.kind() != SignalKind::Counter || !matches!(signal.source, SignalSource::Column(_)) {
        return None;
    }
    let scale = if signal.unit() == Unit::Microjoules { 1e3 } else { 1e6 };
    let pairs = signal.series.points().zip(signal.series.points().skip(1));
    let watts = |(before, after): (&Point<i64>, &Point<i64>)| {
        let row = &evidence.rows[evidence.row_at(after.t_ns())?];
        let own_ns = row.end_ns().checked_sub(row.start_ns()).filter(|ns| *ns > 0)?;
        let energy = after.value()?.checked_sub(before.value()?).filter(|energy| *energy > 0)?;
        Some(energy as f64 * scale / own_ns as f64)
    };
    constant(&mut pairs.filter_map(watts).collect::<Vec<f64>>(), 0.5)
}

/// The power of at least this share of the readings; `None` if it varies, is close to 0, or is read too rarely.
fn constant(watts: &mut [f64], enough: f64) -> Option<f64> {
    if watts.len() < ENOUGH {
        return None;
    }
    let usual = median(watts).filter(|watts| *watts > 1.0)?;
    let same = watts.iter().filter(|watts| (*watts - usual).abs() <= SAME * usual).count();
    (same as f64 >= enough * watts.len() as f64).then_some(usual)
}
