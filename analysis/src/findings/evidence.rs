//! What all checks look at: the steps of a range, and what each of them should have taken.
//!
//! A step's time has a part *inside* it, which its phases and its own timer cover, and a part *between* it and the
//! previous step. What a step should take inside follows from its batch (a straight line through sizes and times, if
//! that explains them), or else from its kind, times the level of its neighbours (a running median), so that neither a
//! partial batch nor a long kind of step nor a slow trend looks like a spike. Validation, which comes before the first
//! step of an epoch, is neither: its phase has its time. Steps slowed down by a deep trace are left out.
//! [`classes`] says what each step was taken for.
//!
//! Where a device is timed, a step takes what it takes by the device's clock: the host queues work and waits for it from time to
//! time, so that its own times differ from step to step though the device is evenly at work.

use std::cell::OnceCell;
use std::ops::Range;

use gnntop_wire::phase::{LOADING, VALIDATION};

use super::batch_fit::{self, BatchFit};
use super::claim::StepCost;
use super::finding::Occurrence;
use super::kinds::FoundKinds;
use super::level_change::LevelChange;
use super::robust::{median, quantile, sigma, spread_indices};
use super::run_stretches::{RunStep, RunStretches};
use crate::store::{PhaseSlot, StepRow, Store};

/// Steps at the start of a session that are not like the others.
pub(super) const WARM_UP_STEPS: u64 = 3;
/// A longer warm-up is not taken for one.
const LONGEST_WARM_UP: usize = 1000;
/// With fewer steps, no check looks at steps.
pub(super) const ENOUGH_STEPS: usize = 10;
/// Steps that share a running median, which is taken over three such blocks.
const BLOCK: usize = 32;
/// The most that a step loses when the CPU is taken from it: a few slices of Linux's scheduler (2.8 ms and more)...
const PREEMPTED_NS: f64 = 12e6;
/// ...this many times. More preemptions occur in any step that takes long, whatever the reason.
const PREEMPTIONS_FACTOR: f64 = 3.0;
/// Number of steps for medians of single phases.
const SAMPLED: usize = 4096;
/// Steps of the whole run that are looked at.
const MAX_RUN_STEPS: usize = 1 << 14;
/// A warm step takes at most this much of the usual time...
const WARM: f64 = 1.2;
/// ...this many times in a row.
const WARM_IN_A_ROW: usize = 3;
/// Slow first steps are not those of a warm-up if this part of it is time to get their batches.
const MOSTLY_INPUT: f64 = 0.5;

/// Steps of a session, each with the time that it should have taken.
pub(super) struct StepEvidence<'a> {
    pub store: &'a Store,
    /// The steps looked at, without the warm-up.
    pub rows: Vec<StepRow<'a>>,
    /// For each row: the same step by the device's clock where it is timed and does not wait, else by the host's.
    pub timed: Vec<StepRow<'a>>,
    /// The slower steps at the start, at least three if the range contains the session's first step.
    pub warm_up: Vec<StepRow<'a>>,
    /// The slowest of these as a multiple of what its batch explains; 0 if there is no warm-up.
    pub warm_up_ratio: f64,
    /// For each row: time inside it.
    pub inside_ns: Vec<f64>,
    /// For each row: the time that its batch, or its kind, explains.
    pub by_work_ns: Vec<f64>,
    /// For each row: the time that it should have taken inside, at the level of its neighbours.
    pub expected_ns: Vec<f64>,
    /// Standard deviation of the time inside around what is expected.
    pub noise_ns: f64,
    /// For each row: time between it and the previous step.
    pub between_ns: Vec<f64>,
    /// Median of that, within an epoch.
    pub usual_between_ns: f64,
    /// Standard deviation of that.
    pub between_noise_ns: f64,
    /// How often the CPU is taken from the thread in a usual step.
    usual_switches: f64,
    pub shape: BatchFit,
    /// Durations that recur and that no batch explains.
    pub kinds: FoundKinds,
    /// Wall time of all rows.
    pub wall_ns: f64,
    /// Wall time between these rows that a deep trace has slowed down.
    pub traced_ns: f64,
    validation: Option<PhaseSlot>,
    level_change: OnceCell<Option<LevelChange<'a>>>,
}

