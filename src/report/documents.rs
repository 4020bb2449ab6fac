//! Documents on a recording, on several side by side, and on a comparison: how much faster the work gets done, whether both ran
//! the same, then the numbers.

use super::document::{Block, Document};
use super::pictures::{bars, shares};
use super::sections::percentile_curve::{self, PercentileCurve};
use super::sections::session::file_stem;
use super::sections::{BESIDE, Named, Report, SECTIONS, curves, each_part, finding_steps, findings, phases, trace};
use gnntop_analysis::comparison::{Compared, Comparison, Line};
use gnntop_analysis::figures::{change, duration};

const BOTH_TIMES: &str = "step: from its own start; period: with the gap before it, as in work per second; a phase: in the \
                          steps that have it";

impl Document {
    /// A comparison without reports of its sides. The caller says which recordings A and B are.
    pub fn from_comparison(comparison: &Comparison) -> Self {
        let mut blocks = headline(comparison);
        blocks.extend([Block::table(numbers(comparison)), Block::Paragraph(BOTH_TIMES.to_owned())]);
        Self { title: String::new(), about: Vec::new(), blocks }
    }

    /// A comparison with a report of each side, A first, and the name of its recording. With several runs a side, the
    /// report is on the first.
    pub fn from_compared_reports(comparison: &Comparison, sides: [(&str, &Report); 2]) -> Self {
        let [a, b] = sides;
        let letters = [("A", a.1), ("B", b.1)];
        let mut blocks = headline(comparison);
        blocks.extend([
            Block::heading("How much longer B takes"),
            Block::picture(bars::intervals(comparison)),
            Block::picture(shares::mean_step_shares(&each_part(&letters, |report| report.phases.as_slice()))),
            Block::picture(by_percentile(comparison)),
            Block::Columns(columns(sides, comparison)),
            Block::heading("Numbers"),
            Block::table(numbers(comparison)),
            Block::Paragraph(BOTH_TIMES.to_owned()),
        ]);
        blocks.extend(BESIDE.iter().flat_map(|section| section(&letters)));
        let [first, second] = names(sides);
        let title = format!("{first} and {second}, compared");
        Self { title, about: vec![format!("A is {}, B is {}", a.0, b.0)], blocks }
    }
}

fn headline(comparison: &Comparison) -> Vec<Block> {
    let sentences = [comparison.sameness.sentence(), comparison.population()].map(Block::Paragraph);
    std::iter::once(Block::Verdict(vec![comparison.headline()])).chain(sentences).collect()
}

/// All numbers as a table with its head.
fn numbers(comparison: &Comparison) -> Vec<Vec<String>> {
    let head = ["", "", "A", "B", "change", "95 % interval", "B is"].map(str::to_owned).to_vec();
    let numbers = comparison.lines.iter().flat_map(|line: &Line| &line.numbers);
    std::iter::once(head).chain(numbers.map(cells)).collect()
}

fn cells(compared: &Compared) -> Vec<String> {
    let interval = |(low, high): (f64, f64)| format!("{} to {}", change(low), change(high));
    vec![
        compared.name.clone(),
        compared.statistic.clone(),
        duration(compared.first_ns as u64),
        duration(compared.second_ns as u64),
        change(compared.change),
        compared.interval.map_or_else(|| "-".to_owned(), interval),
        compared.verdict.as_str().to_owned(),
    ]
}

/// The names of both: of their runs, or of their files if the runs have the same name.
fn names(sides: [(&str, &Report); 2]) -> [String; 2] {
    let own = sides.map(|(file, report)| report.session.name_or(file));
    if own[0] == own[1] { sides.map(|(file, _)| file_stem(file)) } else { own }
}

/// Step times of both by percentile, in one plot.
fn by_percentile(comparison: &Comparison) -> String {
    let period = comparison.lines.iter().find(|line| line.name == "period");
    let [Some(first), Some(second)] = period.map_or([None, None], |line| line.durations.each_ref().map(Option::as_ref))
    else {
        return String::new();
    };
    let [first, second] = PercentileCurve::pair([first, second]);
    percentile_curve::picture(&[("A", &first), ("B", &second)])
}

