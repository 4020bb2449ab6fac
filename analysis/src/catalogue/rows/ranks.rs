//! A run of several ranks: all together, how far apart they are, and each of them.

use crate::catalogue::context::Catalogue;
use crate::catalogue::measured::{AbsentFigure, FigureResult, FoundValue, STEPS};
use crate::catalogue::names::find_named;
use crate::catalogue::row::{Names, Row};
use crate::catalogue::statistic::Statistic;
use crate::figures::FigureUnit;
use crate::ranks::{RankWork, Ranks};
use crate::store::{StepStatistics, Store, Throughput};

pub(in crate::catalogue) const ROWS: &[Row] = &[
    Row {
        subject: "run.ITEMS",
        about: "what all ranks get through together: steps (of the slowest), graphs, nodes, edges, seeds; of a session \
                alone, what it does",
        names: Names::Own("graphs", |_| RATES.map(|(name, _)| name.to_owned()).to_vec()),
        statistics: |name| rate(name).map(|_| (Statistic::PerS, FigureUnit::Rate)).into_iter().collect(),
        get: |context, name, _| {
            let value = rate(name).and_then(|rate| rate(&throughput(context)));
            FoundValue::from_count(value, context.statistics().steps(), STEPS, "the program does not report them")
        },
    },
    Row {
        subject: "run.skew",
        about: "how much longer the slowest rank of a step works than the fastest, over the newest steps that all ranks have",
        names: Names::None,
        statistics: |_| {
            let all = [Statistic::percentile(50.0), Statistic::percentile(90.0), Statistic::Mean, Statistic::Max];
            all.map(|statistic| (statistic, FigureUnit::Time)).into_iter().chain([COUNT]).collect()
        },
        get: |context, _, statistic| match context.ranks_work() {
            Some(work) => FoundValue::from_sorted(&work.skew_ns, statistic, STEPS),
            None => AbsentFigure::because(ALONE),
        },
    },
    Row {
        subject: "run.one_rank",
        about: "graphs or seeds a second of one rank alone, as `--against` or the program says",
        names: Names::None,
        statistics: |_| vec![(Statistic::PerS, FigureUnit::Rate)],
        get: |context, _, _| match context.ranks() {
            Some(ranks) => FoundValue::from_everything(alone_per_s(context, &ranks.running), NOT_ALONE),
            None => AbsentFigure::because(ALONE),
        },
    },
    Row {
        subject: "run.efficiency",
        about: "the run's graphs or seeds a second, divided by those of one rank alone times the number of ranks",
        names: Names::None,
        statistics: |_| vec![(Statistic::Share, FigureUnit::Share)],
        get: |context, _, _| {
            let Some(ranks) = context.ranks() else { return AbsentFigure::because(ALONE) };
            let alone = alone_per_s(context, &ranks.running);
            let share = alone.and_then(|alone| ranks.running.efficiency(&throughput(context), alone));
            FoundValue::from_everything(share, NOT_ALONE)
        },
    },
    Row {
        subject: "rank.RANK.steps",
        about: "steps of a rank",
        names: Names::Own("0", ranks),
        statistics: |name| is_rank(name, &[COUNT]),
        get: |context, name, _| session_figure(context, name, |_, all| Some(all.steps() as f64)),
    },
    Row {
        subject: "rank.RANK.period",
        about: "the median period of a rank",
        names: Names::Own("0", ranks),
        statistics: |name| is_rank(name, &[(Statistic::percentile(50.0), FigureUnit::Time)]),
        get: |context, name, statistic| {
            let quantile = statistic.quantile().unwrap_or(0.5);
            session_figure(context, name, |_, all| all.period().percentile(quantile).map(|ns| ns as f64))
        },
    },
    Row {
        subject: "rank.RANK.own",
        about: "the time of a step that a rank does not wait for others in the all-reduce",
        names: Names::Own("0", ranks),
        statistics: |name| is_rank(name, &[(Statistic::percentile(50.0), FigureUnit::Time)]),
        get: |context, name, statistic| {
            let quantile = statistic.quantile().unwrap_or(0.5);
            rank_figure(context, name, |work, _| crate::ranks::quantile(&work.own_ns, quantile).map(|ns| ns as f64))
        },
    },
    Row {
        subject: "rank.RANK.wait",
        about: "the part of a rank's time in which it waits for others in the all-reduce",
        names: Names::Own("0", ranks),
        statistics: |name| is_rank(name, &[(Statistic::Share, FigureUnit::Share)]),
        get: |context, name, _| rank_figure(context, name, |work, _| share(work, work.wait_ns)),
    },
    Row {
        subject: "rank.RANK.reduce",
        about: "the part of a rank's time in the all-reduce itself",
        names: Names::Own("0", ranks),
        statistics: |name| is_rank(name, &[(Statistic::Share, FigureUnit::Share)]),
        get: |context, name, _| rank_figure(context, name, |work, _| share(work, work.reduce_ns)),
    },
    Row {
        subject: "rank.RANK.PHASE",
        about: "the part of a rank's time in a phase, or in the gap",
        names: Names::Program(phases_of_ranks),
        statistics: |_| vec![(Statistic::Share, FigureUnit::Share)],
        get: |context, name, _| {
            let (rank, phase) = name.split_once('.').unwrap_or((name, ""));
            session_figure(context, rank, |store, all| {
                all.share(find_named(store.phases(), |known| &known.text, phase)?.slot)
            })
        },
    },
    Row {
        subject: "rank.RANK.slowest",
        about: "the part of the common steps in which a rank is the slowest",
        names: Names::Own("0", ranks),
        statistics: |name| is_rank(name, &[(Statistic::Share, FigureUnit::Share)]),
        get: |context, name, _| rank_figure(context, name, |work, steps| Some(work.slowest_in as f64 / steps as f64)),
    },
];

