//! Reports as documents, of one recording or of several side by side.

use super::contents::Report;
use super::document::{Block, Document};
use super::figure;
use super::sections::classes::ClassLine;
use super::sections::durations::{Durations, PhaseLine};
use super::sections::hardware::Gpu;
use super::sections::{curves, energy, losses, marks, ranks};
use gnntop_analysis::energy::Scope;
use gnntop_analysis::figures::{bytes, count, duration, percent, quantity, utc};

impl Document {
    /// The document on reports with the names of their recordings. Several get a column each.
    pub fn of(reports: &[(&str, &Report)]) -> Self {
        let title = match reports {
            [(name, _)] => (*name).to_owned(),
            several => format!("{} recordings", several.len()),
        };
        let mut blocks = vec![Block::Table(head(reports))];
        match reports {
            [(_, report)] => one(&mut blocks, report),
            several => side_by_side(&mut blocks, several),
        }
        Self { title, blocks }
    }

    /// Adds the figures of a recording: shares of its phases, its step times, its last steps, its hardware.
    pub fn figures(&mut self, report: &Report) {
        self.blocks.extend(pictures(report));
    }
}

/// Who, when, how long: a row for each fact, a column for each recording.
fn head(reports: &[(&str, &Report)]) -> Vec<Vec<String>> {
    let row = |what: &str, of: &dyn Fn(&Report) -> String| {
        let cells = reports.iter().map(|(_, report)| of(report));
        std::iter::once(what.to_owned()).chain(cells).collect::<Vec<String>>()
    };
    let known = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let mut rows =
        vec![std::iter::once(String::new()).chain(reports.iter().map(|(name, _)| (*name).to_owned())).collect()];
    rows.push(row("session", &|r| known(&r.session.name)));
    rows.push(row("host", &|r| known(&r.session.host)));
    rows.push(row("command", &|r| known(&r.session.command)));
    let mut facts: Vec<&String> = reports.iter().flat_map(|(_, report)| report.session.facts.keys()).collect();
    facts.sort_unstable();
    facts.dedup();
    for key in facts {
        let name = key.strip_prefix("inferred ").map_or_else(|| key.clone(), |phase| format!("{phase}* is inferred"));
        rows.push(row(&name, &|r| known(r.session.facts.get(key).map_or("", String::as_str))));
    }
    rows.push(row("state", &|r| r.session.state.to_owned()));
    rows.push(row("begin", &|r| r.session.begin_unix_ns.map_or_else(|| "-".to_owned(), utc)));
    rows.push(row("time covered", &|r| duration(r.session.covered_ns)));
    rows.push(row("steps, epochs", &|r| format!("{}, {}", count(r.steps.total), count(r.steps.epochs))));
    rows.push(row("steps left out", &|r| count(r.steps.skipped)));
    let losses = |r: &Report| r.steps.first_loss.zip(r.steps.last_loss);
    rows.push(row("loss", &|r| {
        losses(r).map_or_else(|| "-".to_owned(), |(a, b)| format!("{} to {}", quantity(a), quantity(b)))
    }));
    rows.push(row("verdict", &|r| r.verdict.clone()));
    rows
}

fn one(blocks: &mut Vec<Block>, report: &Report) {
    blocks.extend(report.run.iter().flat_map(ranks::blocks));
    blocks.extend(pictures(report));
    findings(blocks, None, report);
    if !report.phases.is_empty() {
        blocks.push(Block::Heading("Phases".to_owned()));
        blocks.push(Block::Table(durations_table(
            "phase",
            report.phases.iter().map(|l| (l.marked_name(), &l.durations, l.share)),
        )));
        blocks.push(Block::Paragraph(INTERVALS.to_owned()));
        device(blocks, report);
        blocks.push(Block::Heading("Kinds of steps".to_owned()));
        blocks.push(Block::Table(classes_table(&report.classes)));
    }
    if !report.spans.is_empty() {
        blocks.push(Block::Heading("Spans".to_owned()));
        blocks.push(Block::Table(durations_table(
            "span",
            report.spans.iter().map(|l| (l.name.as_str(), &l.durations, l.share)),
        )));
    }
    if !report.marks.is_empty() {
        blocks.push(Block::Heading("Marks".to_owned()));
        blocks.push(Block::Table(marks::rows(&report.marks)));
    }
    blocks.push(Block::Heading("Throughput, memory and hardware".to_owned()));
    blocks.push(Block::Table(machine(&[("", report)])));
    blocks.push(Block::Table(energy_table(&[("", report)])));
    memory(blocks, report);
    blocks.push(Block::Heading("Lost".to_owned()));
    blocks.push(list_or(losses::in_words(&report.losses), "nothing"));
    blocks.push(Block::Heading("Not measured".to_owned()));
    blocks.push(list_or(report.not_measured.clone(), "nothing"));
}

