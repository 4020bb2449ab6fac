//! A store as OpenMetrics text (1.0.0), for Prometheus and what reads its format.

use std::fmt::Write;

use gnntop_wire::{SignalKind, Unit};

use crate::store::{Distribution, Signal, Store};

/// Quantiles of the summaries.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// The session so far: counters of steps and work, summaries of phases in seconds, signals, findings as 1.
pub fn write(store: &Store) -> String {
    let mut out = String::new();
    let statistics = store.statistics();
    family(&mut out, "gnntop_steps", "counter", "Steps.");
    let _ = writeln!(out, "gnntop_steps_total {}", statistics.steps());
    let batch = statistics.batch();
    let work = [("graphs", batch.graphs), ("nodes", batch.nodes), ("edges", batch.edges), ("seeds", batch.seeds)];
    for (name, total) in work.into_iter().filter(|(_, total)| total.period_ns > 0) {
        family(&mut out, &format!("gnntop_{name}"), "counter", "Work of all steps that tell it.");
        let _ = writeln!(out, "gnntop_{name}_total {}", total.sum);
    }
    family(&mut out, "gnntop_phase_seconds", "summary", "Time of a step in a phase, in the gap, and in all as step.");
    let phases = store.phases().iter().filter_map(|phase| Some((phase.text.as_str(), statistics.phase(phase.slot)?)));
    let step = (statistics.steps() > 0).then(|| ("step", statistics.period()));
    phases.chain(step).for_each(|(name, durations)| summary(&mut out, name, durations));
    signals(&mut out, store);
    family(&mut out, "gnntop_dropped_events", "counter", "Events dropped by the program because a ring was full.");
    let _ = writeln!(out, "gnntop_dropped_events_total {}", store.losses().dropped_events);
    out += "# EOF\n";
    out
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# TYPE {name} {kind}\n# HELP {name} {help}");
}

fn summary(out: &mut String, phase: &str, durations: &Distribution) {
    let phase = escaped(phase);
    for quantile in QUANTILES {
        if let Some(ns) = durations.percentile(quantile) {
            let seconds = ns as f64 / 1e9;
            let _ = writeln!(out, "gnntop_phase_seconds{{phase=\"{phase}\",quantile=\"{quantile}\"}} {seconds}");
        }
    }
    let (count, sum) = (durations.count(), durations.total_ns() as f64 / 1e9);
    let _ = writeln!(out, "gnntop_phase_seconds_count{{phase=\"{phase}\"}} {count}");
    let _ = writeln!(out, "gnntop_phase_seconds_sum{{phase=\"{phase}\"}} {sum}");
}

/// The newest reading of every signal that has one, in base units; what is absent has no line.
fn signals(out: &mut String, store: &Store) {
    let newest = |signal: &Signal| signal.series.last().and_then(|point| point.value());
    for (name, kind) in [("gnntop_sensor", SignalKind::Gauge), ("gnntop_sensor_counted", SignalKind::Counter)] {
        let of_kind = store.signals().all().iter().filter(|signal| signal.kind == kind);
        let known: Vec<(&Signal, i64)> = of_kind.filter_map(|signal| Some((signal, newest(signal)?))).collect();
        if known.is_empty() {
            continue;
        }
        let (word, suffix) = if kind == SignalKind::Gauge { ("gauge", "") } else { ("counter", "_total") };
        family(out, name, word, "Sensors by name, in the unit that is a label.");
        for (signal, value) in known {
            let (unit, factor) = base_unit(signal.unit);
            let labels = format!("signal=\"{}\",unit=\"{unit}\"", escaped(&signal.name));
            let _ = writeln!(out, "{name}{suffix}{{{labels}}} {}", value as f64 * factor);
        }
    }
}

/// The unit that Prometheus's conventions ask for, and how much of it a raw value of 1 is.
fn base_unit(unit: Unit) -> (&'static str, f64) {
    match unit {
        Unit::Nanoseconds => ("seconds", 1e-9),
        Unit::Bytes => ("bytes", 1.0),
        Unit::MilliPercent => ("ratio", 1e-5),
        Unit::Milliwatts => ("watts", 1e-3),
        Unit::Millijoules => ("joules", 1e-3),
        Unit::Microjoules => ("joules", 1e-6),
        Unit::Megahertz => ("hertz", 1e6),
        Unit::MilliCelsius => ("celsius", 1e-3),
        Unit::BytesPerSecond => ("bytes_per_second", 1.0),
        _ => ("count", 1.0),
    }
}

/// A label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
