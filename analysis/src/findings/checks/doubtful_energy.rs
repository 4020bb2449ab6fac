//! Energy counters that are not what they seem: one that does not change and then jumps says nothing about single
//! steps; of two that always grow in proportion, one was computed from the other.

use std::collections::HashMap;
use std::time::Duration;

use gnntop_wire::{SignalKind, Unit};

use crate::figures::duration;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::number::Number;
use crate::findings::robust::quantile;
use crate::store::{Point, Signal};

/// With fewer readings a pattern may be chance.
const ENOUGH: usize = 20;
/// Reported from this share of readings without any increase.
const STILL: f64 = 0.2;
/// Two counters whose ratio varies by less than this share are one measurement.
const SAME_RATIO: f64 = 0.001;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let is_energy = |signal: &&Signal| {
        signal.kind() == SignalKind::Counter && matches!(signal.unit(), Unit::Millijoules | Unit::Microjoules)
    };
    let counters: Vec<EnergyCounter<'_>> =
        evidence.store.signals().all().iter().filter(is_energy).map(EnergyCounter::new).collect();
    if counters.iter().all(|counter| counter.increases.len() < ENOUGH) {
        return CheckOutcome::NotEnough("no energy counter was read often enough".to_owned());
    }
    let mut found: Vec<Finding> = counters.iter().filter_map(EnergyCounter::find_standstill).collect();
    for (at, counter) in counters.iter().enumerate() {
        found.extend(counters[at + 1..].iter().filter_map(|other| counter.find_proportion(other)));
    }
    found.into()
}

/// A counter with what it counted between readings.
struct EnergyCounter<'a> {
    signal: &'a Signal,
    /// For each interval: the time of the later reading, the interval's length, and the increase.
    increases: Vec<Increase>,
}

struct Increase {
    t_ns: u64,
    after_ns: u64,
    /// In the signal's own unit.
    energy: f64,
}

impl<'a> EnergyCounter<'a> {
    fn new(signal: &'a Signal) -> Self {
        let pairs = signal.series.points().zip(signal.series.points().skip(1));
        let increase = |(before, after): (&Point<i64>, &Point<i64>)| {
            let energy = after.value()?.checked_sub(before.value()?).filter(|energy| *energy >= 0)? as f64;
            Some(Increase { t_ns: after.t_ns(), after_ns: after.t_ns().saturating_sub(before.t_ns()), energy })
        };
        Self { signal, increases: pairs.filter_map(increase).collect() }
    }

    fn find_standstill(&self) -> Option<Finding> {
        let readings = self.increases.len();
        let still = self.increases.iter().filter(|increase| increase.energy == 0.0).count();
        let share = still as f64 / readings.max(1) as f64;
        if readings < ENOUGH || still == readings || share < STILL {
            return None;
        }
        let (mut longest_ns, mut now_ns) = (0, 0u64);
        for increase in &self.increases {
            now_ns = if increase.energy == 0.0 { now_ns.saturating_add(increase.after_ns) } else { 0 };
            longest_ns = longest_ns.max(now_ns);
        }
        let finding = Finding::for_run(FindingKind::DoubtfulEnergy, Confidence::Medium, None, |facts| {
            let (metric, still) = (&self.signal.metric, facts.share(Number::Still, share));
            format!(
                "{metric} does not change in {still} of its readings and then jumps: \
                    it cannot give the energy of single steps"
            )
        })
        .with_evidence_from(|facts| {
            let longest = facts.time(Number::Longest, longest_ns as f64);
            format!("{} readings; constant for up to {longest}", facts.count(Number::Readings, readings as u64))
        });
        let advice = format!("compare energy over much longer than {}", duration(longest_ns.max(MOMENT)));
        Some(finding.with_advice(advice))
    }

    fn find_proportion(&self, other: &Self) -> Option<Finding> {
        let of_other: HashMap<u64, f64> = other.increases.iter().map(|one| (one.t_ns, one.energy)).collect();
        let ratio =
            |one: &Increase| of_other.get(&one.t_ns).filter(|_| one.energy > 0.0).map(|other| other / one.energy);
        let mut ratios: Vec<f64> = self.increases.iter().filter_map(ratio).filter(|ratio| *ratio > 0.0).collect();
        if ratios.len() < ENOUGH {
            return None;
        }
        let (low, usual, high) =
            (quantile(&mut ratios, 0.05)?, quantile(&mut ratios, 0.5)?, quantile(&mut ratios, 0.95)?);
        if high - low > SAME_RATIO * usual {
            return None;
        }
        let (name, other) = (&self.signal.metric, &other.signal.metric);
        let finding = Finding::for_run(FindingKind::DoubtfulEnergy, Confidence::Medium, None, |facts| {
            let usual = facts.number(Number::Ratio, usual);
            format!("{other} is always {usual:.4} x {name}: one of the two is computed, not measured")
        })
        .with_evidence_from(|facts| {
            let readings = facts.count(Number::Readings, ratios.len() as u64);
            format!("in {readings} readings the ratio varies by less than 0.1 %")
        });
        Some(finding.with_advice("find out which of them is measured, and use only that one"))
    }
}

/// The shortest time that the advice mentions.
const MOMENT: u64 = Duration::from_secs(1).as_nanos() as u64;