const INTERVALS: &str = "± is the 95 % confidence interval of a mean; intervals of percentiles are in the JSON and CSV \
                         forms. Both hold if one step tells nothing about the next; slow trends make them too narrow.";

fn side_by_side(blocks: &mut Vec<Block>, reports: &[(&str, &Report)]) {
    let head = |what: &str| {
        vec![what.to_owned(), "statistic".to_owned()]
            .into_iter()
            .chain(reports.iter().map(|(name, _)| (*name).to_owned()))
            .collect::<Vec<String>>()
    };
    let mut names: Vec<&str> = Vec::new();
    for line in reports.iter().flat_map(|(_, report)| &report.phases) {
        if !names.contains(&line.name.as_str()) {
            names.push(&line.name);
        }
    }
    let with_phases = reports.iter().find_map(|(_, report)| report.phases.first());
    let percentages = with_phases.map(|line| line.durations.percentiles.0.clone()).unwrap_or_default();
    let mut rows = vec![head("phase")];
    for name in names {
        let line_of = |report: &&Report| report.phases.iter().find(|line| line.name == name).cloned();
        let row = |statistic: &str, of: &dyn Fn(&PhaseLine) -> String| {
            let cells =
                reports.iter().map(|(_, report)| line_of(report).map_or_else(|| "-".to_owned(), |line| of(&line)));
            [name.to_owned(), statistic.to_owned()].into_iter().chain(cells).collect::<Vec<String>>()
        };
        rows.push(row("mean", &|line| mean(&line.durations)));
        for (at, (percentage, _)) in percentages.iter().enumerate() {
            let cell = |line: &PhaseLine| {
                line.durations.percentiles.0.get(at).and_then(|p| p.1).map_or_else(|| "-".to_owned(), duration)
            };
            rows.push(row(&format!("p{percentage}"), &cell));
        }
        rows.push(row("share", &|line| line.share.map_or_else(|| "-".to_owned(), percent)));
    }
    blocks.push(Block::Heading("Phases".to_owned()));
    blocks.push(Block::Table(rows));
    blocks.push(Block::Heading("Throughput, memory and hardware".to_owned()));
    blocks.push(Block::Table(machine(reports)));
    blocks.push(Block::Table(energy_table(reports)));
    for (name, report) in reports {
        findings(blocks, Some(name), report);
        blocks.extend(pictures(report));
    }
}

/// The pictures of a recording; one without numbers is empty.
fn pictures(report: &Report) -> [Block; 4] {
    let [shares, steps] = [figure::phase_shares(report), figure::step_times(report)];
    [shares, steps, report.breakdown.to_svg(), curves::to_svg(&report.curves)].map(Block::Figure)
}

