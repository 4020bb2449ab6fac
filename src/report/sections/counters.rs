//! The program's own counters: queue depths, accuracies, and whatever else it counts.

use serde::Serialize;

use crate::report::document::Block;
use gnntop_analysis::catalogue::{Catalogue, Statistic};
use gnntop_analysis::figures::{count, quantity};
use gnntop_analysis::store::CounterSeries;
use gnntop_wire::Reported;

/// What a counter was over the whole session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// Whether it is of a device's memory, which has its own section.
    #[serde(skip)]
    pub is_device: bool,
    /// How often it was set.
    pub count: u64,
    /// Its last value; absent where the last one was no number.
    pub last: Option<f64>,
    /// Mean of all values.
    pub mean: Option<f64>,
    /// Smallest value.
    pub min: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
}

impl Counter {
    /// All counters of the session, in the order in which they appeared.
    pub(in crate::report) fn all(figures: &Catalogue<'_>) -> Vec<Self> {
        let store = figures.store();
        let of = |counter: &CounterSeries| {
            let values = figures.subject("counter.COUNTER", store.name(counter.name));
            Self {
                name: store.name(counter.name).to_owned(),
                is_device: matches!(store.reported(counter.name), Some(Reported::Memory(_))),
                count: values.whole(Statistic::Count).unwrap_or(0),
                last: values.value(Statistic::Last),
                mean: values.value(Statistic::Mean),
                min: values.value(Statistic::Min),
                max: values.value(Statistic::Max),
            }
        };
        store.counters().iter().map(of).collect()
    }
}

/// The section; nothing without counters. Those of a device's memory have their own.
pub(in crate::report) fn blocks(counters: &[Counter]) -> Vec<Block> {
    let counters: Vec<&Counter> = counters.iter().filter(|counter| !counter.is_device).collect();
    if counters.is_empty() {
        return Vec::new();
    }
    let mut rows = vec![Vec::from(["counter", "count", "last", "mean", "min", "max"].map(str::to_owned))];
    let value = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), quantity);
    for counter in counters {
        let values = [counter.last, counter.mean, counter.min, counter.max].map(value);
        rows.push([vec![counter.name.clone(), count(counter.count)], values.to_vec()].concat());
    }
    vec![Block::heading("Counters"), Block::table(rows)]
}
