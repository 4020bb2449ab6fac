//! Facts that a rank publishes about itself: its schedule, its blocks, the size of the training set. As counters, which are
//! repeated because a long session keeps only its newest part, or as marks.

use super::schedule::Schedule;
use crate::store::Store;

/// Blocks of the rank's stage.
pub const BLOCKS: &str = "blocks";
/// Micro-batches per step.
pub const MICRO_BATCHES: &str = "micro-batches";
/// Seeds or graphs in the training set.
pub const TRAINING_SET: &str = "training set";
/// Prefix of the counter or mark with the schedule's name.
const SCHEDULE: &str = "schedule ";

/// Name of a fact about a stage that another rank may publish, by the stage's number from 0.
pub fn of_stage(name: &str, stage: usize) -> String {
    format!("{name} of stage {stage}")
}

/// The newest value of the mark or counter with this name; `None` if no finite one is kept.
pub fn value(store: &Store, name: &str) -> Option<f64> {
    let mark = store.marks().iter().rev().find(|mark| store.name(mark.name) == name && mark.value.is_some());
    let counter = || store.counters().iter().find(|counter| store.name(counter.name) == name);
    let value = mark.and_then(|mark| mark.value).or_else(|| counter()?.series.last()?.value());
    value.filter(|value| value.is_finite())
}

/// The same as a whole number of at least 1.
pub fn count(store: &Store, name: &str) -> Option<usize> {
    value(store, name).filter(|value| (1.0..=1e15).contains(value)).map(|value| value.round() as usize)
}

/// The schedule that the rank reports for its pipeline.
pub fn schedule(store: &Store) -> Option<Schedule> {
    let marks = store.marks().iter().rev().map(|mark| mark.name);
    let names = marks.chain(store.counters().iter().map(|counter| counter.name)).map(|name| store.name(name));
    names.filter_map(|name| name.strip_prefix(SCHEDULE)).find_map(Schedule::named)
}
