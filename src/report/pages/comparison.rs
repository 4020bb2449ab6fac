//! Two runs side by side: which is faster, then what differs.

use super::findings::{findings, steps, verdict};
use super::head::{about, facts, name, stem};
use super::tables::{energy_table, machine};
use crate::report::compare::numbers;
use crate::report::contents::Report;
use crate::report::document::{Block, Document};
use crate::report::pictures::{hardware, interval, percentiles, shares, step_times};
use crate::report::sections::percentile_curve::PercentileCurve;
use gnntop_analysis::comparison::Comparison;

impl Document {
    /// A comparison with a report of each side, A first, and the name of its recording. With several runs a side, the
    /// report is on the first.
    pub fn compared(comparison: &Comparison, sides: [(&str, &Report); 2]) -> Self {
        let [a, b] = sides;
        let heading = |text: &str| Block::Heading(text.to_owned());
        let letters = [("A", a.1), ("B", b.1)];
        let blocks = vec![
            Block::Verdict(vec![comparison.headline()]),
            Block::Paragraph(comparison.sameness.sentence()),
            Block::Paragraph(comparison.population()),
            heading("How much longer B takes"),
            Block::Figure(interval::of_comparison(comparison)),
            Block::Figure(shares::of_mean_steps(&letters)),
            Block::Figure(by_percentile(comparison)),
            Block::Columns(columns(sides, comparison)),
            heading("Numbers"),
            Block::Table(numbers(comparison)),
            heading("Throughput, memory and hardware"),
            Block::Table(machine(&letters)),
            Block::Table(energy_table(&letters)),
            heading("Runs"),
            Block::Table(facts(&[a, b])),
        ];
        let [first, second] = names(sides);
        let title = format!("{first} and {second}, compared");
        Self { title, about: vec![format!("A is {}, B is {}", a.0, b.0)], blocks }
    }
}

/// The names of both: of their runs, or of their files if the runs have the same name.
fn names(sides: [(&str, &Report); 2]) -> [String; 2] {
    let own = sides.map(|(file, report)| name(file, report));
    if own[0] == own[1] { sides.map(|(file, _)| stem(file)) } else { own }
}

/// Step times of both by percentile, in one plot.
fn by_percentile(comparison: &Comparison) -> String {
    let period = comparison.lines.iter().find(|line| line.name == "period");
    let [Some(first), Some(second)] = period.map_or([None, None], |line| line.durations.each_ref().map(Option::as_ref))
    else {
        return String::new();
    };
    let [first, second] = PercentileCurve::of_two([first, second]);
    percentiles::of_curves(&[("A", &first), ("B", &second)])
}

/// The sides, step times on one scale, and findings.
fn columns(sides: [(&str, &Report); 2], comparison: &Comparison) -> Vec<Vec<Block>> {
    let top_ns = sides.iter().map(|(_, report)| step_times::top_of(&report.trace)).fold(0.0, f64::max);
    let names = names(sides);
    let column = |(at, (_, report)): (usize, (&str, &Report))| {
        let letter = ["A", "B"][at];
        let of = match comparison.sides[at].runs {
            1 => String::new(),
            runs => format!(", the first of {runs} runs"),
        };
        let mut blocks = vec![Block::Heading(format!("{letter}: {}{of}", names[at]))];
        blocks.extend(about(report).into_iter().map(Block::Paragraph));
        blocks.extend([verdict(report), Block::Figure(step_times::of_report(report, Some(top_ns)))]);
        let anchors = format!("{}-", letter.to_lowercase());
        blocks.extend(findings(report, &anchors));
        blocks.extend(steps(report, &anchors));
        blocks.push(Block::Figure(hardware::of_curves(&report.curves)));
        blocks
    };
    sides.into_iter().enumerate().map(column).collect()
}
