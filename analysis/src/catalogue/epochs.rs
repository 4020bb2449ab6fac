//! Epochs on the clock and as the sum of their steps' work: the first, and all others that are over and lose no step to
//! warm-up.

use std::collections::BTreeMap;

use crate::store::{StepRow, Store};

use super::work::{loading, work_ns};

/// Times of epochs.
#[derive(Default)]
pub(super) struct EpochTimes {
    /// The first one on the clock.
    pub first_ns: Option<u64>,
    /// The others on the clock, the shortest first.
    pub wall_ns: Vec<u64>,
    /// The work of their steps, the least first.
    pub work_ns: Vec<u64>,
}

impl EpochTimes {
    /// The epochs of the kept steps. `from` is the first step that is not left out.
    pub fn new(store: &Store, from: Option<StepRow<'_>>) -> Self {
        let loading = loading(store);
        let first = store.steps().row(0).map(|row| row.epoch());
        let mut times: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for row in store.steps().all() {
            let (wall, work) = times.entry(row.epoch()).or_default();
            *wall = wall.saturating_add(row.period_ns());
            *work = work.saturating_add(work_ns(&row, &loading));
        }
        let mut epochs =
            Self { first_ns: first.and_then(|first| times.remove(&first)).map(|(wall, _)| wall), ..Self::default() };
        if let Some(unfinished) = store.unfinished_epoch() {
            times.remove(&unfinished);
        }
        let from = from.map_or(u64::MAX, |row| {
            let before = row.ordinal().checked_sub(1).and_then(|before| store.steps().row(before));
            row.epoch() + u64::from(before.is_some_and(|before| before.epoch() == row.epoch()))
        });
        (epochs.wall_ns, epochs.work_ns) = times.range(from..).map(|(_, times)| *times).unzip();
        epochs.wall_ns.sort_unstable();
        epochs.work_ns.sort_unstable();
        epochs
    }
}
