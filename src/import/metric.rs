//! What a column of measured values measures, by the name that was given for it. docs/import.md lists the names.

use gnntop_wire::{AnyMetric, Metric, Quantity, SignalKind, Unit};

/// What a table with a single processor may call its energy.
const ALONE: [(&str, Quantity); 2] = [("cpu.energy", Quantity::CpuEnergy), ("dram.energy", Quantity::DramEnergy)];

/// The metric with this name.
pub(super) fn parse(name: &str) -> Option<Metric> {
    let alone = ALONE.iter().find(|(alone, _)| *alone == name).map(|(_, energy)| energy.with_instance(0));
    alone.or_else(|| name.parse().ok())
}

/// What a column measures: the metric with this name if its values are of that kind and unit, or in no known unit.
pub(super) fn column_metric(name: &str, unit: Option<Unit>, kind: SignalKind) -> AnyMetric {
    let fits = |quantity: Quantity| quantity.kind() == kind && unit.is_none_or(|unit| unit == quantity.unit());
    match parse(name).filter(|metric| fits(metric.quantity())) {
        Some(metric) => metric.into(),
        None => AnyMetric::Other { name: name.to_owned(), unit: unit.unwrap_or(Unit::Count), kind },
    }
}