fn findings(blocks: &mut Vec<Block>, name: Option<&str>, report: &Report) {
    let of = name.map_or_else(String::new, |name| format!(" of {name}"));
    blocks.push(Block::Heading(format!("Findings{of}")));
    let line = |finding: &gnntop_analysis::findings::Finding| {
        let parts = [finding.evidence.join("; "), finding.advice.join("; ")];
        let [evidence, advice] = parts.map(|part| if part.is_empty() { String::new() } else { format!(". {part}") });
        format!("{} ({}): {}{evidence}{advice}", finding.kind.title(), finding.confidence.word(), finding.summary)
    };
    blocks.push(list_or(report.findings.found.iter().map(line).collect(), "none"));
    if name.is_none() && !report.findings.not_enough.is_empty() {
        let why = |n: &gnntop_analysis::findings::NotEnough| format!("{}: {}", n.kind.title(), n.reason);
        blocks.push(Block::Paragraph("Not enough evidence to say anything on:".to_owned()));
        blocks.push(Block::List(report.findings.not_enough.iter().map(why).collect()));
    }
}

fn list_or(lines: Vec<String>, nothing: &str) -> Block {
    if lines.is_empty() { Block::Paragraph(nothing.to_owned()) } else { Block::List(lines) }
}

fn mean(durations: &Durations) -> String {
    let Some(mean) = durations.mean_ns else { return "-".to_owned() };
    let half = durations.mean_ci_ns.map_or_else(String::new, |half| format!(" ± {}", duration(half.round() as u64)));
    format!("{}{half}", duration(mean.round() as u64))
}

fn durations_table<'a, N: Into<String>>(
    title: &str,
    lines: impl Iterator<Item = (N, &'a Durations, Option<f64>)>,
) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let cell = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), duration);
    for (name, durations, share) in lines {
        if rows.is_empty() {
            let percentiles = durations.percentiles.0.iter().map(|(percentage, _)| format!("p{percentage}"));
            let head = [title, "count", "mean", "sd", "min"].map(str::to_owned).into_iter().chain(percentiles);
            rows.push(head.chain(["max", "total", "share"].map(str::to_owned)).collect());
        }
        let mut row = vec![name.into(), count(durations.count), mean(durations)];
        row.extend([cell(durations.sd_ns.map(|sd| sd.round() as u64)), cell(durations.min_ns)]);
        row.extend(durations.percentiles.0.iter().map(|(_, ns)| cell(*ns)));
        row.extend([
            cell(durations.max_ns),
            duration(durations.total_ns),
            share.map_or_else(|| "-".to_owned(), percent),
        ]);
        rows.push(row);
    }
    rows
}

fn classes_table(classes: &[ClassLine]) -> Vec<Vec<String>> {
    let mut rows = durations_table("kind", classes.iter().map(|line| (line.name, &line.durations, None)));
    let cost = |ns: Option<f64>| ns.map_or_else(|| "-".to_owned(), |ns| duration(ns.round() as u64));
    for (row, line) in rows.iter_mut().skip(1).zip(classes) {
        row.pop();
        row.extend([line.per_graph_ns, line.per_node_ns, line.per_edge_ns, line.per_seed_ns].map(cost));
    }
    if let Some(head) = rows.first_mut() {
        head.pop();
        head.extend(["a graph", "a node", "an edge", "a seed"].map(str::to_owned));
    }
    rows
}

