//! Verdict and findings of a report, and the steps that they point to.

use crate::report::contents::Report;
use crate::report::document::{Block, Card, StepNote};
use crate::report::pictures::{finding, shares};
use crate::report::sections::noted::NotedStep;
use gnntop_analysis::figures::{duration, percent};
use gnntop_analysis::findings::{Finding, NotEnough};

/// Smaller shares would read as 0.0 %.
const LEAST_SHARE: f64 = 0.0005;

/// The verdict, in parts.
pub(super) fn verdict(report: &Report) -> Block {
    Block::Verdict(report.verdict.split("; ").map(str::to_owned).collect())
}

/// The findings, and what could not be looked for. `run` distinguishes the anchors of several recordings.
pub(super) fn findings(report: &Report, run: &str) -> Vec<Block> {
    let found = &report.findings.found;
    let mut blocks = vec![match found.as_slice() {
        [] => Block::Paragraph("Nothing found.".to_owned()),
        some => Block::Findings(some.iter().map(|one| card(report, one, run)).collect()),
    }];
    let not_enough = &report.findings.not_enough;
    if !not_enough.is_empty() {
        let why = |one: &NotEnough| format!("{}: {}", one.kind.title(), one.reason);
        let line = format!("Not checked, for lack of data ({})", not_enough.len());
        blocks.push(Block::Folded(line, vec![Block::List(not_enough.iter().map(why).collect())]));
    }
    blocks
}

fn card(report: &Report, finding: &Finding, run: &str) -> Card {
    let is_there = |step: &&NotedStep| {
        step.found.iter().any(|(kind, _)| *kind == finding.kind)
            && finding.places.iter().any(|place| place.ordinals.contains(&step.ordinal))
    };
    let link = |step: &NotedStep| (anchor(run, step), format!("step {}, {}", step.step, duration(step.period_ns)));
    Card {
        severity: finding.severity,
        title: finding.kind.title().to_owned(),
        confidence: finding.confidence.word(),
        share: finding.share.filter(|share| *share >= LEAST_SHARE).map_or_else(String::new, percent),
        summary: finding.summary.clone(),
        picture: finding::of_finding(report, finding),
        steps: report.noted.iter().filter(is_there).map(link).collect(),
        evidence: finding.evidence.clone(),
        advice: finding.advice.clone(),
    }
}

fn anchor(run: &str, step: &NotedStep) -> String {
    format!("{run}step-{}", step.ordinal)
}

/// The steps that findings point to; nothing if there are none.
pub(super) fn steps(report: &Report, run: &str) -> Option<Block> {
    let period = report.phases.iter().find(|line| line.name == "period");
    let median = period.and_then(|line| line.durations.percentiles.0.iter().find(|(p, _)| *p == 50.0)?.1);
    let note = |step: &NotedStep| StepNote {
        anchor: anchor(run, step),
        title: format!("Step {}", step.step),
        time: match median.filter(|median| *median > 0) {
            Some(median) => {
                format!("{}, {:.1} x the median", duration(step.period_ns), step.period_ns as f64 / median as f64)
            }
            None => duration(step.period_ns),
        },
        picture: shares::of_step(&report.breakdown.phases, &step.parts_ns, 1.0),
        sentences: step.found.iter().map(|(kind, text)| format!("{}: {text}", kind.title())).collect(),
    };
    (!report.noted.is_empty()).then(|| Block::Steps(report.noted.iter().map(note).collect()))
}
