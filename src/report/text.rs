//! The report for people.

use gnntop_wire::device_memory::is_one as is_device_memory;
use unicode_width::UnicodeWidthStr;

use super::durations::Durations;
use super::hardware::{Figure, Gpu};
use super::{Counter, PhaseMemory, Report, device, device_memory, energy, ranks, table};
use gnntop_analysis::figures::{bytes, count, duration, percent, quantity, utc};
use gnntop_analysis::findings::{Findings, Severity};
use gnntop_analysis::store::Losses;

pub(super) fn write(report: &Report) -> String {
    let mut out = String::new();
    if let Some(run) = &report.run {
        ranks::sentences(run).iter().for_each(|line| table::indented(&mut out, "", line));
        out.push('\n');
        table::write(&mut out, &ranks::rank_rows(run));
        out.push('\n');
        table::write(&mut out, &ranks::phase_rows(run));
        out.push('\n');
    }
    head(&mut out, report);
    out.push_str(&format!("\n{}\n\n", wrapped(&report.verdict)));
    found(&mut out, &report.findings);
    phases(&mut out, report);
    device::write(&mut out, report.device.as_ref());
    classes(&mut out, report);
    spans(&mut out, report);
    throughput(&mut out, report);
    counters(&mut out, &report.counters);
    memory(&mut out, &report.memory.phases);
    device_memory::write(&mut out, report.memory.device.as_ref());
    hardware(&mut out, report);
    energy::write(&mut out, &report.energy);
    list(&mut out, "lost", &losses(&report.losses));
    list(&mut out, "not measured", &report.not_measured);
    out
}

fn head(out: &mut String, report: &Report) {
    let session = &report.session;
    let name = if session.name.is_empty() { "(no name)" } else { &session.name };
    let mut who = name.to_owned();
    if !session.host.is_empty() {
        who += &format!(" on {}", session.host);
    }
    who.extend(session.pid.map(|pid| format!(", process {pid}")));
    let state = match (session.state, &session.end_reason) {
        ("ended", Some(reason)) => format!("ended: {reason}"),
        ("gone", _) => "gone without a word: killed or crashed".to_owned(),
        ("unknown", _) => "no end in what was read".to_owned(),
        (state, _) => state.to_owned(),
    };
    out.push_str(&format!("{who}; {state}\n"));
    if !session.command.is_empty() {
        out.push_str(&format!("{}\n", session.command));
    }
    for (key, text) in &session.facts {
        out.push_str(&format!("{key}: {text}\n"));
    }
    let begin = session.begin_unix_ns.map_or_else(String::new, |ns| format!(" from {}", utc(ns)));
    out.push_str(&format!("{}{begin}\n{}\n", duration(session.covered_ns), steps(report)));
}

fn steps(report: &Report) -> String {
    let steps = &report.steps;
    let mut text = format!("{} steps, {} epochs", count(steps.total), count(steps.epochs));
    if steps.skipped > 0 {
        text += &format!("; numbers without the first {}", count(steps.skipped));
    }
    let losses = steps.first_loss.zip(steps.last_loss);
    text.extend(losses.map(|(first, last)| format!("; loss {} to {}", quantity(first), quantity(last))));
    text.extend(steps.reason.iter().map(|reason| format!("\n{reason}")));
    let outside = [("before the first step", steps.before_first_step_ns), ("after the last", steps.after_last_step_ns)];
    let outside = outside.into_iter().filter_map(|(place, ns)| Some(format!("{} {place}", duration(ns?))));
    let outside: Vec<String> = outside.collect();
    if !outside.is_empty() {
        text += &format!("\noutside steps: {}", outside.join(", "));
    }
    text
}

/// The findings, each with what it rests on and what to try.
fn found(out: &mut String, findings: &Findings) {
    if findings.found.is_empty() {
        return;
    }
    out.push_str("findings\n");
    for finding in &findings.found {
        let weight = match finding.severity {
            Severity::Major => "!! ",
            Severity::Minor => " ! ",
            Severity::Note => "   ",
        };
        let head = format!("{} ({}): {}", finding.kind.title(), finding.confidence.word(), finding.summary);
        table::indented(out, weight, &head);
        finding.evidence.iter().for_each(|line| table::indented(out, "     - ", line));
        finding.advice.iter().for_each(|line| table::indented(out, "     > ", line));
    }
    out.push('\n');
}

