//! Epochs on the clock and as the sum of their steps' work.

use crate::catalogue::measured::{EPOCHS, FoundValue};
use crate::catalogue::row::{Names, Row};
use crate::catalogue::statistic::Statistic;
use crate::figures::FigureUnit;

pub(in crate::catalogue) const ROWS: &[Row] = &[
    Row {
        subject: "epochs",
        about: "epochs that the steps belong to",
        names: Names::None,
        statistics: |_| vec![(Statistic::Count, FigureUnit::Count)],
        get: |context, _, _| {
            let epochs = context.statistics().epochs();
            FoundValue::from_everything((epochs > 0).then_some(epochs as f64), "there are no steps")
        },
    },
    Row {
        subject: "epoch",
        about: "an epoch on the clock: the first one, and all others that are over and lose no step to `--skip-steps`",
        names: Names::None,
        statistics: |_| times().into_iter().chain([(Statistic::First, FigureUnit::Time)]).collect(),
        get: |context, _, statistic| match statistic {
            Statistic::First => {
                FoundValue::from_everything(context.epochs().first_ns.map(|ns| ns as f64), "its steps are not held")
            }
            _ => FoundValue::from_sorted(&context.epochs().wall_ns, statistic, EPOCHS),
        },
    },
    Row {
        subject: "epoch.work",
        about: "the work of an epoch's steps, of the same epochs without the first",
        names: Names::None,
        statistics: |_| times(),
        get: |context, _, statistic| FoundValue::from_sorted(&context.epochs().work_ns, statistic, EPOCHS),
    },
];

fn times() -> Vec<(Statistic, FigureUnit)> {
    let all = [Statistic::percentile(50.0), Statistic::Mean, Statistic::Min, Statistic::Max];
    all.map(|statistic| (statistic, FigureUnit::Time)).to_vec()
}
