//! Facts that a rank publishes about itself: its schedule, its blocks, the size of the training set. As counters, which are
//! repeated because a long session keeps only its newest part, or as marks.

use gnntop_wire::Reported;

use super::schedule::Schedule;
use crate::store::Store;

/// The newest value of the mark or counter that says this; `None` if no finite one is kept.
pub fn value(store: &Store, what: Reported) -> Option<f64> {
    let is_it = |name| store.reported(name) == Some(what);
    let mark = store.marks().iter().rev().find(|mark| is_it(mark.name) && mark.value.is_some());
    let value = mark.and_then(|mark| mark.value).or_else(|| store.counter_of(what)?.series.last()?.value());
    value.filter(|value| value.is_finite())
}

/// The same as a whole number of at least 1.
pub fn count(store: &Store, what: Reported) -> Option<usize> {
    value(store, what).filter(|value| (1.0..=1e15).contains(value)).map(|value| value.round() as usize)
}

/// The schedule that the rank reports for its pipeline.
pub fn schedule(store: &Store) -> Option<Schedule> {
    let marks = store.marks().iter().rev().map(|mark| mark.name);
    let names = marks.chain(store.counters().iter().map(|counter| counter.name));
    names.filter_map(|name| store.reported(name)).find_map(|what| match what {
        Reported::GPipe => Some(Schedule::GPipe),
        Reported::OneForwardOneBackward => Some(Schedule::OneForwardOneBackward),
        _ => None,
    })
}