/// The phases of each rank, as `0.forward`.
fn phases_of_ranks(context: &Catalogue<'_>) -> Vec<String> {
    let ranks = context.ranks().into_iter().flat_map(|ranks| ranks.all.all());
    let phases = ranks.flat_map(|rank| rank.store.phases().iter().map(|phase| (rank.place.rank, &phase.text)));
    phases.map(|(rank, phase)| format!("{rank}.{phase}")).collect()
}

const COUNT: (Statistic, FigureUnit) = (Statistic::Count, FigureUnit::Count);
const ALONE: &str = "the session is a run by itself";
const NO_RANK: &str = "the run has no such rank";
const UNKNOWN: &str = "it is not known of this rank";
const NOT_ALONE: &str = "it is not known what one rank alone gets through";

/// Work per second by name.
type Rate = fn(&Throughput) -> Option<f64>;

const RATES: [(&str, Rate); 5] = [
    ("steps", |t| t.steps_per_s),
    ("graphs", |t| t.graphs_per_s),
    ("nodes", |t| t.nodes_per_s),
    ("edges", |t| t.edges_per_s),
    ("seeds", |t| t.seeds_per_s),
];

fn rate(name: &str) -> Option<Rate> {
    RATES.iter().find(|(of, _)| *of == name).map(|(_, rate)| *rate)
}

fn throughput(context: &Catalogue<'_>) -> Throughput {
    let Some(ranks) = context.ranks() else { return context.statistics().throughput() };
    let statistics = |number| ranks.get(number).map(|(_, statistics)| statistics.throughput());
    ranks.running.throughput(|rank| statistics(rank.place.rank).unwrap_or_default())
}

fn alone_per_s(context: &Catalogue<'_>, running: &Ranks<'_>) -> Option<f64> {
    context.one_rank_per_s.or_else(|| running.alone_per_s())
}

fn ranks(context: &Catalogue<'_>) -> Vec<String> {
    let ranks = context.ranks().into_iter().flat_map(|ranks| ranks.all.all());
    ranks.map(|rank| rank.place.rank.to_string()).collect()
}

fn is_rank(name: &str, statistics: &[(Statistic, FigureUnit)]) -> Vec<(Statistic, FigureUnit)> {
    if name.parse::<u32>().is_ok() { statistics.to_vec() } else { Vec::new() }
}

/// A number of one rank's session.
fn session_figure(
    context: &Catalogue<'_>,
    name: &str,
    of: impl Fn(&Store, &StepStatistics) -> Option<f64>,
) -> FigureResult {
    let Some(ranks) = context.ranks() else { return AbsentFigure::because(ALONE) };
    let Some((rank, all)) = name.parse().ok().and_then(|number| ranks.get(number)) else {
        return AbsentFigure::because(NO_RANK);
    };
    FoundValue::from_count(of(rank.store, all), all.steps(), STEPS, UNKNOWN)
}

/// A number of a rank's part of the common steps, and of how many these are.
fn rank_figure(context: &Catalogue<'_>, name: &str, of: impl Fn(&RankWork, u64) -> Option<f64>) -> FigureResult {
    let Some((ranks, work)) = context.ranks().zip(context.ranks_work()) else { return AbsentFigure::because(ALONE) };
    let number = name.parse().ok();
    if number.is_none_or(|number| ranks.get(number).is_none()) {
        return AbsentFigure::because(NO_RANK);
    }
    let place = ranks.running.all().iter().position(|rank| Some(rank.place.rank) == number);
    let steps = work.skew_ns.len() as u64;
    FoundValue::from_count(place.and_then(|at| of(work.ranks.get(at)?, steps)), steps, STEPS, UNKNOWN)
}

fn share(work: &RankWork, ns: Option<u64>) -> Option<f64> {
    Some(ns? as f64 / work.period_ns.max(1) as f64)
}
