//! What every check over ranks looks at: the newest steps that all ranks have, side by side, without the first ones.

use std::ops::Range;

use gnntop_wire::Quantity;
use gnntop_wire::phase::{ALL_REDUCE, RECEIVE, SEND, VALIDATION};

use crate::findings::evidence::{ENOUGH_STEPS, WARM_UP_STEPS, between_ns, inside_ns};
use crate::findings::finding::CheckOutcome;
use crate::findings::hardware;
use crate::findings::robust::median;
use crate::ranks::{CommonStep, Rank, Ranks};
use crate::store::{PhaseSlot, StepRow, Store};

/// Steps that are looked at.
const NEWEST: usize = 1024;
/// No core is free where this share of them is in use.
const FULL: f64 = 0.95;
/// Phases in which a rank waits for others or sends to them.
const WAITING_PHASES: [&str; 3] = [ALL_REDUCE, RECEIVE, SEND];

/// What a batch may be measured by, with its word.
pub(super) type Size = (&'static str, fn(&Store, &StepRow<'_>) -> Option<u64>);
pub(super) static SIZES: [Size; 5] = [
    ("edges", |_, row| row.batch().edges),
    ("nodes", |_, row| row.batch().nodes),
    ("graphs", |_, row| row.batch().graphs),
    ("seeds", |_, row| row.batch().seeds),
    ("tokens", Store::tokens_of),
];

/// Steps of a run, over its ranks.
pub(super) struct RankEvidence<'a> {
    pub ranks: &'a Ranks<'a>,
    /// The steps, the newest first; every rank that has steps has each of them.
    pub steps: Vec<CommonStep<'a>>,
    /// For each rank, the slots of the phases that are not its own work.
    waiting_phases: Vec<Vec<PhaseSlot>>,
}

impl<'a> RankEvidence<'a> {
    pub(super) fn new(ranks: &'a Ranks<'a>) -> Self {
        let is_warm = |common: &CommonStep<'_>| common.rows.iter().flatten().all(|row| row.ordinal() >= WARM_UP_STEPS);
        let steps = ranks.common_steps().take(NEWEST).take_while(is_warm).collect();
        let slots = |rank: &Rank<'_>| WAITING_PHASES.iter().filter_map(|name| slot(rank, name)).collect();
        Self { ranks, steps, waiting_phases: ranks.all().iter().map(slots).collect() }
    }

    /// Whether there are enough steps to say anything about them.
    pub(super) fn has_steps(&self) -> bool {
        self.steps.len() >= ENOUGH_STEPS
    }

    /// The reason if there are too few.
    pub(super) fn too_few_steps(&self) -> CheckOutcome {
        CheckOutcome::NotEnough(format!("only {} steps that all ranks have after the warm-up", self.steps.len()))
    }

    /// For each stage computed by several ranks, the indices of these ranks.
    pub(super) fn peers(&self) -> Vec<Vec<usize>> {
        let all = self.ranks.all();
        let with_steps = |at: &usize| !all[*at].store.steps().is_empty();
        let mut stages: Vec<u32> = all.iter().map(|rank| rank.place.stage).collect();
        stages.sort_unstable();
        stages.dedup();
        let of = |stage: u32| (0..all.len()).filter(|at| all[*at].place.stage == stage).filter(with_steps).collect();
        stages.into_iter().map(of).filter(|ranks: &Vec<usize>| ranks.len() > 1).collect()
    }

    /// The time range of a rank's steps, by its clock; `None` without any.
    pub(super) fn span_ns(&self, at: usize) -> Option<Range<u64>> {
        let (last, first) = (self.rows(at).next()?, self.rows(at).last()?);
        Some(first.period_start_ns()..last.end_ns())
    }

    /// The cores of a rank's machine that other programs use, if none is free; `None` if one is, or it is not known.
    pub(super) fn cores_of_others(&self, at: usize) -> Option<f64> {
        let (rank, span) = (&self.ranks.all()[at], self.span_ns(at)?);
        hardware::machine_busy(rank.store, &span).filter(|busy| *busy >= FULL)?;
        let all = hardware::rate_per_s(rank.store, Quantity::MachineCpuBusy, &span)?;
        let host = |of: &Rank<'_>| of.store.session().info().map(|info| info.host.clone());
        let beside = (0..self.ranks.all().len()).filter(|other| host(&self.ranks.all()[*other]) == host(rank));
        let own = beside.map(|other| {
            hardware::rate_per_s(self.ranks.all()[other].store, Quantity::ProcessCpuTime, &self.span_ns(other)?)
        });
        Some((all - own.sum::<Option<f64>>()?).max(0.0) / 1e9)
    }

    /// Rows of a rank, the newest first.
    pub(super) fn rows(&self, at: usize) -> impl Iterator<Item = &StepRow<'a>> {
        self.steps.iter().filter_map(move |common| common.rows[at].as_ref())
    }

    /// A rank's own work in a step: its period without the phases in which it waits for others.
    pub(super) fn own_ns(&self, at: usize, row: &StepRow<'_>) -> f64 {
        let others: u64 = self.waiting_phases[at].iter().map(|slot| row.phase_ns(*slot)).sum();
        row.period_ns().saturating_sub(others) as f64
    }

    /// Wall time of all steps, by the rank with the most.
    pub(super) fn wall_ns(&self) -> f64 {
        let wall = |at: usize| self.rows(at).map(|row| row.period_ns() as f64).sum::<f64>();
        (0..self.ranks.all().len()).map(wall).fold(0.0, f64::max)
    }

    /// Share (0 to 1) of some time in that.
    pub(super) fn share(&self, ns: f64) -> f64 {
        let wall_ns = self.wall_ns();
        if wall_ns > 0.0 { ns / wall_ns } else { 0.0 }
    }

    /// Time of a rank's step in the phase with this name, or in the gap; 0 if it has no such phase.
    pub(super) fn phase_ns(&self, at: usize, row: &StepRow<'_>, name: &str) -> f64 {
        slot(&self.ranks.all()[at], name).map_or(0.0, |slot| row.phase_ns(slot) as f64)
    }

    /// Whether a rank's time outside every phase is mostly between its steps, and not inside them.
    pub(super) fn is_gap_between_steps(&self, at: usize) -> bool {
        let validation = slot(&self.ranks.all()[at], VALIDATION);
        let between_ns = self.rows(at).map(|row| between_ns(row, validation, inside_ns(row, validation))).sum::<f64>();
        between_ns > 0.5 * self.rows(at).map(|row| row.gap_ns() as f64).sum::<f64>()
    }

    /// Median of a rank's number over the steps.
    pub(super) fn median(&self, at: usize, number: impl Fn(&StepRow<'a>) -> Option<f64>) -> Option<f64> {
        median(&mut self.rows(at).filter_map(number).collect::<Vec<f64>>())
    }
}

fn slot(rank: &Rank<'_>, name: &str) -> Option<PhaseSlot> {
    rank.store.phase(name).map(|phase| phase.slot)
}

/// Seeds of a step's batch, or its graphs.
pub(super) fn batch_work(row: &StepRow<'_>) -> Option<u64> {
    row.batch().seeds.or(row.batch().graphs)
}
