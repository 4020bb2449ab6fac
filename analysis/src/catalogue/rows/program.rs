//! Counters of the program itself, and its restarts.

use crate::catalogue::measured::{AbsentFigure, FoundValue};
use crate::catalogue::row::{Names, Row, matches_name};
use crate::catalogue::statistic::Statistic;
use crate::figures::FigureUnit;

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
        get: |context, name, statistic| {
            let mut counters = context.store.program_counters();
            match counters.find(|counter| matches_name(context.store.name(counter.name), name)) {
                Some(counter) => FoundValue::from_readings(&counter.series, statistic, 1.0),
                None => AbsentFigure::because("the program has no such counter"),
            }
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
];
