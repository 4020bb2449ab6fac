//! The whole run in a few hundred stretches, from the steps that are kept and what is left of the others.

use std::ops::Range;

use super::batch_fit::BatchFit;
use super::robust::spread_indices;
use crate::store::{PhaseSlot, StepRow, Store};

/// Most stretches of a run.
const STRETCHES: u64 = 512;
/// Fewest steps in a stretch.
const FEWEST_STEPS: u64 = 16;
/// Steps, or groups of them, looked at in a stretch.
const EACH: usize = 16;

/// A step of a run, or the median of some.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunStep<'a> {
    pub row: StepRow<'a>,
    /// Ordinal of the first step that it represents.
    pub first: u64,
    /// Number of these steps.
    pub steps: u64,
    /// Its period without validation, as a multiple of what its batch explains, or in nanoseconds if the batch explains
    /// nothing.
    pub level: f64,
}

/// A run from its first step to its newest, in stretches of equally many steps.
#[derive(Debug)]
pub(super) struct RunStretches<'a> {
    /// The stretches of which anything is known.
    pub all: Vec<Vec<RunStep<'a>>>,
    store: &'a Store,
    validation: Option<PhaseSlot>,
    shape: BatchFit,
}

impl<'a> RunStretches<'a> {
    /// For the steps with these ordinals, kept or not.
    pub(super) fn new(store: &'a Store, ordinals: Range<u64>, validation: Option<PhaseSlot>) -> Self {
        let Range { start, end } = ordinals;
        let steps = end.saturating_sub(start).div_ceil(STRETCHES).max(FEWEST_STEPS);
        let mut stretches = Self { all: Vec::new(), store, validation, shape: BatchFit::default() };
        let first_steps = (start..end).step_by(usize::try_from(steps).unwrap_or(usize::MAX));
        let stretch = |from: u64| stretches.steps(from..from.saturating_add(steps).min(end), EACH);
        let mut all: Vec<Vec<RunStep<'a>>> = first_steps.map(stretch).filter(|known| !known.is_empty()).collect();
        let rows: Vec<StepRow<'a>> = all.iter().flatten().map(|known| known.row).collect();
        let times: Vec<f64> = all.iter().flatten().map(|known| known.level).collect();
        stretches.shape = BatchFit::new(&rows, &times);
        all.iter_mut().flatten().for_each(|known| known.level = stretches.level(&known.row));
        stretches.all = all;
        stretches
    }

    /// At most this many of the steps with these ordinals, and as many of the groups, evenly spread.
    pub(super) fn steps(&self, ordinals: Range<u64>, most: usize) -> Vec<RunStep<'a>> {
        let table = self.store.steps();
        let groups: Vec<(StepRow<'a>, Range<u64>)> = table.reduced_medians(ordinals.clone()).collect();
        let kept = ordinals.start.max(table.discarded())..ordinals.end.max(table.discarded());
        let rows = spread_indices(usize::try_from(kept.end - kept.start).unwrap_or(0), most).into_iter();
        let rows = rows.filter_map(|at| Some((table.row(kept.start + at as u64)?, kept.start + at as u64, 1)));
        let group = |at: usize| (groups[at].0, groups[at].1.start, groups[at].1.end - groups[at].1.start);
        let groups = spread_indices(groups.len(), most).into_iter().map(group);
        groups.chain(rows).map(|(row, first, steps)| RunStep { row, first, steps, level: self.level(&row) }).collect()
    }

    /// Whether levels are multiples of what a batch explains.
    pub(super) fn are_by_work(&self) -> bool {
        self.shape.fit.is_some()
    }

    fn level(&self, row: &StepRow<'_>) -> f64 {
        let validation_ns = self.validation.map_or(0, |slot| row.phase_ns(slot));
        let ns = row.period_ns().saturating_sub(validation_ns) as f64;
        let Some((measure, line)) = self.shape.fit else { return ns };
        let pieces = measure.value(row).unwrap_or(0) as f64;
        // An empty batch does not take negative time: a line that says so is bent by something else.
        let explained_ns = if line.base >= 0.0 { line.at(pieces) } else { pieces };
        if explained_ns > 0.0 { ns / explained_ns } else { ns }
    }
}

/// The phase, or the time outside phases, that grew most between two times that it takes, which follow it.
pub(super) fn most_grown(store: &Store, times: impl Fn(PhaseSlot) -> Option<(f64, f64)>) -> Option<(&str, f64, f64)> {
    let all = store.phases().iter().filter_map(|phase| Some((phase, times(phase.slot)?)));
    let grown = all.filter(|(_, (from, to))| to > from);
    let (phase, (from, to)) = grown.max_by(|(_, a), (_, b)| (a.1 - a.0).total_cmp(&(b.1 - b.0)))?;
    Some((if phase.is_gap() { "the time outside phases" } else { &phase.text }, from, to))
}
