//! The loss and what else went wrong among the values that the program logs: where each was least, and since when it was not
//! finite or diverged.

use serde::Serialize;

use crate::report::document::Block;
use gnntop_analysis::figures::{count, significant};
use gnntop_analysis::store::{LoggedValue, Store, TimedValue};

/// How a value that the program logs went, over the whole session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoggedLine {
    /// Its name; `loss` for the losses that steps have of their own.
    pub name: String,
    /// The step of the least value; absent without steps.
    pub least_step: Option<u64>,
    /// Values that were not finite.
    pub not_finite: u64,
    /// The step since which they are not.
    pub first_not_finite_step: Option<u64>,
    /// The step of the last number before.
    pub last_good_step: Option<u64>,
    /// The step since which a loss diverges, at the end of the session.
    pub diverges_since_step: Option<u64>,
    /// What is wrong with it, one sentence each.
    pub wrong: Vec<String>,
    /// The first and the last number, the least and the largest one.
    #[serde(skip)]
    values: [Option<f64>; 4],
}

impl LoggedLine {
    /// Losses, and all others that were once not finite.
    pub(in crate::report) fn all(store: &Store) -> Vec<Self> {
        let all = store.logged_values().into_iter();
        all.filter(|logged| logged.is_loss() || logged.course().not_finite > 0)
            .map(|logged| Self::new(&logged, store))
            .collect()
    }

    fn new(logged: &LoggedValue<'_>, store: &Store) -> Self {
        let course = logged.course();
        let step = |timed: Option<TimedValue>| store.step_before(timed?.t_ns).map(|row| row.step().0);
        let wrong = [logged.describe_not_finite(store), logged.describe_divergence(store)];
        Self {
            name: logged.name.to_owned(),
            least_step: step(course.least),
            not_finite: course.not_finite,
            first_not_finite_step: step(course.first_not_finite),
            last_good_step: step(course.last_good),
            diverges_since_step: step(logged.diverges_since()),
            wrong: wrong.into_iter().flatten().collect(),
            values: [course.first, course.last, course.least, course.most].map(|timed| timed.map(|timed| timed.value)),
        }
    }
}

/// The section; nothing where nothing is logged.
pub(in crate::report) fn blocks(logged: &[LoggedLine]) -> Vec<Block> {
    if logged.is_empty() {
        return Vec::new();
    }
    let dash = || "-".to_owned();
    let mut rows = vec![Vec::from(["value", "first", "last", "least", "most", "least at step"].map(str::to_owned))];
    for line in logged {
        let values = line.values.map(|value| value.map_or_else(dash, significant));
        let step = line.least_step.map_or_else(dash, count);
        rows.push([vec![line.name.clone()], values.to_vec(), vec![step]].concat());
    }
    let wrong = logged.iter().flat_map(|line| line.wrong.iter().map(move |wrong| format!("{}: {wrong}", line.name)));
    let wrong: Vec<String> = wrong.collect();
    let mut blocks = vec![Block::heading("Loss"), Block::table(rows)];
    if !wrong.is_empty() {
        blocks.push(Block::List(wrong));
    }
    blocks
}
