//! Steps by class: warm-up, full batches, partial batches; their periods, and the time for each item of a batch.

use crate::catalogue::context::Catalogue;
use crate::catalogue::measured::{FigureResult, FoundValue, STEPS};
use crate::catalogue::row::{Names, Row, durations};
use crate::catalogue::statistic::Statistic;
use crate::figures::FigureUnit;
use crate::findings::Class;

pub(in crate::catalogue) const ROWS: &[Row] = &[
    Row {
        subject: "full_batch",
        about: "periods of steps with a full batch, or of all where batches are not distinguished",
        names: Names::None,
        statistics: |_| class_statistics(),
        get: |context, _, statistic| class(context, Class::Full, statistic),
    },
    Row {
        subject: "partial_batch",
        about: "periods of steps with a smaller batch, such as an epoch's last",
        names: Names::None,
        statistics: |_| class_statistics(),
        get: |context, _, statistic| class(context, Class::Partial, statistic),
    },
    Row {
        subject: "warm_up",
        about: "periods of the first steps, where these are slower",
        names: Names::None,
        statistics: |_| class_statistics(),
        get: |context, _, statistic| class(context, Class::WarmUp, statistic),
    },
];

fn class_statistics() -> Vec<(Statistic, FigureUnit)> {
    let items = [Statistic::PerGraph, Statistic::PerNode, Statistic::PerEdge, Statistic::PerSeed];
    durations().into_iter().chain(items.map(|statistic| (statistic, FigureUnit::Time))).collect()
}

fn class(context: &Catalogue<'_>, class: Class, statistic: Statistic) -> FigureResult {
    let (periods, totals) = context.class(class);
    let total = match statistic {
        Statistic::PerGraph => totals.graphs,
        Statistic::PerNode => totals.nodes,
        Statistic::PerEdge => totals.edges,
        Statistic::PerSeed => totals.seeds,
        _ => return FoundValue::from_durations(periods, statistic, STEPS),
    };
    let each = (total.sum > 0).then(|| total.period_ns as f64 / total.sum as f64);
    FoundValue::from_count(each, periods.count(), STEPS, "the program does not report them")
}
