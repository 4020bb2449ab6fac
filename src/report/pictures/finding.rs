//! A finding's own small picture: where it was seen, or what it is about.

use super::bars::{Bar, bars};
use super::{energy, hardware, shares, step_times};
use crate::report::contents::Report;
use crate::report::sections::ranks::RankLine;
use gnntop_analysis::figures::{duration, percent};
use gnntop_analysis::findings::{Finding, Kind};
use gnntop_analysis::store::GAP;
use gnntop_wire::phase;

/// Most ranks that get a bar.
const RANKS: usize = 8;

/// The picture; empty if there is nothing to draw.
pub(in crate::report) fn of_finding(report: &Report, finding: &Finding) -> String {
    let candidates = [&about, &step_times::of_finding as &dyn Fn(&Report, &Finding) -> String, &share];
    candidates.iter().map(|draw| draw(report, finding)).find(|html| !html.is_empty()).unwrap_or_default()
}

/// What the finding is about, if not single steps.
fn about(report: &Report, finding: &Finding) -> String {
    match finding.kind {
        Kind::DataBound => shares::of_one_phase(report, phase::DATA_WAIT),
        Kind::Gap => shares::of_one_phase(report, GAP),
        Kind::MemoryGrowth => hardware::of_one(&report.curves, "resident memory"),
        Kind::Contention if finding.share.is_none() => hardware::of_one(&report.curves, "cores in use"),
        Kind::GpuIdle | Kind::GpuThrottled => hardware::of_one(&report.curves, "GPU"),
        Kind::ModelledEnergy | Kind::DoubtfulEnergy => energy::of_components(&report.energy),
        Kind::CommunicationBound => of_ranks(report, |rank| rank.reduce_share, percent),
        Kind::StarvedRank => of_ranks(report, data_wait, percent),
        Kind::Straggler | Kind::Imbalance | Kind::Hang => of_ranks(report, own_ns, |ns| duration(ns as u64)),
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
fn of_ranks(report: &Report, value: fn(&RankLine) -> Option<f64>, text: fn(f64) -> String) -> String {
    let Some(run) = &report.run else { return String::new() };
    let most = run.ranks.iter().filter_map(value).fold(0.0, f64::max);
    let bar = |rank: &RankLine| {
        let value = value(rank)?;
        let class = if value >= most { "warning" } else { "series" };
        Some(Bar { name: format!("rank {}", rank.rank), value, text: text(value), class })
    };
    bars(&run.ranks.iter().filter_map(bar).take(RANKS).collect::<Vec<Bar>>(), None)
}

/// The share of the wall time that it costs.
fn share(_: &Report, finding: &Finding) -> String {
    let Some(share) = finding.share.filter(|share| *share > 0.0) else { return String::new() };
    let bar = Bar { name: "wall time".to_owned(), value: share, text: percent(share), class: "warning" };
    bars(&[bar], Some(1.0))
}
