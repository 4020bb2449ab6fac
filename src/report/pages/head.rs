//! The head of a report: who, when, where, how long.

use std::path::Path;

use crate::report::contents::Report;
use gnntop_analysis::figures::{count, duration, quantity, utc};

/// The run's name; the recording's if it has none.
pub(super) fn name(file: &str, report: &Report) -> String {
    if report.session.name.is_empty() { stem(file) } else { report.session.name.clone() }
}

/// A recording's name without folders and extension.
pub(super) fn stem(file: &str) -> String {
    let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    stem.filter(|stem| !stem.is_empty()).unwrap_or_else(|| "run".to_owned())
}

/// The title: the run, its machine, its date.
pub(super) fn title(file: &str, report: &Report) -> String {
    let mut title = name(file, report);
    if !report.session.host.is_empty() {
        title += &format!(" on {}", report.session.host);
    }
    title.extend(report.session.begin_unix_ns.map(|ns| format!(", {}", day(ns))));
    title
}

/// The day and minute, without seconds.
fn day(unix_ns: u64) -> String {
    let all = utc(unix_ns);
    all.rsplit_once(':').map_or_else(|| all.clone(), |(minute, _)| format!("{minute} UTC"))
}

/// Lines below the title: duration and state, platform, command.
pub(super) fn about(report: &Report) -> Vec<String> {
    let session = &report.session;
    let mut length = format!(
        "{}, {}, {}; {}",
        duration(session.covered_ns),
        some(report.steps.total, "step"),
        some(report.steps.epochs, "epoch"),
        state(report)
    );
    if report.steps.skipped > 0 {
        length += &format!("; without the first {}", some(report.steps.skipped, "step"));
    }
    length.extend(losses(report).map(|losses| format!("; loss {losses}")));
    let mut devices: Vec<&str> = report.hardware.gpus.iter().map(|gpu| gpu.device.as_str()).collect();
    devices.dedup();
    let facts = ["framework", "device"].iter().filter_map(|key| session.facts.get(*key).map(String::as_str));
    let on: Vec<&str> = facts.chain(devices).collect();
    let summed = report.steps.summed().unwrap_or_default();
    let lines = [length, summed, on.join(", "), session.command.clone()];
    lines.into_iter().filter(|line| !line.is_empty()).collect()
}

fn some(n: u64, word: &str) -> String {
    format!("{} {word}{}", count(n), if n == 1 { "" } else { "s" })
}

/// How the session ended, in words.
fn state(report: &Report) -> String {
    match (report.session.state, &report.session.end_reason) {
        ("ended", Some(reason)) => format!("ended: {reason}"),
        ("gone", _) => "killed or crashed".to_owned(),
        ("unknown", _) => "the recording has no end".to_owned(),
        (state, _) => state.to_owned(),
    }
}

fn losses(report: &Report) -> Option<String> {
    let (first, last) = report.steps.first_loss.zip(report.steps.last_loss)?;
    Some(format!("{} to {}", quantity(first), quantity(last)))
}

/// All facts: a row each, a column for each recording.
pub(super) fn facts(reports: &[(&str, &Report)]) -> Vec<Vec<String>> {
    let row = |what: &str, of: &dyn Fn(&Report) -> String| {
        let cells = reports.iter().map(|(_, report)| of(report));
        std::iter::once(what.to_owned()).chain(cells).collect::<Vec<String>>()
    };
    let known = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let files = reports.iter().map(|(name, _)| known(name));
    let mut rows = vec![std::iter::once("recording".to_owned()).chain(files).collect()];
    rows.push(row("session", &|r| known(&r.session.name)));
    rows.push(row("host", &|r| known(&r.session.host)));
    rows.push(row("process", &|r| r.session.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string())));
    rows.push(row("command", &|r| known(&r.session.command)));
    let mut keys: Vec<&String> = reports.iter().flat_map(|(_, report)| report.session.facts.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        let name = key.strip_prefix("inferred ").map_or_else(|| key.clone(), |phase| format!("{phase}* is inferred"));
        rows.push(row(&name, &|r| known(r.session.facts.get(key).map_or("", String::as_str))));
    }
    rows.push(row("state", &state));
    if reports.iter().any(|(_, report)| report.session.died.is_some()) {
        rows.push(row("why it died", &|r| known(r.session.died.as_deref().unwrap_or_default())));
    }
    rows.push(row("begin", &|r| r.session.begin_unix_ns.map_or_else(|| "-".to_owned(), utc)));
    rows.push(row("time covered", &|r| duration(r.session.covered_ns)));
    rows.push(row("steps, epochs", &|r| format!("{}, {}", count(r.steps.total), count(r.steps.epochs))));
    rows.push(row("steps skipped", &|r| count(r.steps.skipped)));
    rows.push(row("loss", &|r| losses(r).unwrap_or_else(|| "-".to_owned())));
    rows
}
