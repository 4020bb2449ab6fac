//! The section on a run of several ranks: each rank in a line, and the throughput of the whole run.

use serde::Serialize;

use crate::report::document::Block;
use gnntop_analysis::catalogue::{Catalogue, Statistic};
use gnntop_analysis::figures::{count, counted, duration, percent, quantity};
use gnntop_analysis::ranks::{Presence, Rank, Ranks};
use gnntop_analysis::store::{Phase, Throughput};
use gnntop_analysis::stream::ClockEvidence;

/// A run of several ranks in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct RunReport {
    /// The run's id.
    pub id: String,
    /// Ranks by the run's own word.
    pub ranks_expected: u32,
    /// The rank that the rest of the report is about.
    pub rank_reported: u32,
    /// What carries data between the ranks; empty if the run does not say.
    pub engine: String,
    /// Work per second of the whole run: its copies of the model together, steps of the slowest rank.
    pub throughput: Throughput,
    /// Throughput of one rank alone, in graphs or seeds per second, from a run of one rank or the program.
    pub one_rank_per_s: Option<f64>,
    /// The run's graphs or seeds a second over as many times one rank alone; `None` if that is not known.
    pub efficiency: Option<f64>,
    /// Steps that skew, own times and waits are over: the newest that all ranks have and that are held.
    pub common_steps: u64,
    /// How much longer the slowest rank of a step worked than the fastest: median, in nanoseconds.
    pub skew_p50_ns: Option<u64>,
    /// The same, 90th percentile.
    pub skew_p90_ns: Option<u64>,
    /// The same, the largest.
    pub skew_max_ns: Option<u64>,
    /// Problems: ranks that are missing, gone, claimed twice, more than the cores.
    pub notes: Vec<String>,
    /// Each rank, by its number.
    pub ranks: Vec<RankLine>,
}

/// One rank in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct RankLine {
    /// Its number.
    pub rank: u32,
    /// Its stage of the pipeline.
    pub stage: u32,
    /// Its copy of the model.
    pub copy: u32,
    /// Its host.
    pub host: String,
    /// Its process.
    pub pid: u32,
    /// Where it computes; empty if the rank does not say.
    pub device: String,
    /// `here`, `silent`, `ended` or `gone`.
    pub state: &'static str,
    /// Its steps, without those that are left out.
    pub steps: u64,
    /// Median of its steps' periods, in nanoseconds.
    pub period_p50_ns: Option<u64>,
    /// Median of its own time in a step, without waiting for others in the all-reduce, in nanoseconds.
    pub own_p50_ns: Option<u64>,
    /// Share of its time in which it waited for others in the all-reduce, reported by the program or inferred from how
    /// long the last rank to arrive is in it; `None` if neither is possible.
    pub wait_share: Option<f64>,
    /// Share of its time in the all-reduce itself, reported or inferred in the same way.
    pub reduce_share: Option<f64>,
    /// Share of the common steps in which it was the slowest.
    pub slowest_share: Option<f64>,
    /// Share of each phase of its steps' wall time, the gap last.
    pub phases: Vec<(String, f64)>,
    /// What was added to its times, in nanoseconds.
    pub clock_offset_ns: i64,
    /// How far that may be off; `None` if it is not known.
    pub clock_error_ns: Option<u64>,
    /// What the offset rests on: `same clock`, `measured`, `wall clock` or `imported`.
    pub clock_evidence: &'static str,
}

impl RunReport {
    /// The section on the run of these figures; `None` if it is one session alone.
    pub fn new(figures: &Catalogue<'_>) -> Option<Self> {
        let run = figures.run().filter(|run| run.is_parallel())?;
        let ranks = run.ranks();
        let mut notes = run.notes();
        notes.extend(ranks.oversubscribed());
        let skew = figures.subject("run.skew", "");
        Some(Self {
            id: run.id().unwrap_or_default().to_owned(),
            ranks_expected: run.expected(),
            rank_reported: run.rank().unwrap_or_default(),
            engine: run.member().place().map(|place| place.engine.to_string()).unwrap_or_default(),
            efficiency: figures.value("run.efficiency.share"),
            one_rank_per_s: figures.value("run.one_rank.per_s"),
            throughput: throughput(figures, "run."),
            common_steps: skew.whole(Statistic::Count).unwrap_or(0),
            skew_p50_ns: skew.whole(Statistic::percentile(50.0)),
            skew_p90_ns: skew.whole(Statistic::percentile(90.0)),
            skew_max_ns: skew.whole(Statistic::Max),
            notes,
            ranks: ranks.all().iter().map(|rank| line(figures, rank, &ranks)).collect(),
        })
    }
}

/// Work per second: of the run with the prefix `run.`, of the session without one.
pub(super) fn throughput(figures: &Catalogue<'_>, prefix: &str) -> Throughput {
    let rate = |items: &str| figures.value(&format!("{prefix}{items}.per_s"));
    Throughput {
        steps_per_s: rate("steps"),
        graphs_per_s: rate("graphs"),
        nodes_per_s: rate("nodes"),
        edges_per_s: rate("edges"),
        seeds_per_s: rate("seeds"),
    }
}

