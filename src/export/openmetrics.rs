//! Sessions as OpenMetrics text (1.0.0), for Prometheus and what reads its format.
//!
//! Counters only ever grow while a session is followed. What is absent has no line, rather than a zero.

use std::collections::HashSet;
use std::fmt::Write;

use gnntop_wire::{Scope, SignalKind, Unit};

use gnntop_analysis::catalogue::Catalogue;
use gnntop_analysis::findings::FindingKind;
use gnntop_analysis::store::{Distribution, SessionState, Signal, StepStatistics, Store};

/// Quantiles of the summaries.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// A session that is written, alone or among others.
pub struct ServedSession<'a> {
    /// Its figures.
    pub catalogue: Catalogue<'a>,
    /// What tells it apart from others; `None` if it is the only one.
    pub identity: Option<Identity>,
    /// Whether its findings are written: they are those of a whole run.
    pub has_findings: bool,
}

/// The labels of a session among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The run's id, or the session's name and process.
    pub run: String,
    /// Its rank in the run.
    pub rank: u32,
    /// Its machine, whose own figures have this label alone.
    pub host: String,
}

impl<'a> ServedSession<'a> {
    /// The only session that is written.
    pub fn alone(catalogue: Catalogue<'a>) -> Self {
        Self { catalogue, identity: None, has_findings: true }
    }

    fn store(&self) -> &'a Store {
        self.catalogue.store()
    }

    /// Labels of a line of its own.
    fn labels(&self, more: &[(&str, &str)]) -> String {
        let rank = self.identity.as_ref().map(|identity| identity.rank.to_string()).unwrap_or_default();
        let own = self.identity.iter().flat_map(|identity| [("run", identity.run.as_str()), ("rank", rank.as_str())]);
        joined(own.chain(more.iter().copied()))
    }

    /// Labels of a line about its machine.
    fn machine_labels(&self, more: &[(&str, &str)]) -> String {
        let host = self.identity.iter().map(|identity| ("host", identity.host.as_str()));
        joined(host.chain(more.iter().copied()))
    }
}

fn joined<'t>(labels: impl Iterator<Item = (&'t str, &'t str)>) -> String {
    labels.map(|(name, text)| format!("{name}=\"{}\"", escaped(text))).collect::<Vec<_>>().join(",")
}

/// The sessions so far: counters of steps, work and losses, summaries of steps, gaps and phases in seconds, gauges,
/// sensors, and how often each kind of finding was seen.
pub fn write(all: &[ServedSession<'_>]) -> String {
    let mut out = String::new();
    session(&mut out, all);
    work(&mut out, all);
    durations(&mut out, all);
    gauges(&mut out, all);
    signals(&mut out, all);
    counts(&mut out, all);
    losses(&mut out, all);
    out += "# EOF\n";
    out
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# TYPE {name} {kind}\n# HELP {name} {help}");
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
        let line = format!("{name}{suffix}{} {}", braced(&labels), number(value));
        if seen.insert(labels) {
            let _ = writeln!(out, "{line}");
        }
    }
}

fn braced(labels: &str) -> String {
    if labels.is_empty() { String::new() } else { format!("{{{labels}}}") }
}

