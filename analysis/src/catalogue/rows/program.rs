//! Counters of the program itself, and its restarts.

use crate::catalogue::measured::{Absent, Found};
use crate::catalogue::row::{Names, Row, is_called};
use crate::catalogue::statistic::Statistic;
use crate::figures::Unit;

pub(in crate::catalogue) const ROWS: &[Row] = &[
    Row {
        subject: "counter.COUNTER",
        about: "a counter of the program, such as an accuracy or the depth of a queue",
        names: Names::Program(|context| {
            context.store.own_counters().map(|counter| context.store.name(counter.name).to_owned()).collect()
        }),
        statistics: |_| {
            let values = [Statistic::Last, Statistic::Mean, Statistic::Min, Statistic::Max];
            values.map(|of| (of, Unit::Number)).into_iter().chain([(Statistic::Count, Unit::Count)]).collect()
        },
        get: |context, name, statistic| {
            let mut counters = context.store.own_counters();
            match counters.find(|counter| is_called(context.store.name(counter.name), name)) {
                Some(counter) => Found::of_readings(&counter.series, statistic, 1.0),
                None => Absent::because("the program has no such counter"),
            }
        },
    },
    Row {
        subject: "restarts",
        about: "how often the run was started again, and the time that this cost",
        names: Names::None,
        statistics: |_| vec![(Statistic::Count, Unit::Count), (Statistic::Total, Unit::Time)],
        get: |context, _, statistic| {
            let restarts = context.store.restarts();
            let value = match statistic {
                Statistic::Count => Some(restarts.map_or(0, |restarts| restarts.count) as f64),
                _ => restarts.map(|restarts| restarts.lost_ns as f64),
            };
            Found::in_all(value, "the run was started once")
        },
    },
];
