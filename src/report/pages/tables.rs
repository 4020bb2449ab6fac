//! The tables of a report as a document: a row for each quantity, a column for each recording or statistic.

use crate::report::contents::Report;
use crate::report::pictures::repeated::{self, Repeated};
use crate::report::sections::classes::ClassLine;
use crate::report::sections::durations::{Durations, PhaseLine, SpanLine};
use crate::report::sections::energy;
use crate::report::sections::hardware::Gpu;
use gnntop_analysis::energy::Scope;
use gnntop_analysis::figures::{bytes, count, duration, percent, quantity};

fn mean(durations: &Durations) -> String {
    let Some(mean) = durations.mean_ns else { return "-".to_owned() };
    let half = durations.mean_ci_ns.map_or_else(String::new, |half| format!(" ± {}", duration(half.round() as u64)));
    format!("{}{half}", duration(mean.round() as u64))
}

pub(super) fn durations_table<'a, N: Into<String>>(
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

pub(super) fn classes_table(classes: &[ClassLine]) -> Vec<Vec<String>> {
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

/// Places in the program with their share of the stacks; at most `most` rows.
pub(super) fn places_table(places: &[(String, u64)], stacks: u64, most: usize) -> Vec<Vec<String>> {
    let head = ["place", "stacks", "share"].map(str::to_owned).to_vec();
    let row = |(place, times): &(String, u64)| {
        vec![place.clone(), count(*times), percent(*times as f64 / stacks.max(1) as f64)]
    };
    std::iter::once(head).chain(places.iter().take(most).map(row)).collect()
}

/// Spans by their time, repeated ones in one row; at most `most` rows.
pub(super) fn spans_table(spans: &[SpanLine], groups: &[Repeated<'_>], most: usize) -> Vec<Vec<String>> {
    let is_repeated =
        |span: &&SpanLine| groups.iter().any(|group| group.spans.iter().any(|one| std::ptr::eq(*one, *span)));
    let singles: Vec<&SpanLine> = spans.iter().filter(|span| !is_repeated(span)).collect();
    let mut rows =
        durations_table("span", singles.iter().map(|line| (line.name.as_str(), &line.durations, line.share)));
    if rows.is_empty() {
        rows = durations_table("span", spans.iter().map(|line| (line.name.as_str(), &line.durations, line.share)));
        rows.truncate(1);
    }
    let mut rows = rows.into_iter();
    let Some(head) = rows.next() else { return Vec::new() };
    let mut timed: Vec<(u64, Vec<String>)> = singles.iter().map(|span| span.durations.total_ns).zip(rows).collect();
    timed.extend(groups.iter().map(|group| (group.total_ns(), group_row(group, head.len()))));
    timed.sort_by_key(|(total, _)| std::cmp::Reverse(*total));
    std::iter::once(head).chain(timed.into_iter().take(most).map(|(_, row)| row)).collect()
}

/// Repeated spans as one row with their common figures.
fn group_row(group: &Repeated<'_>, columns: usize) -> Vec<String> {
    let all = || group.spans.iter();
    let total = group.total_ns();
    let number: u64 = all().map(|span| span.durations.count).sum();
    let longest = all().filter_map(|span| span.durations.max_ns).max();
    let share = all().map(|span| span.share).sum::<Option<f64>>();
    let mut row = vec![group.name.clone(), count(number), duration(total / number.max(1))];
    row.resize(columns.saturating_sub(3), "-".to_owned());
    row.push(longest.map_or_else(|| "-".to_owned(), duration));
    row.extend([duration(total), share.map_or_else(|| "-".to_owned(), percent)]);
    row
}

/// Repeated spans of a report.
pub(super) fn repeated_spans(report: &Report) -> Vec<Repeated<'_>> {
    repeated::groups(&report.spans)
}

/// Phases of several recordings: a row for each statistic.
pub(super) fn phases_table(reports: &[(&str, &Report)]) -> Vec<Vec<String>> {
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
    rows
}

/// Throughput, memory and hardware: a row for each quantity, a column for each recording.
pub(super) fn machine(reports: &[(&str, &Report)]) -> Vec<Vec<String>> {
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
pub(super) fn energy_table(reports: &[(&str, &Report)]) -> Vec<Vec<String>> {
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

/// Memory by phase, as the program counts its allocations.
pub(super) fn memory_table(report: &Report) -> Vec<Vec<String>> {
    let head = ["memory", "allocated", "allocations", "freed", "releases", "peak live"].map(str::to_owned).to_vec();
    let rows = report.memory.phases.iter().map(|phase| {
        vec![
            phase.name.clone(),
            bytes(phase.allocated_bytes as f64),
            count(phase.allocations),
            bytes(phase.freed_bytes as f64),
            count(phase.releases),
            bytes(phase.peak_live_bytes as f64),
        ]
    });
    std::iter::once(head).chain(rows).collect()
}
