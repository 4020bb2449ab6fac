//! A store as OpenMetrics text (1.0.0), for Prometheus and what reads its format.
//!
//! Counters only ever grow while a session is followed. What is absent has no line, rather than a zero.

use std::collections::HashSet;
use std::fmt::Write;

use gnntop_wire::{SignalKind, Unit};

use gnntop_analysis::catalogue::Catalogue;
use gnntop_analysis::findings::FindingKind;
use gnntop_analysis::store::{Distribution, SessionState, Signal, Store};

/// The value of a figure by its name; `None` where the session does not have it.
type Figure<'f> = &'f dyn Fn(&str) -> Option<f64>;

/// Quantiles of the summaries.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// The session so far: counters of steps, work and losses, summaries of steps, gaps and phases in seconds, gauges,
/// sensors, and how often each kind of finding was seen.
pub fn write(catalogue: &Catalogue<'_>) -> String {
    let (store, figure) = (catalogue.store(), |name: &str| catalogue.value(name));
    let mut out = String::new();
    session(&mut out, store);
    work(&mut out, store, &figure);
    durations(&mut out, store);
    gauges(&mut out, store, &figure);
    signals(&mut out, store);
    if store.statistics().steps() > 0 {
        counts(&mut out, &figure);
    }
    losses(&mut out, &figure);
    out += "# EOF\n";
    out
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# TYPE {name} {kind}\n# HELP {name} {help}");
}

fn counter(out: &mut String, name: &str, help: &str, value: u64) {
    family(out, name, "counter", help);
    let _ = writeln!(out, "{name}_total {value}");
}

fn gauge(out: &mut String, name: &str, help: &str, value: Option<f64>) {
    if let Some(value) = value {
        family(out, name, "gauge", help);
        let _ = writeln!(out, "{name} {}", number(value));
    }
}

fn session(out: &mut String, store: &Store) {
    if let Some(info) = store.session().info() {
        family(out, "gnntop_session", "info", "The program that is observed.");
        let (name, host) = (escaped(&info.name), escaped(&info.host));
        let _ = writeln!(out, "gnntop_session_info{{name=\"{name}\",host=\"{host}\",pid=\"{}\"}} 1", info.pid);
    }
    let is_live = match store.session().state() {
        SessionState::Unknown => None,
        SessionState::Running => Some(1.0),
        SessionState::Ended(_) | SessionState::Gone => Some(0.0),
    };
    gauge(out, "gnntop_session_live", "1 while the program runs, 0 after its end.", is_live);
}

fn work(out: &mut String, store: &Store, figure: Figure<'_>) {
    counter(out, "gnntop_steps", "Steps.", store.statistics().steps());
    for name in ["graphs", "nodes", "edges", "seeds"] {
        if let Some(total) = figure(&format!("{name}.total")) {
            counter(out, &format!("gnntop_{name}"), "Work of all steps that report it.", total as u64);
        }
    }
}

fn durations(out: &mut String, store: &Store) {
    let statistics = store.statistics();
    if statistics.steps() == 0 {
        return;
    }
    let step = "gnntop_step_seconds";
    family(out, step, "summary", "Time from the start of a step to its end.");
    summary(out, step, "", statistics.step());
    let period = "gnntop_period_seconds";
    family(out, period, "summary", "Time from the end of a step to the end of the next, with the gap between them.");
    summary(out, period, "", statistics.period());
    let gap = "gnntop_gap_seconds";
    family(out, gap, "summary", "Time of a step outside every phase.");
    summary(out, gap, "", statistics.gap());
    let phase = "gnntop_phase_seconds";
    family(out, phase, "summary", "Time of a step in a phase.");
    for shown in store.phases().iter().filter(|shown| !shown.is_gap()) {
        if let Some(durations) = statistics.phase(shown.slot) {
            summary(out, phase, &format!("phase=\"{}\"", escaped(&shown.text)), durations);
        }
    }
}

fn summary(out: &mut String, name: &str, label: &str, durations: &Distribution) {
    let comma = if label.is_empty() { "" } else { "," };
    for quantile in QUANTILES {
        if let Some(ns) = durations.percentile(quantile) {
            let seconds = ns as f64 / 1e9;
            let _ = writeln!(out, "{name}{{{label}{comma}quantile=\"{quantile}\"}} {seconds}");
        }
    }
    let labels = if label.is_empty() { String::new() } else { format!("{{{label}}}") };
    let (count, sum) = (durations.count(), durations.total_ns() as f64 / 1e9);
    let _ = writeln!(out, "{name}_count{labels} {count}\n{name}_sum{labels} {sum}");
}

