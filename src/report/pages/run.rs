//! One recording as a document, and several side by side.

use super::findings::{findings, steps, verdict};
use super::head::{about, facts, name, title};
use super::tables::{
    classes_table, durations_table, energy_table, machine, memory_table, phases_table, places_table, repeated_spans,
    spans_table,
};
use crate::report::contents::Report;
use crate::report::document::{Block, Document};
use crate::report::pictures::{flames, hardware, last_steps, percentiles, shares, step_times};
use crate::report::sections::{losses, marks, ranks, restarts};
use gnntop_analysis::figures::counted;

/// Spans that are not folded.
const SPANS: usize = 10;
/// Most places in the program.
const PLACES: usize = 12;

const INTERVALS: &str = "± is the 95 % confidence interval of a mean; the intervals of percentiles are in JSON and CSV. \
                         Both assume independent steps and are too narrow if step times drift.";

impl Document {
    /// The document on reports with the names of their recordings. Several get a column each.
    pub fn of(reports: &[(&str, &Report)]) -> Self {
        match reports {
            [(file, report)] => Self { title: title(file, report), about: about(report), blocks: one(file, report) },
            several => {
                let names: Vec<String> = several.iter().map(|(file, report)| name(file, report)).collect();
                let title = format!("{} runs: {}", several.len(), names.join(", "));
                Self { title, about: Vec::new(), blocks: side_by_side(several) }
            }
        }
    }

    /// Adds the figures of a recording: shares of its phases, its step times, its last steps, its hardware.
    pub fn figures(&mut self, report: &Report) {
        self.blocks.extend(pictures(report));
        self.blocks.push(Block::Figure(hardware::of_curves(&report.curves)));
    }
}

fn one(file: &str, report: &Report) -> Vec<Block> {
    let mut blocks = vec![verdict(report), Block::Figure(shares::of_report(report)), heading("Findings")];
    blocks.extend(findings(report, ""));
    blocks.extend(pictures(report).into_iter().skip(1));
    if let Some(steps) = steps(report, "") {
        blocks.extend([heading("Steps to look at"), steps]);
    }
    blocks.extend(report.run.iter().flat_map(ranks::blocks));
    if let Some(found) = &report.restarts {
        blocks.extend([heading("Restarts"), Block::Table(restarts::rows(found))]);
    }
    phases(&mut blocks, report);
    spans(&mut blocks, report);
    where_in_code(&mut blocks, report);
    if !report.marks.is_empty() {
        blocks.extend([heading("Marks"), Block::Table(marks::rows(&report.marks))]);
    }
    blocks.extend([heading("Throughput, memory and hardware"), Block::Figure(hardware::of_curves(&report.curves))]);
    blocks.extend([
        Block::Table(machine(&[("", report)])),
        heading("Energy"),
        Block::Table(energy_table(&[("", report)])),
    ]);
    memory(&mut blocks, report);
    blocks.extend([heading("Run"), Block::Table(facts(&[(file, report)]))]);
    blocks.extend([heading("Lost"), list_or(losses::in_words(&report.losses), "Nothing.")]);
    blocks.extend([heading("Not measured"), list_or(report.not_measured.clone(), "Nothing.")]);
    blocks
}

fn side_by_side(reports: &[(&str, &Report)]) -> Vec<Block> {
    let found = |(at, (file, report)): (usize, &(&str, &Report))| {
        let mut blocks = vec![heading(&name(file, report))];
        blocks.extend(about(report).into_iter().map(Block::Paragraph));
        blocks.extend([verdict(report), Block::Figure(shares::of_report(report))]);
        blocks.extend(findings(report, &format!("run-{at}-")));
        blocks
    };
    let seen = |(at, (file, report)): (usize, &(&str, &Report))| {
        let mut blocks = vec![heading(&name(file, report))];
        blocks.extend(pictures(report).into_iter().skip(1));
        blocks.extend(steps(report, &format!("run-{at}-")));
        blocks.push(Block::Figure(hardware::of_curves(&report.curves)));
        blocks
    };
    vec![
        Block::Columns(reports.iter().enumerate().map(found).collect()),
        Block::Figure(shares::of_mean_steps(reports)),
        heading("Phases"),
        Block::Table(phases_table(reports)),
        heading("Throughput, memory and hardware"),
        Block::Table(machine(reports)),
        Block::Table(energy_table(reports)),
        heading("Runs"),
        Block::Table(facts(reports)),
        Block::Columns(reports.iter().enumerate().map(seen).collect()),
    ]
}