impl<'a> StepEvidence<'a> {
    /// Of the steps with these ordinals, as far as they are kept.
    pub(super) fn new(store: &'a Store, ordinals: Range<u64>) -> Self {
        let (traced, mut rows): (Vec<StepRow<'a>>, Vec<_>) =
            store.steps().rows(ordinals).partition(|row| row.is_traced());
        let validation = store.phase(VALIDATION).map(|phase| phase.slot);
        let mut timed = on_device(store, &mut rows).unwrap_or_else(|| rows.clone());
        let mut inside_ns: Vec<f64> = timed.iter().map(|row| inside_ns(row, validation)).collect();
        // Wild first steps do not bend the shape, and the warm-up needs it, since it may contain a small batch.
        let mut shape = BatchFit::new(&rows, &inside_ns);
        let mut kinds =
            if shape.explains() { FoundKinds::default() } else { FoundKinds::find(store, &rows, &inside_ns) };
        let mut by_work_ns = shape.by_shape_ns(&rows, &inside_ns);
        by_work_ns.iter_mut().enumerate().for_each(|(row, ns)| *ns = kinds.usual_ns(row).unwrap_or(*ns));
        // In a session that is known only from its middle on, no step warms up.
        let (warm_up_len, is_warm_up) = match store.session().is_cut() {
            true => (0, false),
            false => warm_up_len(&rows, &inside_ns, &by_work_ns, &slow_input_ns(store, &timed)),
        };
        let warm_up: Vec<StepRow<'a>> = rows.drain(..warm_up_len).collect();
        let warm_up_ratio = (0..warm_up_len).map(|row| inside_ns[row] / by_work_ns[row]).fold(0.0, f64::max);
        timed.drain(..warm_up_len);
        inside_ns.drain(..warm_up_len);
        by_work_ns.drain(..warm_up_len);
        shape.is_partial.drain(..warm_up_len);
        kinds.leave_out(warm_up_len);
        let expected_ns = expected_ns(&inside_ns, &by_work_ns);
        let indices = spread_indices(rows.len(), 2 * SAMPLED);
        let noise_ns = sigma(indices.iter().map(|i| inside_ns[*i] - expected_ns[*i]), 0.0);
        let between_ns: Vec<f64> =
            timed.iter().zip(&inside_ns).map(|(row, inside)| between_ns(row, validation, *inside)).collect();
        let same_epoch = |i: &&usize| **i > 0 && rows[**i].epoch() == rows[**i - 1].epoch();
        let mut usual: Vec<f64> = indices.iter().filter(same_epoch).map(|i| between_ns[*i]).collect();
        let usual_between_ns = median(&mut usual).unwrap_or(0.0);
        let between_noise_ns = sigma(usual.into_iter(), usual_between_ns);
        let switches = |i: &usize| Some(rows[*i].usage()?.involuntary_switches as f64);
        let usual_switches = median(&mut indices.iter().filter_map(switches).collect::<Vec<f64>>());
        let wall_ns = rows.iter().map(|row| row.period_ns() as f64).sum();
        let kept = rows.first().map_or(0, StepRow::ordinal)..rows.last().map_or(0, StepRow::ordinal);
        let between = traced.iter().filter(|row| kept.contains(&row.ordinal()));
        let traced_ns = between.map(|row| row.period_ns() as f64).sum();
        Self {
            store,
            rows,
            timed,
            warm_up,
            warm_up_ratio: if is_warm_up { warm_up_ratio } else { 0.0 },
            inside_ns,
            by_work_ns,
            expected_ns,
            noise_ns,
            between_ns,
            usual_between_ns,
            between_noise_ns,
            usual_switches: usual_switches.unwrap_or(0.0),
            shape,
            kinds,
            wall_ns,
            traced_ns,
            validation,
            level_change: OnceCell::new(),
        }
    }

    /// Since when steps have taken longer, over the whole run up to the newest row.
    pub(super) fn level_change(&self) -> Option<&LevelChange<'a>> {
        let first = self.warm_up.last().map_or(0, |row| row.ordinal() + 1);
        let end = self.rows.last().map_or(0, |row| row.ordinal() + 1);
        let find = || LevelChange::find(self.store, first..end, self.validation);
        self.level_change.get_or_init(find).as_ref()
    }