/// The sides, step times on one scale, and findings.
fn columns(sides: [(&str, &Report); 2], comparison: &Comparison) -> Vec<Vec<Block>> {
    let top_ns = sides.iter().map(|(_, report)| trace::scale_top_ns(&report.trace)).fold(0.0, f64::max);
    let names = names(sides);
    let column = |(at, (_, report)): (usize, (&str, &Report))| {
        let (letter, anchors) = [("A", "a-"), ("B", "b-")][at];
        let of = match comparison.sides[at].runs {
            1 => String::new(),
            runs => format!(", the first of {runs} runs"),
        };
        let mut blocks = vec![Block::Heading(format!("{letter}: {}{of}", names[at]))];
        blocks.extend(report.about().into_iter().map(Block::Paragraph));
        blocks.push(findings::verdict(&report.verdict));
        blocks.push(Block::picture(trace::picture(&report.trace, &report.steps, &report.findings, Some(top_ns))));
        blocks.extend(report.findings_blocks(anchors));
        blocks.extend(finding_steps::blocks(&report.noted, &report.breakdown.phases, &report.phases, anchors));
        blocks.push(Block::picture(curves::picture(&report.curves)));
        blocks
    };
    sides.into_iter().enumerate().map(column).collect()
}

impl Document {
    /// The document on reports with the names of their recordings. Several get a column each.
    pub fn from_reports(reports: &[(&str, &Report)]) -> Self {
        match reports {
            [one @ (file, report)] => Self {
                title: report.title(file),
                about: report.about(),
                blocks: SECTIONS.iter().flat_map(|section| section(*one)).collect(),
            },
            several => {
                let names: Vec<String> = several.iter().map(|(file, report)| report.session.name_or(file)).collect();
                let title = format!("{} runs: {}", several.len(), names.join(", "));
                Self { title, about: Vec::new(), blocks: side_by_side(several) }
            }
        }
    }

    /// Adds the pictures of a recording: shares of its phases, its step times, its last steps, its hardware.
    pub fn pictures(&mut self, report: &Report) {
        self.blocks.push(Block::picture(shares::phase_shares(&report.phases)));
        self.blocks.extend(report.step_pictures(None));
        self.blocks.push(Block::picture(curves::picture(&report.curves)));
    }
}

fn side_by_side(reports: &[Named<'_>]) -> Vec<Block> {
    let found = |(at, (file, report)): (usize, &Named<'_>)| {
        let mut blocks = vec![Block::Heading(report.session.name_or(file))];
        blocks.extend(report.about().into_iter().map(Block::Paragraph));
        blocks.extend(report.judged_blocks());
        blocks.extend(report.findings_blocks(&anchors(at)));
        blocks
    };
    let seen = |(at, (file, report)): (usize, &Named<'_>)| {
        let mut blocks = vec![Block::Heading(report.session.name_or(file))];
        blocks.extend(report.step_pictures(None));
        blocks.extend(finding_steps::blocks(&report.noted, &report.breakdown.phases, &report.phases, &anchors(at)));
        blocks.push(Block::picture(curves::picture(&report.curves)));
        blocks
    };
    let all_phases = each_part(reports, |report| report.phases.as_slice());
    let mut blocks = vec![
        Block::Columns(reports.iter().enumerate().map(found).collect()),
        Block::picture(shares::mean_step_shares(&all_phases)),
    ];
    blocks.extend(phases::comparison_blocks(&all_phases));
    blocks.extend(BESIDE.iter().flat_map(|section| section(reports)));
    blocks.push(Block::Columns(reports.iter().enumerate().map(seen).collect()));
    blocks
}

fn anchors(at: usize) -> String {
    format!("run-{at}-")
}