/// A figure of a session; `None` where it does not have it.
type Value<'v> = &'v dyn Fn(&ServedSession<'_>) -> Option<f64>;

fn counter(out: &mut String, all: &[ServedSession<'_>], name: &str, help: &str, value: Value<'_>) {
    let lines = all.iter().filter_map(|session| Some((session.labels(&[]), value(session)?)));
    samples(out, (name, "counter", "_total"), help, lines);
}

fn gauge(out: &mut String, all: &[ServedSession<'_>], name: &str, help: &str, value: Value<'_>) {
    let lines = all.iter().filter_map(|session| Some((session.labels(&[]), value(session)?)));
    samples(out, (name, "gauge", ""), help, lines);
}

fn session(out: &mut String, all: &[ServedSession<'_>]) {
    let info = |session: &ServedSession<'_>| {
        let info = session.store().session().info()?;
        let pid = info.pid.to_string();
        Some((session.labels(&[("name", &info.name), ("host", &info.host), ("pid", &pid)]), 1.0))
    };
    let help = "The program that is observed.";
    samples(out, ("gnntop_session", "info", "_info"), help, all.iter().filter_map(info));
    let help = "1 while the program runs, 0 after its end.";
    gauge(out, all, "gnntop_session_live", help, &|session| match session.store().session().state() {
        SessionState::Unknown => None,
        SessionState::Running => Some(1.0),
        SessionState::Ended(_) | SessionState::Gone => Some(0.0),
    });
}

fn work(out: &mut String, all: &[ServedSession<'_>]) {
    counter(out, all, "gnntop_steps", "Steps.", &|session| Some(session.store().statistics().steps() as f64));
    for name in ["graphs", "nodes", "edges", "seeds"] {
        let help = "Work of all steps that report it.";
        counter(out, all, &format!("gnntop_{name}"), help, &|session| {
            session.catalogue.value(&format!("{name}.total"))
        });
    }
}

fn durations(out: &mut String, all: &[ServedSession<'_>]) {
    let with_steps: Vec<_> = all.iter().filter(|session| session.store().statistics().steps() > 0).collect();
    if with_steps.is_empty() {
        return;
    }
    type OfSteps = fn(&StepStatistics) -> &Distribution;
    let of_steps: [(&str, &str, OfSteps); 3] = [
        ("gnntop_step_seconds", "Time from the start of a step to its end.", StepStatistics::step),
        (
            "gnntop_period_seconds",
            "Time from the end of a step to the end of the next, with the gap between them.",
            StepStatistics::period,
        ),
        ("gnntop_gap_seconds", "Time of a step outside every phase.", StepStatistics::gap),
    ];
    for (name, help, of) in of_steps {
        family(out, name, "summary", help);
        with_steps.iter().for_each(|session| summary(out, name, session, None, of(session.store().statistics())));
    }
    let phase = "gnntop_phase_seconds";
    family(out, phase, "summary", "Time of a step in a phase.");
    for session in with_steps {
        let store = session.store();
        for shown in store.phases().iter().filter(|shown| !shown.is_gap()) {
            if let Some(durations) = store.statistics().phase(shown.slot) {
                summary(out, phase, session, Some(&shown.text), durations);
            }
        }
    }
}

fn summary(out: &mut String, name: &str, of: &ServedSession<'_>, phase: Option<&str>, durations: &Distribution) {
    let phase = phase.map(|phase| ("phase", phase));
    for quantile in QUANTILES {
        if let Some(ns) = durations.percentile(quantile) {
            let (text, seconds) = (quantile.to_string(), ns as f64 / 1e9);
            let more: Vec<_> = phase.into_iter().chain([("quantile", text.as_str())]).collect();
            let _ = writeln!(out, "{name}{} {seconds}", braced(&of.labels(&more)));
        }
    }
    let labels = braced(&of.labels(phase.as_slice()));
    let (count, sum) = (durations.count(), durations.total_ns() as f64 / 1e9);
    let _ = writeln!(out, "{name}_count{labels} {count}\n{name}_sum{labels} {sum}");
}

fn gauges(out: &mut String, all: &[ServedSession<'_>]) {
    let epoch = |session: &ServedSession<'_>| session.store().statistics().last_epoch().map(|epoch| epoch as f64);
    gauge(out, all, "gnntop_epoch", "The epoch of the newest step.", &epoch);
    gauge(out, all, "gnntop_loss", "The newest loss.", &|session| session.catalogue.value("loss.last"));
    let help = "The part of the way to the run's goal that is done.";
    gauge(out, all, "gnntop_goal_ratio", help, &|session| session.catalogue.value("goal.share"));
    let help = "What the rest of the way to the goal takes at the pace so far.";
    let left = |session: &ServedSession<'_>| Some(session.catalogue.value("time_left.total")? / 1e9);
    gauge(out, all, "gnntop_time_left_seconds", help, &left);
    let help = "Memory that the program has allocated and not freed.";
    gauge(out, all, "gnntop_heap_bytes", help, &|session| session.catalogue.value("heap.last"));
    let help = "Peak of the memory that the program has allocated.";
    gauge(out, all, "gnntop_heap_peak_bytes", help, &|session| session.catalogue.value("heap.peak"));
    let newest_counts = all.iter().flat_map(|session| {
        let store = session.store();
        store.counters().iter().filter_map(move |counter| {
            let value = counter.series.last().and_then(|point| point.value())?;
            Some((session.labels(&[("name", store.name(counter.name))]), value))
        })
    });
    samples(out, ("gnntop_value", "gauge", ""), "The program's own counters, which may go down.", newest_counts);
}

/// In base units: the newest reading of every gauge that has one, and what every counter counted since it was first
/// read. Readings of a counter may start over; their forward differences do not go back.
fn signals(out: &mut String, all: &[ServedSession<'_>]) {
    let of_kind = |kind| all.iter().flat_map(move |session| signals_of(session, kind));
    let newest = |signal: &Signal| Some(signal.series.last()?.value()? as f64);
    let gauges = of_kind(SignalKind::Gauge).filter_map(|(of, signal)| Some(sensor_line(of, signal, newest(signal)?)));
    samples(out, ("gnntop_sensor", "gauge", ""), "Sensors by name; the unit is a label.", gauges);
    let counted = of_kind(SignalKind::Counter).filter(|(_, signal)| signal.series.summary().count > 0);
    let counted = counted.map(|(of, signal)| sensor_line(of, signal, signal.series.summary().increase));
    let help = "Counts of sensors since they were first read; the unit is a label.";
    samples(out, ("gnntop_sensor_counted", "counter", "_total"), help, counted);
}

fn signals_of<'s, 'a>(
    session: &'s ServedSession<'a>,
    kind: SignalKind,
) -> impl Iterator<Item = (&'s ServedSession<'a>, &'a Signal)> {
    let all = session.store().signals().all().iter();
    all.filter(move |signal| signal.kind() == kind).map(move |signal| (session, signal))
}

/// A reading; of a machine it is the same for all sessions on it, and so is its line.
fn sensor_line(session: &ServedSession<'_>, signal: &Signal, raw: f64) -> (String, f64) {
    let (unit, factor) = base_unit(signal.unit());
    let name = signal.metric.to_string();
    let device = (!signal.device.is_empty()).then_some(("device", signal.device.as_str()));
    let more: Vec<_> = [("signal", name.as_str())].into_iter().chain(device).chain([("unit", unit)]).collect();
    let scope = signal.metric.metric().map(|metric| metric.quantity().scope());
    let is_of_process = matches!(scope, None | Some(Scope::Process | Scope::Allotted | Scope::Publisher));
    let labels = if is_of_process { session.labels(&more) } else { session.machine_labels(&more) };
    (labels, raw * factor)
}

/// How often each kind of finding was seen; kinds that could not be decided have no line.
fn counts(out: &mut String, all: &[ServedSession<'_>]) {
    let judged = all.iter().filter(|session| session.has_findings && session.store().statistics().steps() > 0);
    let lines = judged.flat_map(|session| {
        FindingKind::ALL.iter().filter_map(move |kind| {
            let count = session.catalogue.value(&format!("finding.{}.count", kind.id()))?;
            Some((session.labels(&[("kind", kind.id())]), count))
        })
    });
    samples(out, ("gnntop_findings", "gauge", ""), "How often each kind of finding was seen.", lines);
}

fn losses(out: &mut String, all: &[ServedSession<'_>]) {
    let kinds = [
        ("dropped_events", "Events that the program dropped because a ring was full."),
        ("missed_events", "Events that were published and could not be read."),
        ("lost_segments", "Segments that were gone before they could be read."),
    ];
    for (name, help) in kinds {
        counter(out, all, &format!("gnntop_{name}"), help, &|session| {
            Some(session.catalogue.value(&format!("lost.{name}.total")).unwrap_or(0.0))
        });
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