fn line(figures: &Catalogue<'_>, rank: &Rank<'_>, ranks: &Ranks<'_>) -> RankLine {
    let (store, place) = (rank.store, rank.place);
    let info = store.session().info();
    let value = |figure: &str| figures.value(&format!("rank.{}.{figure}", place.rank));
    let whole = |figure| value(figure).map(|value| value as u64);
    let share = |phase: &Phase| {
        let name = format!("{}.{}", place.rank, phase.text);
        Some((phase.text.clone(), figures.subject("rank.RANK.PHASE", &name).value(Statistic::Share)?))
    };
    RankLine {
        rank: place.rank,
        stage: place.stage,
        copy: place.copy,
        host: info.map(|info| info.host.clone()).unwrap_or_default(),
        pid: info.map_or(0, |info| info.pid),
        device: place.device.clone(),
        state: match ranks.presence(rank) {
            Presence::Here => "here",
            Presence::Silent(_) => "silent",
            Presence::Ended => "ended",
            Presence::Gone => "gone",
        },
        steps: whole("steps.count").unwrap_or(0),
        period_p50_ns: whole("period.p50"),
        own_p50_ns: whole("own.p50"),
        wait_share: value("wait.share"),
        reduce_share: value("reduce.share"),
        slowest_share: value("slowest.share"),
        phases: store.phases().iter().filter_map(share).collect(),
        clock_offset_ns: rank.offset_ns,
        clock_error_ns: rank.error_ns,
        clock_evidence: match rank.evidence {
            ClockEvidence::SameClock => "same clock",
            ClockEvidence::Measured => "measured",
            ClockEvidence::WallClock => "wall clock",
            ClockEvidence::Imported => "imported",
        },
    }
}

/// The run's throughput and how far its ranks are apart, a sentence each.
fn sentences(run: &RunReport) -> Vec<String> {
    let mut lines = vec![format!("run {}: {} of {} ranks", run.id, run.ranks.len(), run.ranks_expected)];
    if !run.engine.is_empty() {
        lines[0] += &format!(", engine {}", run.engine);
    }
    let t = &run.throughput;
    let rates = [(t.steps_per_s, "steps/s"), (t.graphs_per_s, "graphs/s"), (t.seeds_per_s, "seeds/s")];
    let rates: Vec<String> =
        rates.iter().filter_map(|(rate, unit)| Some(format!("{} {unit}", quantity((*rate)?)))).collect();
    if !rates.is_empty() {
        lines.push(format!("all ranks together: {}", rates.join(", ")));
    }
    lines.push(match run.efficiency {
        Some(share) => format!("efficiency {} compared with the same number of single ranks", percent(share)),
        None => "efficiency unknown: give a run of one rank with --against, or report gnntop.one_rank(items_per_s)"
            .to_owned(),
    });
    if let (Some(median), Some(high), Some(most)) = (run.skew_p50_ns, run.skew_p90_ns, run.skew_max_ns) {
        let (median, high, most) = (duration(median), duration(high), duration(most));
        lines.push(format!(
            "skew in {}: p50 {median}, p90 {high}, max {most}",
            counted(run.common_steps, "step", "steps")
        ));
    }
    let clocks =
        run.ranks.iter().filter(|rank| !["same clock", "imported"].contains(&rank.clock_evidence)).map(|rank| {
            let sign = if rank.clock_offset_ns < 0 { "-" } else { "+" };
            let error =
                rank.clock_error_ns.map_or_else(|| "error unknown".to_owned(), |ns| format!("within {}", duration(ns)));
            let offset = duration(rank.clock_offset_ns.unsigned_abs());
            format!("clock of rank {}: {sign}{offset} ({}, {error})", rank.rank, rank.clock_evidence)
        });
    lines.extend(clocks);
    lines.extend(run.notes.iter().map(|note| format!("note: {note}")));
    lines.push(format!("the rest is about rank {}; --rank chooses another", run.rank_reported));
    lines
}

/// A row for each rank, below a head.
fn rank_rows(run: &RunReport) -> Vec<Vec<String>> {
    let head = ["rank", "where", "state", "steps", "period p50", "own p50", "wait", "reduce", "slowest"];
    let dash = || "-".to_owned();
    let row = |rank: &RankLine| {
        let device = if rank.device.is_empty() { String::new() } else { format!(" {}", rank.device) };
        vec![
            rank.rank.to_string(),
            format!("{}{device}", rank.host),
            rank.state.to_owned(),
            count(rank.steps),
            rank.period_p50_ns.map_or_else(dash, duration),
            rank.own_p50_ns.map_or_else(dash, duration),
            rank.wait_share.map_or_else(dash, percent),
            rank.reduce_share.map_or_else(dash, percent),
            rank.slowest_share.map_or_else(dash, percent),
        ]
    };
    std::iter::once(head.map(str::to_owned).to_vec()).chain(run.ranks.iter().map(row)).collect()
}

/// The share of each phase on each rank, below a head.
fn phase_rows(run: &RunReport) -> Vec<Vec<String>> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in run.ranks.iter().flat_map(|rank| &rank.phases) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let head = std::iter::once("rank".to_owned()).chain(names.iter().map(|name| (*name).to_owned())).collect();
    let row = |rank: &RankLine| {
        let share = |name: &&str| rank.phases.iter().find(|(known, _)| known == name).map(|(_, share)| percent(*share));
        let cells = names.iter().map(|name| share(name).unwrap_or_else(|| "-".to_owned()));
        std::iter::once(rank.rank.to_string()).chain(cells).collect()
    };
    std::iter::once(head).chain(run.ranks.iter().map(row)).collect()
}

/// The section; nothing for a run of one rank.
pub(in crate::report) fn blocks(run: Option<&RunReport>) -> Vec<Block> {
    let Some(run) = run else { return Vec::new() };
    let tables = [rank_rows(run), phase_rows(run)].map(Block::table);
    [Block::heading("Ranks"), Block::List(sentences(run))].into_iter().chain(tables).collect()
}