/// Breaks a line of parts, which semicolons separate, so that it fits the page.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut used = 0;
    for part in text.split_inclusive("; ") {
        if used > 0 && used + part.trim_end().width() > table::WIDTH {
            out.truncate(out.trim_end().len());
            out.push('\n');
            used = 0;
        }
        out.push_str(part);
        used += part.width();
    }
    out
}

fn duration_cells(durations: &Durations) -> Vec<String> {
    let cell = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), duration);
    let mut cells = vec![count(durations.count), cell(durations.mean_ns.map(|ns| ns.round() as u64))];
    cells.extend(durations.percentiles.0.iter().map(|(_, ns)| cell(*ns)));
    cells.extend([cell(durations.max_ns), duration(durations.total_ns)]);
    cells
}

/// Writes a table of durations under a head that begins with `title`.
pub(super) fn duration_table<'a>(
    out: &mut String,
    title: &str,
    lines: impl Iterator<Item = (&'a str, &'a Durations, Option<f64>)>,
) {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (name, durations, share) in lines {
        if rows.is_empty() {
            let mut head: Vec<String> = [title, "count", "mean"].map(str::to_owned).into();
            head.extend(durations.percentiles.0.iter().map(|(percentage, _)| format!("p{percentage}")));
            head.extend(["max", "total", "share"].map(str::to_owned));
            rows.push(head);
        }
        let mut row = vec![name.to_owned()];
        row.extend(duration_cells(durations));
        row.push(share.map_or_else(|| "-".to_owned(), percent));
        rows.push(row);
    }
    table::write(out, &rows);
    if !rows.is_empty() {
        out.push('\n');
    }
}

fn phases(out: &mut String, report: &Report) {
    let lines = report.phases.iter().map(|line| (&*line.name, &line.durations, line.share));
    duration_table(out, "phase", lines);
}

/// Kinds of steps, where there is more than one, and what a graph, node, edge or seed costs.
fn classes(out: &mut String, report: &Report) {
    let many = report.classes.len() > 1;
    if many {
        let lines = report.classes.iter().map(|line| (line.name, &line.durations, None));
        duration_table(out, "kind of step", lines);
    }
    for line in &report.classes {
        let costs = [
            (line.per_graph_ns, "a graph"),
            (line.per_node_ns, "a node"),
            (line.per_edge_ns, "an edge"),
            (line.per_seed_ns, "a seed"),
        ];
        let known = costs.into_iter().filter_map(|(ns, what)| Some(format!("{} {what}", duration(ns? as u64))));
        let known: Vec<String> = known.collect();
        if !known.is_empty() && line.name != "warm-up" {
            let of = if many { format!(" ({})", line.name) } else { String::new() };
            out.push_str(&format!("cost{of}: {}\n", known.join(", ")));
        }
    }
    if report.classes.iter().any(|line| line.per_graph_ns.or(line.per_node_ns).is_some()) {
        out.push('\n');
    }
}

fn spans(out: &mut String, report: &Report) {
    let lines = report.spans.iter().map(|line| (&*line.name, &line.durations, line.share));
    duration_table(out, "span", lines);
}

fn throughput(out: &mut String, report: &Report) {
    let t = &report.throughput;
    let rates = [
        (t.steps_per_s, "steps"),
        (t.graphs_per_s, "graphs"),
        (t.nodes_per_s, "nodes"),
        (t.edges_per_s, "edges"),
        (t.seeds_per_s, "seeds"),
    ];
    let known: Vec<String> =
        rates.iter().filter_map(|(rate, what)| rate.map(|rate| format!("{} {what}", quantity(rate)))).collect();
    if !known.is_empty() {
        out.push_str(&format!("per second   {}\n\n", known.join(", ")));
    }
}

fn counters(out: &mut String, counters: &[Counter]) {
    // Those of a device's memory have a part of their own.
    let counters: Vec<&Counter> = counters.iter().filter(|counter| !is_device_memory(&counter.name)).collect();
    if counters.is_empty() {
        return;
    }
    let mut rows = vec![Vec::from(["counter", "count", "last", "mean", "min", "max"].map(str::to_owned))];
    let value = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), quantity);
    for counter in counters {
        let values = [counter.last, counter.mean, Some(counter.min), Some(counter.max)].map(value);
        rows.push([vec![counter.name.clone(), count(counter.count)], values.to_vec()].concat());
    }
    table::write(out, &rows);
    out.push('\n');
}

