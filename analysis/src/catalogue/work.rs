//! A step without getting its batch and without the gap before it, which is what timers around a step see; and epochs, on the
//! clock and as the sum of their steps' work.

use std::collections::BTreeMap;

use gnntop_wire::phase::LOADING;

use crate::store::{Distribution, PhaseSlot, StepRow, Store};

/// Work that takes this many times the median is an outlier.
const OUTLIER: f64 = 1.5;

/// The work of steps, and the rest of their time.
pub(super) struct StepsWork {
    /// The work.
    pub work: Distribution,
    /// The rest of each period.
    pub between: Distribution,
    /// Steps whose work takes much longer than the median.
    pub outliers: u64,
    /// How long each phase of the work took in all.
    phases: Vec<(PhaseSlot, u64)>,
}

impl StepsWork {
    pub fn new<'a>(store: &Store, rows: impl Iterator<Item = StepRow<'a>>) -> Self {
        let loading = loading(store);
        let (mut work, mut between) = (Distribution::new(), Distribution::new());
        let is_work = |text: &str| !LOADING.contains(&text);
        let phases = store.phases().iter().filter(|phase| !phase.is_gap() && is_work(&phase.text));
        let mut phases: Vec<(PhaseSlot, u64)> = phases.map(|phase| (phase.slot, 0)).collect();
        let mut all = Vec::new();
        for row in rows {
            let ns = work_ns(&row, &loading);
            all.push(ns);
            work.record(ns);
            between.record(row.period_ns().saturating_sub(ns));
            phases.iter_mut().for_each(|(slot, sum)| *sum = sum.saturating_add(row.phase_ns(*slot)));
        }
        all.sort_unstable();
        let limit = all.get(all.len().saturating_sub(1) / 2).map_or(f64::MAX, |median| OUTLIER * *median as f64);
        let outliers = all.iter().filter(|ns| **ns as f64 > limit).count() as u64;
        Self { work, between, outliers, phases }
    }

    /// The part of the work that a phase takes; `None` if the phase is no work.
    pub fn share(&self, slot: PhaseSlot) -> Option<f64> {
        let (_, ns) = self.phases.iter().find(|(of, _)| *of == slot)?;
        (self.work.total_ns() > 0).then(|| *ns as f64 / self.work.total_ns() as f64)
    }
}

/// The phases of a session in which the loop gets its batch.
pub(super) fn loading(store: &Store) -> Vec<PhaseSlot> {
    LOADING.iter().filter_map(|name| store.phase(name)).map(|phase| phase.slot).collect()
}

/// The work of one step.
pub(super) fn work_ns(row: &StepRow<'_>, loading: &[PhaseSlot]) -> u64 {
    let outside = loading.iter().fold(row.gap_ns(), |sum, slot| sum.saturating_add(row.phase_ns(*slot)));
    row.period_ns().saturating_sub(outside)
}

/// Times of epochs: of the first, and of all others that are over and lose no step to warm-up.
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
