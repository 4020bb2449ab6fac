//! Documents on a recording, and on several side by side.

use super::document::{Block, Document};
use super::pictures::shares;
use super::sections::{BESIDE, Named, Report, SECTIONS, curves, each_part, finding_steps, phases};

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
