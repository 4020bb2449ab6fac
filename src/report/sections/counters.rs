//! The program's own counters: queue depths, accuracies, and whatever else it counts.

use serde::Serialize;

use gnntop_analysis::store::{CounterSeries, Store};

/// What a counter was over the whole session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// How often it was set.
    pub count: u64,
    /// Its last value; absent where the last one was no number.
    pub last: Option<f64>,
    /// Mean of all values.
    pub mean: Option<f64>,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
}

impl Counter {
    /// All counters of the session, in the order in which they appeared.
    pub(in crate::report) fn all(store: &Store) -> Vec<Self> {
        let of = |counter: &CounterSeries| {
            let summary = counter.series.summary();
            Self {
                name: store.name(counter.name).to_owned(),
                count: summary.count,
                last: counter.series.last().and_then(|point| point.value()),
                mean: summary.mean(),
                min: summary.min,
                max: summary.max,
            }
        };
        store.counters().iter().map(of).collect()
    }
}
