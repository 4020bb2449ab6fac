//! Counters of the program itself, its restarts, and the recording of it.

use crate::catalogue::measured::{AbsentFigure, FoundValue};
use crate::catalogue::row::{Names, Row};
use crate::catalogue::statistic::Statistic;
use crate::figures::FigureUnit;

/// Why there is no progress.
const NO_GOAL: &str = "nobody says how far the run is meant to go: gnntop run --goal";

pub(in crate::catalogue) const ROWS: &[Row] = &[
    Row {
        subject: "counter.COUNTER",
        about: "a counter of the program, such as an accuracy or the depth of a queue",
        names: Names::Program(|context| {
            context.store.program_counters().map(|counter| context.store.name(counter.name).to_owned()).collect()
        }),
        statistics: |_| {
            let values = [Statistic::Last, Statistic::Mean, Statistic::Min, Statistic::Max];
            values
                .map(|of| (of, FigureUnit::Number))
                .into_iter()
                .chain([(Statistic::Count, FigureUnit::Count)])
                .collect()
        },
        get: |context, name, statistic| match context.counter(name) {
            Some(counter) => FoundValue::from_readings(&counter.series, statistic, 1.0),
            None => AbsentFigure::because("the program has no such counter"),
        },
    },
    Row {
        subject: "goal",
        about: "the part of the way to the run's goal that is done",
        names: Names::None,
        statistics: |_| vec![(Statistic::Share, FigureUnit::Share)],
        get: |context, _, _| match context.store.progress() {
            Some(progress) => FoundValue::from_everything(progress.share(), "no epoch is over yet"),
            None => AbsentFigure::because(NO_GOAL),
        },
    },
    Row {
        subject: "time_left",
        about: "what the rest of the way to the goal takes, at the mean pace of the newer half of the time",
        names: Names::None,
        statistics: |_| vec![(Statistic::Total, FigureUnit::Time)],
        get: |context, _, _| match context.store.progress() {
            Some(progress) => FoundValue::from_everything(
                progress.left_ns.map(|ns| ns as f64),
                "the goal is reached, the run is over, or its pace is not known",
            ),
            None => AbsentFigure::because(NO_GOAL),
        },
    },
    Row {
        subject: "restarts",
        about: "how often the run was started again, and the time that this cost",
        names: Names::None,
        statistics: |_| vec![(Statistic::Count, FigureUnit::Count), (Statistic::Total, FigureUnit::Time)],
        get: |context, _, statistic| {
            let restarts = context.store.restarts();
            let value = match statistic {
                Statistic::Count => Some(restarts.map_or(0, |restarts| restarts.count) as f64),
                _ => restarts.map(|restarts| restarts.lost_ns as f64),
            };
            FoundValue::from_everything(value, "the run was started once")
        },
    },
    Row {
        subject: "repeated_steps",
        about: "steps that were done twice, because a checkpoint was older than the last step",
        names: Names::None,
        statistics: |_| vec![(Statistic::Count, FigureUnit::Count)],
        get: |context, _, _| {
            let repeated = context.store.restarts().and_then(|restarts| restarts.repeated_steps);
            FoundValue::from_everything(repeated.map(|steps| steps as f64), "the program does not say where it resumed")
        },
    },
    Row {
        subject: "recording",
        about: "the time from the earliest to the newest event",
        names: Names::None,
        statistics: |_| vec![(Statistic::Total, FigureUnit::Time)],
        get: |context, _, _| {
            FoundValue::from_everything(Some(context.store.elapsed_ns() as f64), "there are no events")
        },
    },
    Row {
        subject: "sampled_stacks",
        about: "stacks that were taken at a fixed rate, and the part of a core that taking them cost",
        names: Names::None,
        statistics: |_| vec![(Statistic::Count, FigureUnit::Count), (Statistic::Share, FigureUnit::Share)],
        get: |context, _, statistic| {
            let sampled = Some(context.store.sampled()).filter(|sampled| !sampled.is_empty());
            let value = sampled.map(|sampled| match statistic {
                Statistic::Share => sampled.cost_ns() as f64 / context.store.elapsed_ns() as f64,
                _ => sampled.total() as f64,
            });
            FoundValue::from_everything(value, "no stacks were sampled")
        },
    },
];
