//! Steps: how long they take, how many there are, and what they get through.

use gnntop_wire::ThreadUsage;

use crate::catalogue::context::Catalogue;
use crate::catalogue::measured::{FigureResult, FoundValue, STEPS};
use crate::catalogue::row::{Names, Row, durations, shared_durations};
use crate::catalogue::statistic::Statistic;
use crate::figures::FigureUnit;
use crate::store::{BatchTotals, Course, Distribution, StepStatistics, TimedValue, Total};

pub(in crate::catalogue) const ROWS: &[Row] = &[
    Row {
        subject: "step",
        about: "a step from its own start to its end; its share is of the wall time",
        names: Names::None,
        statistics: |_| shared_durations(),
        get: |context, _, statistic| steps_figure(context.statistics(), statistic, StepStatistics::step),
    },
    Row {
        subject: "period",
        about: "a step with the gap before it, from the end of the previous step",
        names: Names::None,
        statistics: |_| shared_durations(),
        get: |context, _, statistic| steps_figure(context.statistics(), statistic, StepStatistics::period),
    },
    Row {
        subject: "work",
        about: "the period without the gap and without getting the batch, as a timer around a step measures it",
        names: Names::None,
        statistics: |_| durations(),
        get: |context, _, statistic| FoundValue::from_durations(&context.work().work, statistic, STEPS),
    },
    Row {
        subject: "between",
        about: "the rest of the period",
        names: Names::None,
        statistics: |_| durations(),
        get: |context, _, statistic| FoundValue::from_durations(&context.work().between, statistic, STEPS),
    },
    Row {
        subject: "outliers",
        about: "steps whose work takes more than 1.5 times the median",
        names: Names::None,
        statistics: |_| vec![(Statistic::Count, FigureUnit::Count)],
        get: |context, _, _| over_steps(context, Some(context.work().outliers as f64), NO_STEPS),
    },
    Row {
        subject: "steps",
        about: "number of steps, and steps per second of wall time",
        names: Names::None,
        statistics: |_| vec![(Statistic::Count, FigureUnit::Count), (Statistic::PerS, FigureUnit::Rate)],
        get: |context, _, statistic| {
            let steps = context.statistics();
            let value = if statistic == Statistic::Count { Some(steps.steps() as f64) } else { steps.steps_per_s() };
            over_steps(context, value, NO_STEPS)
        },
    },
    Row {
        subject: "before_steps",
        about: "the time before the period of the first step",
        names: Names::None,
        statistics: |_| vec![(Statistic::Total, FigureUnit::Time)],
        get: |context, _, _| {
            let first = context.store.steps().row(0).zip(context.store.first_ns());
            let ns = first.map(|(row, first_ns)| row.period_start_ns().saturating_sub(first_ns) as f64);
            FoundValue::from_everything(ns, "the first step is not held")
        },
    },
    Row {
        subject: "after_steps",
        about: "the time after the last step",
        names: Names::None,
        statistics: |_| vec![(Statistic::Total, FigureUnit::Time)],
        get: |context, _, _| {
            let last = context.store.steps().last();
            let ns = last.map(|row| context.store.now_ns().saturating_sub(row.end_ns()) as f64);
            FoundValue::from_everything(ns, NO_STEPS)
        },
    },
    Row {
        subject: "ITEMS",
        about: "what is in the batches: `graphs`, `nodes`, `edges` (directed) or `seeds` (seed nodes)",
        names: Names::Own("graphs", |_| ITEMS.map(|(name, _)| name.to_owned()).to_vec()),
        statistics: |name| match items(name) {
            Some(_) => vec![(Statistic::PerS, FigureUnit::Rate), (Statistic::Total, FigureUnit::Count)],
            None => Vec::new(),
        },
        get: |context, name, statistic| {
            let total = items(name).map(|of| of(context.statistics().batch())).filter(|total| total.period_ns > 0);
            let value =
                total.and_then(|all| if statistic == Statistic::PerS { all.per_s() } else { Some(all.sum as f64) });
            over_steps(context, value, "the program does not report them")
        },
    },
    Row {
        subject: "loss",
        about: "the loss that the program reports with its steps, over these; else the one that it logs, over all of them",
        names: Names::None,
        statistics: |_| [Statistic::First, Statistic::Last, Statistic::Min].map(|of| (of, FigureUnit::Number)).to_vec(),
        get: |context, _, statistic| {
            let steps = context.statistics();
            let logged = context.store.loss().map(|loss| *loss.course());
            let value = |of: fn(Course) -> Option<TimedValue>| logged.and_then(of).map(|timed| timed.value);
            let loss = match statistic {
                Statistic::First => steps.first_loss().or_else(|| value(|course| course.first)),
                Statistic::Last => steps.last_loss().or_else(|| value(|course| course.last)),
                _ => value(|course| course.least),
            };
            over_steps(context, loss, "the program does not report it")
        },
    },
    Row {
        subject: "USAGE",
        about: "of the training thread: `minor_faults` and `major_faults` (of pages), `voluntary_switches` (it waited) and \
                `involuntary_switches` (it was made to wait)",
        names: Names::Own("minor_faults", |_| USAGE.map(|(name, _)| name.to_owned()).to_vec()),
        statistics: |name| match usage(name) {
            Some(_) => vec![(Statistic::Total, FigureUnit::Count), (Statistic::PerStep, FigureUnit::Count)],
            None => Vec::new(),
        },
        get: |context, name, statistic| {
            let steps = context.statistics();
            let total = steps.usage().zip(usage(name)).map(|(all, of)| of(all) as f64);
            let each = if statistic == Statistic::PerStep { steps.steps() as f64 } else { 1.0 };
            over_steps(context, total.map(|total| total / each), "the system does not report it")
        },
    },
];

type Items = fn(&BatchTotals) -> Total;
type Usage = fn(&ThreadUsage) -> u64;

/// What batches are made of.
const ITEMS: [(&str, Items); 4] = [
    ("graphs", |batch| batch.graphs),
    ("nodes", |batch| batch.nodes),
    ("edges", |batch| batch.edges),
    ("seeds", |batch| batch.seeds),
];
/// What the system counts of the training thread.
const USAGE: [(&str, Usage); 4] = [
    ("minor_faults", |usage| usage.minor_faults),
    ("major_faults", |usage| usage.major_faults),
    ("voluntary_switches", |usage| usage.voluntary_switches),
    ("involuntary_switches", |usage| usage.involuntary_switches),
];
const NO_STEPS: &str = "there are no steps";

/// A number over all steps.
fn over_steps(context: &Catalogue<'_>, value: Option<f64>, missing: &str) -> FigureResult {
    FoundValue::from_count(value, context.statistics().steps(), STEPS, missing)
}

/// A statistic of durations over some steps; its share is of their time.
pub(super) fn steps_figure(
    steps: &StepStatistics,
    statistic: Statistic,
    of: fn(&StepStatistics) -> &Distribution,
) -> FigureResult {
    if statistic == Statistic::Share {
        let share = of(steps).total_ns() as f64 / steps.tiled_ns() as f64;
        return FoundValue::from_count(Some(share), steps.steps(), STEPS, NO_STEPS);
    }
    FoundValue::from_durations(of(steps), statistic, STEPS)
}

fn items(name: &str) -> Option<Items> {
    ITEMS.iter().find(|(of, _)| *of == name).map(|(_, of)| *of)
}

fn usage(name: &str) -> Option<Usage> {
    USAGE.iter().find(|(of, _)| *of == name).map(|(_, of)| *of)
}