/// The pictures of a recording's steps, the shares of its phases first; one without data is empty.
fn pictures(report: &Report) -> [Block; 4] {
    [
        shares::of_report(report),
        step_times::of_report(report, None),
        percentiles::of_curves(&[("", &report.percentile_curve)]),
        last_steps::of_breakdown(&report.breakdown),
    ]
    .map(Block::Figure)
}

fn heading(text: &str) -> Block {
    Block::Heading(text.to_owned())
}

fn list_or(lines: Vec<String>, nothing: &str) -> Block {
    if lines.is_empty() { Block::Paragraph(nothing.to_owned()) } else { Block::List(lines) }
}

fn phases(blocks: &mut Vec<Block>, report: &Report) {
    if report.phases.is_empty() {
        return;
    }
    let lines = report.phases.iter().map(|line| (line.marked_name(), &line.durations, line.share));
    blocks.extend([heading("Phases"), Block::Table(durations_table("phase", lines))]);
    blocks.push(Block::Paragraph(INTERVALS.to_owned()));
    if let Some(device) = &report.device {
        blocks.push(heading("Phases on the device"));
        if !device.phases.is_empty() {
            let lines = device.phases.iter().map(|line| (line.name.as_str(), &line.durations, line.share));
            blocks.push(Block::Table(durations_table("phase", lines)));
        }
        blocks.push(Block::Paragraph(device.clocks()));
    }
    blocks.extend([heading("Kinds of steps"), Block::Table(classes_table(&report.classes))]);
}

/// Spans: repeated layers in one row and as a strip, the rest beyond ten rows folded.
fn spans(blocks: &mut Vec<Block>, report: &Report) {
    if report.spans.is_empty() {
        return;
    }
    let groups = repeated_spans(report);
    let shown = spans_table(&report.spans, &groups, SPANS);
    let is_whole = groups.is_empty() && report.spans.len() < shown.len();
    blocks.push(heading("Spans"));
    blocks.extend(groups.iter().map(|group| Block::Figure(group.to_html())));
    blocks.push(Block::Table(shown));
    if !is_whole {
        let all = spans_table(&report.spans, &[], usize::MAX);
        blocks.push(Block::Folded(format!("All {} spans", report.spans.len()), vec![Block::Table(all)]));
    }
}

/// Stacks over the whole run, and those of phases that took too long.
fn where_in_code(blocks: &mut Vec<Block>, report: &Report) {
    if let Some(sampled) = &report.sampled_stacks {
        blocks.extend([heading("Where in your code"), Block::Figure(flames::of_report(report))]);
        blocks.push(Block::Table(places_table(&sampled.places, sampled.known, PLACES)));
        blocks.push(Block::Paragraph(format!("Stacks: {}.", sampled.in_words())));
    }
    if let Some(stacks) = &report.stacks {
        blocks.push(heading("Where it took too long"));
        blocks.push(Block::Table(places_table(&stacks.places, stacks.taken, PLACES)));
        let taken = counted(stacks.taken, "stack", "stacks");
        blocks.push(Block::Paragraph(format!("{taken} taken while a phase took twice its p99, and at least 50 ms.")));
    }
}

fn memory(blocks: &mut Vec<Block>, report: &Report) {
    if let Some(device) = &report.memory.device {
        let facts = device.facts().into_iter().map(|(what, text)| vec![what.to_owned(), text]);
        let head = std::iter::once(vec!["device memory".to_owned(), String::new()]);
        blocks.push(Block::Table(head.chain(facts).collect()));
        let tables = [device.phase_rows(), device.kind_rows()];
        blocks.extend(tables.into_iter().filter(|rows| rows.len() > 1).map(Block::Table));
    }
    if !report.memory.phases.is_empty() {
        blocks.push(Block::Table(memory_table(report)));
    }
}
