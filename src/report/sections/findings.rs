//! What was found, each with a small picture of where it was seen or what it is about.

use super::curves::{self, Curve};
use super::energy::{Component, Energy};
use super::finding_steps::{FindingStep, anchor};
use super::phases::PhaseLine;
use super::ranks::{RankLine, RunReport};
use super::trace::{self, TracePoint};
use crate::report::document::{Block, Card};
use crate::report::pictures::bars::{NamedBar, bars};
use crate::report::pictures::shares;
use gnntop_analysis::energy::EnergyScope;
use gnntop_analysis::figures::{counted, duration, percent, quantity};
use gnntop_analysis::findings::{Finding, FindingKind, Findings, NotEnough};
use gnntop_analysis::store::GAP;
use gnntop_wire::phase;

/// Smaller shares would read as 0.0 %.
const LEAST_SHARE: f64 = 0.0005;
/// Most ranks that get a bar.
const RANKS: usize = 8;

/// What the pictures are drawn from.
#[derive(Clone, Copy, Debug)]
pub(in crate::report) struct PictureSources<'r> {
    pub phases: &'r [PhaseLine],
    pub trace: &'r [TracePoint],
    pub curves: &'r [Curve],
    pub energy: &'r Energy,
    pub run: Option<&'r RunReport>,
    pub noted: &'r [FindingStep],
}

/// A verdict, in parts.
pub(in crate::report) fn verdict(verdict: &str) -> Block {
    Block::Verdict(verdict.split("; ").map(str::to_owned).collect())
}

/// The findings, and what could not be looked for. `run` distinguishes the anchors of several recordings.
pub(in crate::report) fn blocks(findings: &Findings, drawn: PictureSources<'_>, run: &str) -> Vec<Block> {
    let mut blocks = vec![match findings.found.as_slice() {
        [] => Block::Paragraph("Nothing found.".to_owned()),
        some => Block::Findings(some.iter().map(|one| card(drawn, one, run)).collect()),
    }];
    if findings.without_first > 0 && findings.found.iter().any(|finding| finding.share.is_some()) {
        let first = counted(findings.without_first, "step", "steps");
        blocks.push(Block::Paragraph(format!(
            "The shares of findings are without the first {first}, which may warm up."
        )));
    }
    let not_enough = &findings.not_enough;
    if !not_enough.is_empty() {
        let why = |one: &NotEnough| format!("{}: {}", one.kind.title(), one.reason);
        let line = format!("Not checked, for lack of data ({})", not_enough.len());
        let all = vec![Block::List(not_enough.iter().map(why).collect())];
        blocks.push(Block::Folded { line, short: Vec::new(), all });
    }
    blocks
}

fn card(drawn: PictureSources<'_>, finding: &Finding, run: &str) -> Card {
    let is_there = |step: &&FindingStep| {
        step.found.iter().any(|(kind, _)| *kind == finding.kind)
            && finding.places.iter().any(|place| place.ordinals.contains(&step.ordinal))
    };
    let link = |step: &FindingStep| (anchor(run, step), format!("step {}, {}", step.step, duration(step.period_ns)));
    Card {
        severity: finding.severity,
        title: finding.kind.title().to_owned(),
        confidence: finding.confidence.as_str(),
        share: match finding.counted_elsewhere() {
            Some(_) => "counted elsewhere".to_owned(),
            None => finding.share.filter(|share| *share >= LEAST_SHARE).map_or_else(String::new, percent),
        },
        summary: finding.summary.clone(),
        picture: picture(drawn, finding),
        steps: drawn.noted.iter().filter(is_there).map(link).collect(),
        evidence: finding.evidence.clone(),
        advice: finding.advice.clone(),
    }
}

/// The picture; empty if there is nothing to draw.
fn picture(drawn: PictureSources<'_>, finding: &Finding) -> String {
    let candidates =
        [about, |drawn: PictureSources<'_>, finding: &Finding| trace::finding_picture(drawn.trace, finding), share];
    candidates.iter().map(|draw| draw(drawn, finding)).find(|html| !html.is_empty()).unwrap_or_default()
}

/// What the finding is about, if not single steps.
fn about(drawn: PictureSources<'_>, finding: &Finding) -> String {
    match finding.kind {
        FindingKind::DataBound => shares::one_phase_share(drawn.phases, phase::DATA_WAIT),
        FindingKind::Gap => shares::one_phase_share(drawn.phases, GAP),
        FindingKind::MemoryGrowth => curves::single_curve(drawn.curves, "resident memory"),
        FindingKind::Contention if finding.share.is_none() => curves::single_curve(drawn.curves, "cores in use"),
        FindingKind::GpuIdle | FindingKind::GpuThrottled => curves::single_curve(drawn.curves, "GPU"),
        FindingKind::ModelledEnergy | FindingKind::DoubtfulEnergy => component_bars(drawn.energy),
        FindingKind::CommunicationBound => rank_bars(drawn.run, |rank| rank.reduce_share, percent),
        FindingKind::StarvedRank => rank_bars(drawn.run, data_wait, percent),
        FindingKind::Straggler | FindingKind::Imbalance | FindingKind::Hang => {
            rank_bars(drawn.run, own_ns, |ns| duration(ns as u64))
        }
        _ => String::new(),
    }
}

fn own_ns(rank: &RankLine) -> Option<f64> {
    rank.own_p50_ns.or(rank.period_p50_ns).map(|ns| ns as f64)
}

fn data_wait(rank: &RankLine) -> Option<f64> {
    rank.phases.iter().find(|(name, _)| name == phase::DATA_WAIT).map(|(_, share)| *share)
}

/// A bar for each rank, the longest one highlighted.
fn rank_bars(run: Option<&RunReport>, value: fn(&RankLine) -> Option<f64>, text: fn(f64) -> String) -> String {
    let Some(run) = run else { return String::new() };
    let most = run.ranks.iter().filter_map(value).fold(0.0, f64::max);
    let bar = |rank: &RankLine| {
        let value = value(rank)?;
        let class = if value >= most { "warning" } else { "series" };
        Some(NamedBar { name: format!("rank {}", rank.rank), value, text: text(value), class })
    };
    bars(&run.ranks.iter().filter_map(bar).take(RANKS).collect::<Vec<NamedBar>>(), None)
}

/// The share of the wall time that it costs.
fn share(_: PictureSources<'_>, finding: &Finding) -> String {
    let Some(share) = finding.share.filter(|share| *share > 0.0) else { return String::new() };
    let bar = NamedBar { name: "wall time".to_owned(), value: share, text: percent(share), class: "warning" };
    bars(&[bar], Some(1.0))
}

/// Joules of the components that have any, in the report's scope.
fn component_bars(energy: &Energy) -> String {
    let joules = |component: &Component| match energy.scope {
        EnergyScope::Job => component.job.as_ref().map(|all| all.joules),
        EnergyScope::Device => component.device.as_ref().map(|all| all.joules),
    };
    let bar = |component: &Component| {
        let value = joules(component)?;
        let text = format!("{} J, {}", quantity(value), component.source);
        Some(NamedBar { name: component.name.clone(), value, text, class: "series" })
    };
    bars(&energy.components.iter().filter_map(bar).collect::<Vec<NamedBar>>(), None)
}
