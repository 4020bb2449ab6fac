//! Energy that nobody measured: a number that a formula made from time and a rated power.
//!
//! Either the sensor says so itself, or the number gives itself away: no real chip draws the same power for minutes
//! while steps of different kinds pass.

use gnntop_wire::{SignalKind, Unit};

use super::check::Check;
use crate::figures::quantity;
use crate::findings::evidence::Evidence;
use crate::findings::finding::{Confidence, Finding, Kind, Outcome};
use crate::findings::robust::median;
use crate::findings::signals;
use crate::store::Signal;

/// Readings below which a constant power is chance.
const ENOUGH: usize = 20;
/// Powers that differ by no more than this share are the same.
const SAME: f64 = 0.002;

/// The check.
pub(super) struct ModelledEnergy;

impl Check for ModelledEnergy {
    fn kind(&self) -> Kind {
        Kind::ModelledEnergy
    }

    fn look(&self, evidence: &Evidence<'_>) -> Outcome {
        let is_energy = |unit: Unit| matches!(unit, Unit::Millijoules | Unit::Microjoules | Unit::Milliwatts);
        let has_readings = |signal: &&Signal| is_energy(signal.unit) && signal.series.summary().count > 0;
        // A power limit is a setting and not a power.
        let signals = evidence.store.signals().all().iter().filter(has_readings).filter(|s| !s.name.ends_with("limit"));
        let signals: Vec<&Signal> = signals.collect();
        if signals.is_empty() {
            return Outcome::NotEnough("no energy or power is recorded".to_owned());
        }
        signals.into_iter().filter_map(|signal| finding(evidence, signal)).collect::<Vec<Finding>>().into()
    }
}

fn finding(evidence: &Evidence<'_>, signal: &Signal) -> Option<Finding> {
    let source = signal.source.to_lowercase();
    let advice = "compare it with nothing measured; use the CPU's or GPU's own energy counters where they can be read";
    if ["model", "tdp", "estimate"].iter().any(|word| source.contains(word)) {
        let summary = format!("{} is modelled, not measured", signal.name);
        let finding = Finding::of_run(Kind::ModelledEnergy, Confidence::High, None, summary);
        return Some(finding.because(format!("its source: {}", signal.source)).advise(advice));
    }
    let watts = constant_watts(evidence, signal)?;
    let summary =
        format!("{} is a constant {} W, as if it were modelled and not measured", signal.name, quantity(watts));
    let finding = Finding::of_run(Kind::ModelledEnergy, Confidence::Medium, None, summary);
    Some(finding.because(format!("its source: {}", signal.source)).advise(advice))
}

/// The power that nearly all readings have; `None` where it varies, is next to nothing, or is read too rarely.
fn constant_watts(evidence: &Evidence<'_>, signal: &Signal) -> Option<f64> {
    let scale = if signal.unit == Unit::Microjoules { 1e-6 } else { 1e-3 };
    let mut watts: Vec<f64> = match signal.kind {
        SignalKind::Counter => {
            signal.series.rates_per_s().filter_map(|(_, rate)| rate).map(|rate| rate * scale).collect()
        }
        SignalKind::Gauge => {
            let span = evidence.span_ns()?;
            signals::held(signal, &span).map(|(value, _)| value * scale).collect()
        }
    };
    if watts.len() < ENOUGH {
        return None;
    }
    let usual = median(&mut watts).filter(|watts| *watts > 1.0)?;
    let same = watts.iter().filter(|watts| (*watts - usual).abs() <= SAME * usual).count();
    // A gauge repeats itself where nothing changes; what a counter counts does not.
    let enough = if signal.kind == SignalKind::Counter { 0.5 } else { 0.95 };
    (same as f64 >= enough * watts.len() as f64).then_some(usual)
}