    /// Steps of the whole run up to the newest row, by time: at most this many of those that are kept, and what is left
    /// of the others.
    pub(super) fn run_steps(&self) -> Vec<RunStep<'a>> {
        let first = self.warm_up.last().map_or(0, |row| row.ordinal() + 1);
        let end = self.rows.last().map_or(0, |row| row.ordinal() + 1);
        match first < end {
            true => RunStretches::new(self.store, first..end, self.validation).steps(first..end, MAX_RUN_STEPS),
            false => Vec::new(),
        }
    }

    /// Whether validation is a phase, which then has its time.
    pub(super) fn has_validation(&self) -> bool {
        self.validation.is_some()
    }

    /// Time inside a step, which may belong to the warm-up.
    pub(super) fn row_inside_ns(&self, row: &StepRow<'_>) -> f64 {
        inside_ns(row, self.validation)
    }

    /// Median of the time inside.
    pub(super) fn usual_inside_ns(&self) -> f64 {
        let sampled = spread_indices(self.rows.len(), SAMPLED).into_iter().map(|row| self.inside_ns[row]);
        median(&mut sampled.collect::<Vec<f64>>()).unwrap_or(0.0)
    }

    /// Whether there are enough steps to say anything about steps.
    pub(super) fn has_steps(&self) -> bool {
        self.rows.len() >= ENOUGH_STEPS
    }

    /// The time range of the rows; `None` without any.
    pub(super) fn span_ns(&self) -> Option<Range<u64>> {
        let (first, last) = (self.rows.first()?, self.rows.last()?);
        (first.period_start_ns() < last.end_ns()).then(|| first.period_start_ns()..last.end_ns())
    }

    /// Share (0 to 1) of some time in the wall time of the rows.
    pub(super) fn share(&self, ns: f64) -> f64 {
        if self.wall_ns > 0.0 { ns / self.wall_ns } else { 0.0 }
    }

    /// Median of a number over a sample of the rows that have it.
    pub(super) fn median(&self, number: impl Fn(&StepRow<'a>) -> Option<f64>) -> Option<f64> {
        self.quantile(0.5, number)
    }

    /// The same of a time, by the clock that says what steps take.
    pub(super) fn timed_median(&self, number: impl Fn(&StepRow<'a>) -> Option<f64>) -> Option<f64> {
        sampled_quantile(&self.timed, 0.5, number)
    }

    /// A quantile of a number over a sample of the rows that have it.
    pub(super) fn quantile(&self, q: f64, number: impl Fn(&StepRow<'a>) -> Option<f64>) -> Option<f64> {
        sampled_quantile(&self.rows, q, number)
    }

    /// Time of all rows in a phase, or in the gap.
    pub(super) fn phase_total_ns(&self, slot: PhaseSlot) -> f64 {
        self.timed.iter().map(|row| row.phase_ns(slot) as f64).sum()
    }

    /// How much longer a row is inside than expected; negative if it is shorter.
    pub(super) fn excess_ns(&self, row: usize) -> f64 {
        self.inside_ns[row] - self.expected_ns[row]
    }

    /// A part (0 to 1) of that as a cost.
    pub(super) fn excess_cost(&self, row: usize, part: f64) -> StepCost {
        let without_ns = Some(self.expected_ns[row]);
        StepCost { row, is_inside: true, ns: part * self.excess_ns(row), without_ns }
    }

    /// What a row takes inside beyond this time, as a cost.
    pub(super) fn cost_beyond(&self, row: usize, without_ns: f64) -> StepCost {
        let ns = (self.inside_ns[row] - without_ns).max(0.0);
        StepCost { row, is_inside: true, ns, without_ns: Some(without_ns) }
    }

    /// How much longer a row, with the time before it, may be because the CPU was taken away more often than usual; 0
    /// if that is not recorded.
    pub(super) fn preempted_ns(&self, row: usize) -> f64 {
        let more = self.rows[row].usage().map(|usage| usage.involuntary_switches as f64 - self.usual_switches);
        more.map_or(0.0, |more| more.clamp(0.0, PREEMPTIONS_FACTOR) * PREEMPTED_NS)
    }

    /// Whether the row is the first of an epoch.
    pub(super) fn begins_epoch(&self, row: usize) -> bool {
        let before = if row > 0 { self.rows.get(row - 1) } else { self.warm_up.last() };
        before.is_some_and(|before| before.epoch() != self.rows[row].epoch())
    }

    /// The row that was running at a time, the earlier one if two meet; `None` outside of the rows.
    pub(super) fn row_at(&self, t_ns: u64) -> Option<usize> {
        let row = self.store.steps().row_at(t_ns.saturating_sub(1)).filter(|row| t_ns <= row.end_ns())?;
        // Traced steps are missing among the rows.
        self.rows.binary_search_by_key(&row.ordinal(), StepRow::ordinal).ok()
    }

    /// A place that is one row.
    pub(super) fn place(&self, row: usize, sentence: String) -> Occurrence {
        self.places(row..row + 1, sentence)
    }

    /// A place that is several rows, at least one.
    pub(super) fn places(&self, rows: Range<usize>, sentence: String) -> Occurrence {
        let (first, last) = (&self.rows[rows.start], &self.rows[rows.end - 1]);
        Occurrence {
            ordinals: first.ordinal()..last.ordinal() + 1,
            start_ns: first.period_start_ns(),
            end_ns: last.end_ns(),
            sentence,
        }
    }
}

fn sampled_quantile<'a>(rows: &[StepRow<'a>], q: f64, number: impl Fn(&StepRow<'a>) -> Option<f64>) -> Option<f64> {
    let indices = spread_indices(rows.len(), SAMPLED);
    let mut numbers: Vec<f64> = indices.into_iter().filter_map(|i| number(&rows[i])).collect();
    quantile(&mut numbers, q)
}

/// The rows by the device's clock, if it times most of them and does not wait for each phase. Rows that it does not time are
/// left out: the newest ones, and those that began before it did.
pub(super) fn on_device<'a>(store: &'a Store, rows: &mut Vec<StepRow<'a>>) -> Option<Vec<StepRow<'a>>> {
    let device = store.device().filter(|device| !device.is_synchronised())?;
    let there: Vec<_> = rows.iter().filter_map(|row| Some((*row, device.row(row.step())?))).collect();
    if there.len() * 2 <= rows.len() {
        return None;
    }
    let (host, timed) = there.into_iter().unzip();
    *rows = host;
    Some(timed)
}

/// Time inside a step: what its phases except validation cover, or its own timer if that is longer. That timer may run
/// through validation if one step begins when the previous one ends.
pub(super) fn inside_ns(row: &StepRow<'_>, validation: Option<PhaseSlot>) -> f64 {
    let trained_ns = row.period_ns().saturating_sub(validation.map_or(0, |slot| row.phase_ns(slot)));
    row.work_ns().min(trained_ns).max(trained_ns.saturating_sub(row.gap_ns())) as f64
}

/// Time of a step's period that is neither inside it nor validation.
pub(super) fn between_ns(row: &StepRow<'_>, validation: Option<PhaseSlot>, inside_ns: f64) -> f64 {
    let validation_ns = validation.map_or(0, |slot| row.phase_ns(slot));
    (row.period_ns() as f64 - inside_ns - validation_ns as f64).max(0.0)
}

/// For each row: how much longer than usual it takes to get its batch.
fn slow_input_ns(store: &Store, timed: &[StepRow<'_>]) -> Vec<f64> {
    let slots: Vec<PhaseSlot> =
        LOADING.into_iter().filter_map(|text| store.phase(text)).map(|phase| phase.slot).collect();
    let input = |row: &StepRow<'_>| slots.iter().map(|slot| row.phase_ns(*slot) as f64).sum::<f64>();
    let sampled = spread_indices(timed.len(), SAMPLED).into_iter().map(|row| input(&timed[row]));
    let usual_ns = median(&mut sampled.collect::<Vec<f64>>()).unwrap_or(0.0);
    timed.iter().map(|row| (input(row) - usual_ns).max(0.0)).collect()
}

/// Number of the first rows that still warm up: all before the first three in a row that take at most 1.2 times what is
/// usual for their batch; and whether the warm-up ends. A model warms up: steps that are mostly slow for their data do not.
fn warm_up_len(rows: &[StepRow<'_>], inside_ns: &[f64], by_work_ns: &[f64], slow_input_ns: &[f64]) -> (usize, bool) {
    let Some(first) = rows.first() else { return (0, false) };
    let at_least = usize::try_from(WARM_UP_STEPS.saturating_sub(first.ordinal())).unwrap_or(0).min(rows.len());
    if at_least == 0 || rows.len() < 2 * ENOUGH_STEPS {
        return (at_least, false);
    }
    let most = (rows.len() / 4).min(LONGEST_WARM_UP);
    let ratio = |row: usize| inside_ns[row] / by_work_ns[row];
    let mut later: Vec<f64> = (most..rows.len()).take(4 * LONGEST_WARM_UP).map(ratio).collect();
    let Some(usual) = median(&mut later) else { return (at_least, false) };
    let is_warm = |row: usize| ratio(row) <= WARM * usual;
    let warm = (0..most).find(|row| (*row..row + WARM_IN_A_ROW).all(is_warm));
    // Without an end it is not a warm-up.
    let len = warm.unwrap_or(0).max(at_least);
    let excess_ns: f64 = (at_least..len).map(|row| inside_ns[row] - by_work_ns[row] * usual).sum();
    if slow_input_ns[at_least..len].iter().sum::<f64>() > MOSTLY_INPUT * excess_ns {
        return (at_least, false);
    }
    (len, warm.is_some_and(|row| row > 0))
}

/// What each row should have taken inside: what its batch or kind explains, at the level of its neighbours.
fn expected_ns(inside_ns: &[f64], by_work_ns: &[f64]) -> Vec<f64> {
    let ratios: Vec<f64> = inside_ns.iter().zip(by_work_ns).map(|(ns, explained)| ns / explained).collect();
    let mut window = Vec::with_capacity(3 * BLOCK);
    let mut level = |block: usize| {
        let start = (block * BLOCK).saturating_sub(BLOCK);
        let end = ((block + 2) * BLOCK).min(ratios.len());
        window.clear();
        window.extend_from_slice(&ratios[start..end]);
        median(&mut window).unwrap_or(1.0)
    };
    let levels: Vec<f64> = (0..ratios.len().div_ceil(BLOCK)).map(&mut level).collect();
    by_work_ns.iter().enumerate().map(|(row, explained)| explained * levels[row / BLOCK]).collect()
}

/// The class of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// One of the first steps, if these are slower.
    WarmUp,
    /// Its batch is full, or batches are not distinguished.
    Full,
    /// Its batch is smaller than a full one.
    Partial,
}

/// The steps with these ordinals that are kept, each with its class.
pub fn classes(store: &Store, ordinals: Range<u64>) -> Vec<(StepRow<'_>, Class)> {
    let evidence = StepEvidence::new(store, ordinals);
    let early = |row: &StepRow<'_>| match batch_fit::batch_size(row).zip(evidence.shape.full) {
        _ if evidence.warm_up_ratio > 0.0 => Class::WarmUp,
        Some((size, full)) if size < full => Class::Partial,
        _ => Class::Full,
    };
    let later = evidence.shape.is_partial.iter().map(|is| if *is { Class::Partial } else { Class::Full });
    let classes = evidence.warm_up.iter().map(early).chain(later).collect::<Vec<Class>>();
    evidence.warm_up.into_iter().chain(evidence.rows).zip(classes).collect()
}