fn gauges(out: &mut String, store: &Store, figure: Figure<'_>) {
    let epoch = store.statistics().last_epoch().map(|epoch| epoch as f64);
    gauge(out, "gnntop_epoch", "The epoch of the newest step.", epoch);
    gauge(out, "gnntop_loss", "The newest loss.", figure("loss.last"));
    gauge(out, "gnntop_heap_bytes", "Memory that the program has allocated and not freed.", figure("heap.last"));
    let peak = "Peak of the memory that the program has allocated.";
    gauge(out, "gnntop_heap_peak_bytes", peak, figure("heap.peak"));
    let newest = |value: Option<f64>, name: &str| Some((format!("name=\"{}\"", escaped(name)), value?));
    let newest_counts = store
        .counters()
        .iter()
        .filter_map(|counter| newest(counter.series.last().and_then(|point| point.value()), store.name(counter.name)));
    samples(out, ("gnntop_value", "gauge", ""), "The program's own counters, which may go down.", newest_counts);
}

/// Lines of a family that differ in their labels; of equal labels the first.
fn samples(
    out: &mut String,
    (name, kind, suffix): (&str, &str, &str),
    help: &str,
    lines: impl Iterator<Item = (String, f64)>,
) {
    let mut seen = HashSet::new();
    for (labels, value) in lines {
        if seen.is_empty() {
            family(out, name, kind, help);
        }
        let line = format!("{name}{suffix}{{{labels}}} {}", number(value));
        if seen.insert(labels) {
            let _ = writeln!(out, "{line}");
        }
    }
}

/// In base units: the newest reading of every gauge that has one, and what every counter counted since it was first
/// read. Readings of a counter may start over; their forward differences do not go back.
fn signals(out: &mut String, store: &Store) {
    let of_kind = |kind| store.signals().all().iter().filter(move |signal| signal.kind() == kind);
    let labelled = |signal: &Signal, value: f64| {
        let (unit, factor) = base_unit(signal.unit());
        let device =
            if signal.device.is_empty() { String::new() } else { format!("device=\"{}\",", escaped(&signal.device)) };
        (format!("signal=\"{}\",{device}unit=\"{unit}\"", escaped(&signal.metric.to_string())), value * factor)
    };
    let newest = |signal: &Signal| signal.series.last().and_then(|point| point.value());
    let gauges = of_kind(SignalKind::Gauge).filter_map(|signal| Some(labelled(signal, newest(signal)? as f64)));
    samples(out, ("gnntop_sensor", "gauge", ""), "Sensors by name; the unit is a label.", gauges);
    let counted = of_kind(SignalKind::Counter).filter(|signal| signal.series.summary().count > 0);
    let counted = counted.map(|signal| labelled(signal, signal.series.summary().increase));
    let help = "Counts of sensors since they were first read; the unit is a label.";
    samples(out, ("gnntop_sensor_counted", "counter", "_total"), help, counted);
}

/// How often each kind of finding was seen; kinds that could not be decided have no line.
fn counts(out: &mut String, figure: Figure<'_>) {
    let line = |kind: &FindingKind| {
        Some((format!("kind=\"{}\"", kind.id()), figure(&format!("finding.{}.count", kind.id()))?))
    };
    let lines = FindingKind::ALL.iter().filter_map(line);
    samples(out, ("gnntop_findings", "gauge", ""), "How often each kind of finding was seen.", lines);
}

fn losses(out: &mut String, figure: Figure<'_>) {
    let all = [
        ("dropped_events", "Events that the program dropped because a ring was full."),
        ("missed_events", "Events that were published and could not be read."),
        ("lost_segments", "Segments that were gone before they could be read."),
    ];
    for (name, help) in all {
        let lost = figure(&format!("lost.{name}.total")).unwrap_or(0.0);
        counter(out, &format!("gnntop_{name}"), help, lost as u64);
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

/// A value; OpenMetrics has its own words for those that are no numbers.
fn number(value: f64) -> String {
    match value {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        _ => value.to_string(),
    }
}

/// A label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
