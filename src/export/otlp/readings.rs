//! Readings of sensors, and energy with its source: of a process, and of a machine.

use std::collections::BTreeMap;

use gnntop_analysis::catalogue::Catalogue;
use gnntop_analysis::energy::{ComponentKind, EnergyScope};
use gnntop_analysis::store::{Signal, Store};
use gnntop_wire::SignalKind;

use super::metrics::{Attributes, Metrics, Number, Sample, Shape, labelled};
use super::names::{MetricName, Owner, hardware, unit};

/// Adds what is measured of the process, and its share of the energy.
pub(super) fn add_process(out: &mut Metrics, catalogue: &Catalogue<'_>) {
    add_signals(out, catalogue.store(), Owner::Process);
    let energy = catalogue.total_energy(EnergyScope::Job);
    let energy = energy.map(|(figure, _)| labelled("gnntop.scope", "job", Number::Real(figure.joules)));
    out.add("gnntop.energy", "J", Shape::Counter, energy);
}

/// Adds what is measured of the machine, and the energy of its parts.
pub(super) fn add_machine(out: &mut Metrics, catalogue: &Catalogue<'_>) {
    add_signals(out, catalogue.store(), Owner::Machine);
    let (book, time) = (catalogue.energy(), catalogue.store().session_ns());
    let parts = book.components.iter().filter_map(|component| {
        let figure = book.figure(component, EnergyScope::Device, time.clone())?;
        let kind = match component.kind {
            ComponentKind::Gpu => "gpu",
            ComponentKind::Cpu => "cpu",
            ComponentKind::Memory => "memory",
        };
        let id = component.name.replace(' ', ".");
        let source = component.source.as_deref();
        let all = [("hw.id", Some(id.as_str())), ("hw.type", Some(kind)), ("gnntop.source", source)];
        let all = all.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?.into())));
        Some((all.collect(), Number::Real(figure.joules)))
    });
    out.add("hw.energy", "J", Shape::Counter, parts);
}

/// The newest reading of every gauge, and what every counter counted since it was first read.
fn add_signals(out: &mut Metrics, store: &Store, owner: Owner) {
    let mut all: BTreeMap<String, (&'static str, Shape, Vec<Sample>)> = BTreeMap::new();
    for signal in store.signals().all() {
        let Some((metric, name)) = known(signal, owner) else { continue };
        // Of several signals for one thing, the one that was defined last counts.
        if store.signals().find(metric).is_none_or(|found| found.id != signal.id) {
            continue;
        }
        let Some(raw) = raw_value(signal) else { continue };
        let (unit, factor) = unit(signal.unit());
        let mut of: Attributes =
            name.attribute.map(|(name, text)| (name.to_owned(), text.into())).into_iter().collect();
        if let Some((kind, id)) = hardware(metric.quantity(), metric.instance()) {
            of.extend([("hw.id".to_owned(), id.into()), ("hw.type".to_owned(), kind.into())]);
            of.extend((!signal.device.is_empty()).then(|| ("hw.name".to_owned(), signal.device.as_str().into())));
        }
        let samples = all.entry(name.name.into_owned()).or_insert((unit, name.shape, Vec::new()));
        samples.2.push((of, Number::Real(raw * factor)));
    }
    for (name, (unit, shape, samples)) in all {
        out.add(&name, unit, shape, samples);
    }
}

fn known(signal: &Signal, owner: Owner) -> Option<(gnntop_wire::Metric, MetricName)> {
    let metric = signal.metric.metric()?;
    let is_of_owner = Owner::new(metric.quantity()) == owner;
    Some((metric, MetricName::new(metric.quantity()).filter(|_| is_of_owner)?))
}

fn raw_value(signal: &Signal) -> Option<f64> {
    if signal.kind() == SignalKind::Counter {
        let summary = signal.series.summary();
        return (summary.count > 0).then_some(summary.increase);
    }
    Some(signal.series.last()?.value()? as f64)
}
