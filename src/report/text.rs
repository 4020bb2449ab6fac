//! The report for people.

use gnntop_wire::device_memory::is_one as is_device_memory;
use unicode_width::UnicodeWidthStr;

use super::contents::Report;
use super::document::plain;
use super::sections::counters::Counter;
use super::sections::hardware::Gpu;
use super::sections::memory::PhaseMemory;
use super::sections::{device, device_memory, durations, energy, losses, marks, ranks, restarts, sampled, stacks};
use gnntop_analysis::figures::{bytes, count, duration, quantity, utc};
use gnntop_analysis::findings::{Findings, Severity};

impl Report {
    /// The report for people: aligned, in 80 columns unless more percentiles are asked for than fit.
    pub fn to_text(&self) -> String {
        write(self)
    }
}

fn write(report: &Report) -> String {
    let mut out = String::new();
    head(&mut out, report);
    out.push_str(&format!("\n{}\n\n", wrapped(&report.verdict)));
    found(&mut out, &report.findings);
    about(&mut out, report);
    if let Some(run) = &report.run {
        ranks::sentences(run).iter().for_each(|line| plain::indented(&mut out, "", line));
        out.push('\n');
        plain::write(&mut out, &ranks::rank_rows(run));
        out.push('\n');
        plain::write(&mut out, &ranks::phase_rows(run));
        out.push('\n');
    }
    restarts::write(&mut out, report.restarts.as_ref());
    phases(&mut out, report);
    device::write(&mut out, report.device.as_ref());
    classes(&mut out, report);
    spans(&mut out, report);
    marks::write(&mut out, &report.marks);
    stacks::write(&mut out, report.stacks.as_ref());
    sampled::write(&mut out, report.sampled_stacks.as_ref());
    throughput(&mut out, report);
    counters(&mut out, &report.counters);
    memory(&mut out, &report.memory.phases);
    device_memory::write(&mut out, report.memory.device.as_ref());
    hardware(&mut out, report);
    energy::write(&mut out, &report.energy);
    list(&mut out, "lost", &losses::in_words(&report.losses));
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
        _ if session.died_of.is_some() => {
            format!("died: {}", session.died_of.iter().map(|of| of.replace('-', " ")).collect::<String>())
        }
        ("ended", Some(reason)) => format!("ended: {reason}"),
        ("gone", _) => "killed or crashed".to_owned(),
        ("unknown", _) => "the recording has no end".to_owned(),
        (state, _) => state.to_owned(),
    };
    out.push_str(&format!("{who}; {state}\n"));
    session.died.iter().for_each(|died| plain::indented(out, "why it died: ", died));
    let begin = session.begin_unix_ns.map_or_else(String::new, |ns| format!(" from {}", utc(ns)));
    out.push_str(&format!("{}{begin}\n{}\n", duration(session.covered_ns), steps(report)));
}

/// What was run: its command and facts.
fn about(out: &mut String, report: &Report) {
    let session = &report.session;
    if !session.command.is_empty() {
        out.push_str(&format!("{}\n", session.command));
    }
    for (key, text) in &session.facts {
        match key.strip_prefix("inferred ") {
            Some(phase) => out.push_str(&format!("* {phase} is inferred: {text}\n")),
            None => out.push_str(&format!("{key}: {text}\n")),
        }
    }
    if !session.command.is_empty() || !session.facts.is_empty() {
        out.push('\n');
    }
}

fn steps(report: &Report) -> String {
    let steps = &report.steps;
    let some = |n: u64, word: &str| format!("{} {word}{}", count(n), if n == 1 { "" } else { "s" });
    let mut text = format!("{}, {}", some(steps.total, "step"), some(steps.epochs, "epoch"));
    if steps.skipped > 0 {
        text += &format!("; without the first {}", count(steps.skipped));
    }
    let losses = steps.first_loss.zip(steps.last_loss);
    text.extend(losses.map(|(first, last)| format!("; loss {} to {}", quantity(first), quantity(last))));
    text.extend(steps.summed().map(|summed| format!("\n{summed}")));
    text.extend(steps.reason.iter().map(|reason| format!("\n{reason}")));
    let outside = [("before the first step", steps.before_first_step_ns), ("after the last", steps.after_last_step_ns)];
    let outside = outside.into_iter().filter_map(|(place, ns)| Some(format!("{} {place}", duration(ns?))));
    let outside: Vec<String> = outside.collect();
    if !outside.is_empty() {
        text += &format!("\noutside steps: {}", outside.join(", "));
    }
    text
}

/// The findings, each with its evidence and what to try.
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
        plain::indented(out, weight, &head);
        finding.evidence.iter().for_each(|line| plain::indented(out, "     - ", line));
        finding.advice.iter().for_each(|line| plain::indented(out, "     > ", line));
    }
    out.push('\n');
}

/// Breaks a line of parts, which semicolons separate, so that it fits the page.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut used = 0;
    for part in text.split_inclusive("; ") {
        if used > 0 && used + part.trim_end().width() > plain::WIDTH {
            out.truncate(out.trim_end().len());
            out.push('\n');
            used = 0;
        }
        out.push_str(part);
        used += part.width();
    }
    out
}

fn phases(out: &mut String, report: &Report) {
    let lines = report.phases.iter().map(|line| (line.marked_name(), &line.durations, line.share));
    durations::write(out, "phase", lines);
}

/// Kinds of steps, where there is more than one, and what a graph, node, edge or seed costs.
fn classes(out: &mut String, report: &Report) {
    let many = report.classes.len() > 1;
    if many {
        let lines = report.classes.iter().map(|line| (line.name, &line.durations, None));
        durations::write(out, "period by kind", lines);
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
    durations::write(out, "span", lines);
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
    // Those of a device's memory have their own part.
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
    plain::write(out, &rows);
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
    plain::write(out, &rows);
    out.push('\n');
}

fn hardware(out: &mut String, report: &Report) {
    let h = &report.hardware;
    out.push_str("hardware\n");
    let mut line = |what: &str, text: String| out.push_str(&format!("  {what:<16} {text}\n"));
    line("process CPU", h.process_cpu.in_words());
    if h.main_thread_cpu_wait.mean.is_some() {
        line("  waits for a CPU", format!("{} (its main thread)", h.main_thread_cpu_wait.in_words()));
    }
    line("process memory", h.process_rss.in_words());
    line("machine CPU", h.machine_cpu.in_words());
    line("machine steal", h.machine_steal.in_words());
    line("machine memory", h.machine_memory_used.in_words());
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
    line("  utilisation", gpu.utilisation.in_words());
    line("  memory", gpu.memory_used.in_words());
    line("  power", gpu.power.in_words());
    line("  temperature", gpu.temperature.in_words());
}

fn list(out: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        out.push_str(&format!("{title}: nothing\n"));
        return;
    }
    out.push_str(&format!("{title}\n"));
    lines.iter().for_each(|line| out.push_str(&format!("  {line}\n")));
}