fn memory(out: &mut String, phases: &[PhaseMemory]) {
    if phases.is_empty() {
        return;
    }
    let head = ["memory", "allocated", "allocations", "freed", "releases", "peak live"].map(str::to_owned);
    let mut rows = vec![Vec::from(head)];
    for phase in phases {
        rows.push(vec![
            phase.name.clone(),
            bytes(phase.allocated_bytes as f64),
            count(phase.allocations),
            bytes(phase.freed_bytes as f64),
            count(phase.releases),
            bytes(phase.peak_live_bytes as f64),
        ]);
    }
    table::write(out, &rows);
    out.push('\n');
}

fn hardware(out: &mut String, report: &Report) {
    let h = &report.hardware;
    out.push_str("hardware\n");
    let mut line = |what: &str, text: String| out.push_str(&format!("  {what:<16} {text}\n"));
    line("process CPU", figure(&h.process_cpu));
    line("process memory", figure(&h.process_rss));
    line("machine CPU", figure(&h.machine_cpu));
    line("machine steal", figure(&h.machine_steal));
    line("machine memory", figure(&h.machine_memory_used));
    if let Some(reason) = &h.no_gpu_reason {
        line("GPU", format!("none: {reason}"));
    }
    for gpu in &h.gpus {
        line(&format!("GPU {}", gpu.index), gpu.device.clone());
        gpu_lines(gpu, &mut line);
    }
    out.push('\n');
}

fn gpu_lines(gpu: &Gpu, line: &mut impl FnMut(&str, String)) {
    line("  utilisation", figure(&gpu.utilisation));
    line("  memory", figure(&gpu.memory_used));
    line("  power", figure(&gpu.power));
    line("  temperature", figure(&gpu.temperature));
}

pub(super) fn figure(figure: &Figure) -> String {
    let written = |value: f64| match figure.unit {
        "bytes" => bytes(value),
        "percent" => percent(value / 100.0),
        "watts" => format!("{} W", quantity(value)),
        "celsius" => format!("{} °C", quantity(value)),
        unit => format!("{} {unit}", quantity(value)),
    };
    match (figure.mean, figure.max) {
        (Some(mean), Some(max)) => format!("{} mean, {} at most", written(mean), written(max)),
        (Some(mean), None) => format!("{} mean", written(mean)),
        (None, _) => format!("absent: {}", figure.reason.as_deref().unwrap_or("no reason known")),
    }
}

fn list(out: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        out.push_str(&format!("{title}: nothing\n"));
        return;
    }
    out.push_str(&format!("{title}\n"));
    lines.iter().for_each(|line| out.push_str(&format!("  {line}\n")));
}

/// What was lost, one sentence each.
pub(super) fn losses(losses: &Losses) -> Vec<String> {
    let counts = [
        (losses.dropped_events, "events dropped by the program because a ring was full"),
        (losses.missed_events, "events published and not read"),
        (losses.lost_segments, "segments gone before they could be read"),
        (losses.missing_steps, "steps missing between others"),
        (losses.damage_count, "places damaged"),
        (losses.damage_bytes, "bytes in damaged places"),
        (losses.broken_blocks, "blocks that end early"),
        (losses.foreign_segments, "segments of other sessions, left out"),
        (losses.unknown_frames, "frames of an unknown kind, stepped over"),
        (losses.repeated_blocks, "blocks that came twice"),
        (losses.backward_times, "events out of order in time"),
        (losses.implausible_times, "events with times far in the future"),
        (losses.steps_elsewhere, "steps on other tracks than the training's"),
        (losses.names_not_kept, "definitions of names without room"),
        (losses.tracks_not_kept, "definitions of tracks without room"),
        (losses.signals_not_kept, "definitions of signals without room"),
        (losses.events_not_kept, "events without room, or of unknown names and signals"),
    ];
    let mut all: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{what}: {}", count(*n))).collect();
    if losses.untiled_ns > 0 {
        all.push(format!("time around missing steps: {}", duration(losses.untiled_ns)));
    }
    all.extend(losses.newer_format.map(|major| format!("parts in the newer format {major}: update gnntop")));
    all.extend(losses.damages.first().map(|damage| format!("first damage at byte: {}", damage.offset)));
    all
}