/// Throughput, memory and hardware: a row for each quantity, a column for each recording.
fn machine(reports: &[(&str, &Report)]) -> Vec<Vec<String>> {
    let mut rows =
        vec![std::iter::once(String::new()).chain(reports.iter().map(|(name, _)| (*name).to_owned())).collect()];
    let mut row = |what: &str, of: &dyn Fn(&Report) -> String| {
        rows.push(std::iter::once(what.to_owned()).chain(reports.iter().map(|(_, report)| of(report))).collect());
    };
    let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{}/s", quantity(rate)));
    row("steps", &|r| rate(r.throughput.steps_per_s));
    row("graphs", &|r| rate(r.throughput.graphs_per_s));
    row("nodes", &|r| rate(r.throughput.nodes_per_s));
    row("edges", &|r| rate(r.throughput.edges_per_s));
    row("seeds", &|r| rate(r.throughput.seeds_per_s));
    row("most memory live", &|r| r.memory.peak_live_bytes.map_or_else(|| "-".to_owned(), |n| bytes(n as f64)));
    row("process CPU", &|r| r.hardware.process_cpu.in_words());
    row("process memory", &|r| r.hardware.process_rss.in_words());
    row("machine CPU", &|r| r.hardware.machine_cpu.in_words());
    row("machine steal", &|r| r.hardware.machine_steal.in_words());
    row("machine memory", &|r| r.hardware.machine_memory_used.in_words());
    let gpus = reports.iter().map(|(_, report)| report.hardware.gpus.len()).max().unwrap_or(0);
    for gpu in 0..gpus {
        let of =
            |what: &dyn Fn(&Gpu) -> String, r: &Report| r.hardware.gpus.get(gpu).map_or_else(|| "-".to_owned(), what);
        row(&format!("GPU {gpu}"), &|r| of(&|g| g.device.clone(), r));
        row(&format!("GPU {gpu} utilisation"), &|r| of(&|g| g.utilisation.in_words(), r));
        row(&format!("GPU {gpu} memory"), &|r| of(&|g| g.memory_used.in_words(), r));
        row(&format!("GPU {gpu} power"), &|r| of(&|g| g.power.in_words(), r));
    }
    if gpus == 0 {
        row("GPU", &|r| r.hardware.no_gpu_reason.clone().map_or_else(|| "-".to_owned(), |why| format!("none: {why}")));
    }
    rows
}

/// Energy and carbon: a row for each quantity, a column for each recording.
fn energy_table(reports: &[(&str, &Report)]) -> Vec<Vec<String>> {
    let told: Vec<_> = reports.iter().map(|(_, report)| energy::rows(&report.energy)).collect();
    let mut names: Vec<&str> = vec!["of"];
    for (name, _) in told.iter().flatten().filter(|(name, _)| !name.starts_with(' ')) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let head = std::iter::once("energy").chain(reports.iter().map(|(name, _)| *name)).map(str::to_owned).collect();
    let cell = |name: &str, at: usize| match name {
        "of" => if reports[at].1.energy.scope == Scope::Job { "the job" } else { "the devices" }.to_owned(),
        _ => told[at].iter().find(|(about, _)| about == name).map_or_else(|| "-".to_owned(), |(_, text)| text.clone()),
    };
    let row =
        |name: &&str| std::iter::once((*name).to_owned()).chain((0..told.len()).map(|at| cell(name, at))).collect();
    std::iter::once(head).chain(names.iter().map(row)).collect()
}

/// The device's phases by its own clock, where there are any.
fn device(blocks: &mut Vec<Block>, report: &Report) {
    let Some(device) = &report.device else { return };
    blocks.push(Block::Heading("Phases on the device".to_owned()));
    if !device.phases.is_empty() {
        let lines = device.phases.iter().map(|line| (line.name.as_str(), &line.durations, line.share));
        blocks.push(Block::Table(durations_table("phase", lines)));
    }
    blocks.push(Block::Paragraph(device.clocks()));
}

fn memory(blocks: &mut Vec<Block>, report: &Report) {
    if let Some(device) = &report.memory.device {
        let facts = device.facts().into_iter().map(|(what, text)| vec![what.to_owned(), text]);
        let head = std::iter::once(vec!["device memory".to_owned(), String::new()]);
        blocks.push(Block::Table(head.chain(facts).collect()));
        let tables = [device.phase_rows(), device.kind_rows()];
        blocks.extend(tables.into_iter().filter(|rows| rows.len() > 1).map(Block::Table));
    }
    if report.memory.phases.is_empty() {
        return;
    }
    let mut rows =
        vec![["memory", "allocated", "allocations", "freed", "releases", "peak live"].map(str::to_owned).to_vec()];
    rows.extend(report.memory.phases.iter().map(|phase| {
        vec![
            phase.name.clone(),
            bytes(phase.allocated_bytes as f64),
            count(phase.allocations),
            bytes(phase.freed_bytes as f64),
            count(phase.releases),
            bytes(phase.peak_live_bytes as f64),
        ]
    }));
    blocks.push(Block::Table(rows));
}
