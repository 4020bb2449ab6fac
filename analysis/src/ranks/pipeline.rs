//! One step of a pipeline: which stage worked on which micro-batch when, what stages waited for, and how long the
//! recurrence says the step should have taken with the measured stage times, as split and split evenly.
//!
//! ```text
//! spans of micro-batches inside forward and backward, of every rank ─▶ boxes ─▶ costs by stage ─▶ Timeline (schedule.rs)
//!                                                                       └─▶ idle = waiting for a neighbour + late
//! ```

use std::collections::BTreeMap;

use gnntop_wire::phase::{ALL_REDUCE, BACKWARD, FORWARD, OPTIMIZER, RECEIVE, SEND};
use gnntop_wire::{NameId, Reported, StepId};
use thiserror::Error;

use super::facts;
use super::rank::{Rank, Ranks};
use super::schedule::{self, Balanced, Direction, Pass, Schedule, StageCost, Timeline};
use crate::store::StepRow;

/// Most pieces of work of a step, over all stages.
const MAX_WORK: usize = 1 << 16;

/// One pass of a micro-batch through one stage, on the run's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkBox {
    /// The pass.
    pub work: Pass,
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

/// What one stage did in the step.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// The rank that computes it.
    pub rank: u32,
    /// Its work in the order of time.
    pub boxes: Vec<WorkBox>,
    /// Mean cost of a micro-batch.
    pub cost: StageCost,
    /// Time working.
    pub busy_ns: u64,
    /// Idle time while its input was not ready: its part of the bubble.
    pub waiting_ns: u64,
    /// Idle time while its input was ready: sending, and anything else in between.
    pub late_ns: u64,
    /// Most micro-batches held at once, by its counter or else by its boxes.
    pub live: u64,
    /// Blocks that it reports.
    pub blocks: Option<usize>,
    /// Time in `receive`, including waiting; `None` if it has no such phase.
    pub receive_ns: Option<u64>,
    /// Time in `send`.
    pub send_ns: Option<u64>,
    /// Time in `all-reduce`.
    pub all_reduce_ns: Option<u64>,
    /// Time in `optimizer`.
    pub optimizer_ns: Option<u64>,
}

/// What is missing to determine a step of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PipelineError {
    /// The run has no stages.
    #[error("the run is no pipeline")]
    NoPipeline,
    /// This stage of N has no rank, or several.
    #[error("stage {0} of {1} does not publish, or twice")]
    NoStage(u32, u32),
    /// A rank does not have this step any more.
    #[error("rank {0} has not kept step {1}")]
    NotKept(u32, u64),
    /// The program has no spans of micro-batches.
    #[error("no spans \"micro-batch N\" in forward or backward")]
    NoMicroBatches,
    /// There are this many.
    #[error("{0} micro-batches are too many to look at")]
    TooMany(usize),
    /// A stage has fewer or more spans than its micro-batches need.
    #[error("stage {0} has kept {1} of the {2} spans of its micro-batches")]
    NoSpans(usize, usize, usize),
}

/// One step of one copy of the model, over its stages.
#[derive(Clone, Debug, PartialEq)]
pub struct PipelineStep {
    /// The step, as the program counts.
    pub step: StepId,
    /// The copy of the model.
    pub copy: u32,
    /// The schedule, by its mark or else by the order of the work.
    pub schedule: Schedule,
    /// Whether a mark names the schedule.
    pub has_schedule: bool,
    /// Number of micro-batches.
    pub micro_batches: usize,
    /// All stages, in order.
    pub stages: Vec<Stage>,
    /// When the first work began, on the run's clock.
    pub start_ns: u64,
    /// When the last work ended.
    pub end_ns: u64,
    /// The recurrence's timeline with the measured costs.
    pub plan: Timeline,
    /// How the same work could be split.
    pub balanced: Balanced,
    /// The recurrence's timeline with that split.
    pub balanced_plan: Timeline,
}

impl PipelineStep {
    /// A copy's step, or what is missing to determine it.
    pub fn from_ranks(ranks: &Ranks<'_>, copy: u32, step: StepId) -> Result<Self, PipelineError> {
        let members = members(ranks, copy)?;
        let mut stages = Vec::new();
        for rank in &members {
            let number = rank.place.rank;
            let row = rank.step(step).ok_or(PipelineError::NotKept(number, step.0))?;
            stages.push(Stage::from_row(rank, &row));
        }
        let micro_batches = micro_batches(&stages)?;
        let said = members.iter().find_map(|rank| facts::schedule(rank.store));
        let schedule = said.unwrap_or_else(|| observed_schedule(&stages));
        let boxes = || stages.iter().flat_map(|stage| &stage.boxes);
        let start_ns = boxes().map(|b| b.start_ns).min().unwrap_or(0);
        let end_ns = boxes().map(|b| b.end_ns).max().unwrap_or(0);
        split_idle(&mut stages, start_ns, end_ns);
        let costs: Vec<StageCost> = stages.iter().map(|stage| stage.cost).collect();
        let blocks: Option<Vec<usize>> = stages.iter().map(|stage| stage.blocks).collect();
        let balanced = schedule::balanced(&costs, blocks.as_deref());
        Ok(Self {
            step,
            copy,
            schedule,
            has_schedule: said.is_some(),
            micro_batches,
            start_ns,
            end_ns,
            plan: Timeline::new(schedule, &costs, micro_batches),
            balanced_plan: Timeline::new(schedule, &balanced.costs, micro_batches),
            balanced,
            stages,
        })
    }

    /// From the first start to the last end.
    pub fn makespan_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// The share (0 to 1) of all stages' time spent idle.
    pub fn bubble(&self) -> f64 {
        let busy_ns: f64 = self.stages.iter().map(|stage| stage.busy_ns as f64).sum();
        (1.0 - busy_ns / self.all_ns()).clamp(0.0, 1.0)
    }

    /// The share (0 to 1) of all stages' time taken by a quantity of each stage.
    pub fn share(&self, of: impl Fn(&Stage) -> u64) -> f64 {
        self.stages.iter().map(|stage| of(stage) as f64).sum::<f64>() / self.all_ns()
    }

    fn all_ns(&self) -> f64 {
        (self.makespan_ns() as f64 * self.stages.len() as f64).max(1.0)
    }

    /// The bubble of even stages, (S - 1) / (M + S - 1).
    pub fn formula(&self) -> f64 {
        schedule::formula_bubble(self.stages.len(), self.micro_batches)
    }

    /// The slowest stage, and its cost over the median of the others'.
    pub fn slowest(&self) -> Option<(usize, f64)> {
        let costs: Vec<f64> = self.stages.iter().map(|stage| stage.cost.both_ns()).collect();
        let slowest = (0..costs.len()).max_by(|a, b| costs[*a].total_cmp(&costs[*b]))?;
        let mut others: Vec<f64> = costs.iter().enumerate().filter(|(at, _)| *at != slowest).map(|c| *c.1).collect();
        others.sort_by(f64::total_cmp);
        let usual = *others.get(others.len() / 2)?;
        (usual > 0.0).then(|| (slowest, costs[slowest] / usual))
    }

    /// How many times faster the recurrence is with the balanced split; 1 if it is not.
    pub fn balanced_gain(&self) -> f64 {
        let better_ns = self.balanced_plan.makespan_ns;
        if better_ns > 0.0 { self.plan.makespan_ns / better_ns } else { 1.0 }
    }
}

/// The ranks of a copy by stage, first stage first; an error unless each stage has exactly one.
fn members<'a>(ranks: &Ranks<'a>, copy: u32) -> Result<Vec<Rank<'a>>, PipelineError> {
    let mut members: Vec<Rank<'a>> = ranks.all().iter().filter(|rank| rank.place.copy == copy).copied().collect();
    members.sort_by_key(|rank| rank.place.stage);
    let stages = members.iter().map(|rank| rank.place.stages).max().unwrap_or(0);
    if stages < 2 {
        return Err(PipelineError::NoPipeline);
    }
    let has = |stage: u32| members.iter().filter(|rank| rank.place.stage == stage).count() == 1;
    // As many as there are members, plus one, show whether one is missing, however many are claimed.
    let checked = stages.min(members.len() as u32 + 1);
    match (0..checked).find(|stage| !has(*stage)) {
        Some(stage) => Err(PipelineError::NoStage(stage, stages)),
        None => Ok(members),
    }
}

/// Number of micro-batches, if each stage did each one once in each direction.
fn micro_batches(stages: &[Stage]) -> Result<usize, PipelineError> {
    let numbers = stages.iter().flat_map(|stage| &stage.boxes).map(|b| b.work.micro_batch as usize + 1);
    let count = numbers.max().ok_or(PipelineError::NoMicroBatches)?;
    if count.saturating_mul(2 * stages.len()) > MAX_WORK {
        return Err(PipelineError::TooMany(count));
    }
    match stages.iter().position(|stage| stage.boxes.len() != 2 * count) {
        Some(stage) => Err(PipelineError::NoSpans(stage, stages[stage].boxes.len(), 2 * count)),
        None => Ok(count),
    }
}

/// The schedule that matches the order of the work.
fn observed_schedule(stages: &[Stage]) -> Schedule {
    let direction = |b: &WorkBox| b.work.direction;
    let is_mixed = |stage: &Stage| {
        let first_back = stage.boxes.iter().position(|b| direction(b) == Direction::Backward);
        let last_on = stage.boxes.iter().rposition(|b| direction(b) == Direction::Forward);
        first_back < last_on
    };
    if stages.iter().any(is_mixed) { Schedule::OneForwardOneBackward } else { Schedule::GPipe }
}

/// Splits each stage's idle time: until its neighbour was done, and after that.
fn split_idle(stages: &mut [Stage], start_ns: u64, end_ns: u64) {
    let mut ends: BTreeMap<(usize, Pass), u64> = BTreeMap::new();
    for (at, stage) in stages.iter().enumerate() {
        ends.extend(stage.boxes.iter().map(|b| ((at, b.work), b.end_ns)));
    }
    let count = stages.len();
    for (at, stage) in stages.iter_mut().enumerate() {
        let mut free_ns = start_ns;
        for work in &stage.boxes {
            let needed = schedule::needs(count, at, work.work).and_then(|needed| ends.get(&needed));
            let idle_until_ns = work.start_ns.max(free_ns);
            let ready_ns = needed.copied().unwrap_or(free_ns).clamp(free_ns, idle_until_ns);
            stage.waiting_ns = stage.waiting_ns.saturating_add(ready_ns - free_ns);
            stage.late_ns = stage.late_ns.saturating_add(idle_until_ns - ready_ns);
            free_ns = free_ns.max(work.end_ns);
        }
        stage.waiting_ns = stage.waiting_ns.saturating_add(end_ns.saturating_sub(free_ns));
    }
}

impl Stage {
    fn from_row(rank: &Rank<'_>, row: &StepRow<'_>) -> Self {
        let mut boxes = boxes(rank, row);
        boxes.sort_by_key(|b| (b.start_ns, b.end_ns));
        let took = |b: &WorkBox| b.end_ns.saturating_sub(b.start_ns);
        let mean_ns = |direction: Direction| {
            let of: Vec<u64> = boxes.iter().filter(|b| b.work.direction == direction).map(took).collect();
            of.iter().map(|ns| *ns as f64).sum::<f64>() / of.len().max(1) as f64
        };
        let phase_ns = |name: &str| Some(row.phase_ns(rank.store.phase(name)?.slot));
        Self {
            rank: rank.place.rank,
            cost: StageCost { forward_ns: mean_ns(Direction::Forward), backward_ns: mean_ns(Direction::Backward) },
            busy_ns: boxes.iter().map(took).fold(0, u64::saturating_add),
            waiting_ns: 0,
            late_ns: 0,
            live: counted_live(rank, row).unwrap_or_else(|| live(&boxes)),
            blocks: facts::count(rank.store, Reported::Blocks),
            receive_ns: phase_ns(RECEIVE),
            send_ns: phase_ns(SEND),
            all_reduce_ns: phase_ns(ALL_REDUCE),
            optimizer_ns: phase_ns(OPTIMIZER),
            boxes,
        }
    }
}

/// The spans of micro-batches in a step's forward and backward, on the run's clock. Several spans of one pass of a
/// micro-batch are one box from the first start to the last end.
fn boxes(rank: &Rank<'_>, row: &StepRow<'_>) -> Vec<WorkBox> {
    let store = rank.store;
    let Some(lane) = store.training_track().and_then(|track| track.lane()) else { return Vec::new() };
    let mut around: Vec<NameId> = Vec::new();
    let mut found: BTreeMap<Pass, WorkBox> = BTreeMap::new();
    lane.each_box(row.period_start_ns()..row.end_ns(), |inner, depth| {
        around.truncate(depth);
        around.push(inner.name);
        let is_of_step = inner.start_ns >= row.period_start_ns() && inner.end_ns <= row.end_ns();
        let Some(Reported::MicroBatch(micro_batch)) = store.reported(inner.name) else { return };
        if !is_of_step || found.len() >= MAX_WORK {
            return;
        }
        let direction = around.iter().rev().find_map(|name| match store.phase_text(*name)? {
            FORWARD => Some(Direction::Forward),
            BACKWARD => Some(Direction::Backward),
            _ => None,
        });
        let Some(direction) = direction else { return };
        let work = Pass { direction, micro_batch };
        let new = WorkBox { work, start_ns: rank.run_ns(inner.start_ns), end_ns: rank.run_ns(inner.end_ns) };
        let known = found.entry(work).or_insert(new);
        (known.start_ns, known.end_ns) = (known.start_ns.min(new.start_ns), known.end_ns.max(new.end_ns));
    });
    found.into_values().collect()
}

/// Most micro-batches in the step by the stage's counter; `None` without one.
fn counted_live(rank: &Rank<'_>, row: &StepRow<'_>) -> Option<u64> {
    let counter = rank.store.counter_of(Reported::LiveActivations)?;
    let points = counter.series.points().rev().skip_while(|point| point.t_ns() > row.end_ns());
    let of_step = points.take_while(|point| point.t_ns() > row.period_start_ns());
    let values = of_step.filter_map(|point| point.value()).filter(|value| (0.0..1e15).contains(value));
    values.map(|value| value as u64).max()
}

/// Most micro-batches between the start of their forward and the end of their backward pass at once.
fn live(boxes: &[WorkBox]) -> u64 {
    let mut changes: Vec<(u64, i64)> = boxes
        .iter()
        .map(|b| match b.work.direction {
            Direction::Forward => (b.start_ns, 1),
            Direction::Backward => (b.end_ns, -1),
        })
        .collect();
    changes.sort_unstable();
    let mut live = 0i64;
    let most = changes.into_iter().map(|(_, by)| {
        live += by;
        live
    });
    most.max().unwrap_or(0).max(0).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::Run;
    use crate::ranks::fixture::run;
    use gnntop_fixtures::MS;
    use gnntop_fixtures::pipeline::PipelineRun;
    use gnntop_fixtures::uneven::UnevenRun;

    fn step_of(planned: &PipelineRun, step: u64) -> PipelineStep {
        let run = run(&planned.sessions());
        PipelineStep::from_ranks(&run.ranks(), 0, StepId(step)).unwrap()
    }

    #[test]
    fn even_stages_match_formula() {
        for (schedule, live) in [("gpipe", [5, 5, 5, 5]), ("1f1b", [4, 3, 2, 1])] {
            let step = step_of(&PipelineRun { schedule, ..PipelineRun::default() }, 5);
            assert_eq!((step.micro_batches, step.makespan_ns()), (5, 8 * 6 * MS));
            assert_eq!(step.plan.makespan_ns, 48.0 * MS as f64);
            assert!((step.bubble() - 0.375).abs() < 1e-9 && (step.formula() - 0.375).abs() < 1e-9);
            assert_eq!(step.stages.iter().map(|stage| stage.live).collect::<Vec<_>>(), live, "{schedule}");
            assert!(step.has_schedule && step.balanced_gain() == 1.0);
            assert_eq!(step.stages[0].cost, StageCost { forward_ns: 2e6, backward_ns: 4e6 });
            assert!(step.stages.iter().all(|stage| stage.late_ns == 0));
        }
    }

    #[test]
    fn stages_6222_have_slow_stage_and_better_split() {
        let step = step_of(&PipelineRun { blocks: vec![6, 2, 2, 2], ..PipelineRun::default() }, 3);
        assert_eq!(step.slowest(), Some((0, 3.0)));
        assert_eq!(step.balanced.blocks, Some(vec![3, 3, 3, 3]));
        assert_eq!((step.makespan_ns(), step.plan.makespan_ns), (36 * 3 * MS, 108.0 * MS as f64));
        assert!((step.balanced_gain() - 108.0 / 72.0).abs() < 1e-9, "{}", step.balanced_gain());
        let untold = PipelineRun { blocks: vec![6, 2, 2, 2], reports_blocks: false, ..PipelineRun::default() };
        let step = step_of(&untold, 3);
        assert_eq!((step.balanced.blocks.clone(), step.balanced_gain()), (None, 1.5));
    }

    #[test]
    fn hand_over_differs_from_waiting() {
        let step = step_of(&PipelineRun { blocks: vec![2, 2], hand_over_ns: MS, ..PipelineRun::default() }, 5);
        assert_eq!(step.stages[0].late_ns + step.stages[1].late_ns, 2 * MS, "the first of each way; others come early");
        assert!(step.makespan_ns() as f64 > step.plan.makespan_ns);
        let sum = |stage: &Stage| stage.busy_ns + stage.waiting_ns + stage.late_ns;
        assert!(step.stages.iter().all(|stage| sum(stage) == step.makespan_ns()));
        assert!(step.share(|stage| stage.late_ns) > 0.0 && step.stages[1].receive_ns > Some(0));
    }

    #[test]
    fn schedule_is_inferred_from_order() {
        for (schedule, found) in [("gpipe-2", Schedule::GPipe), ("1f1b-2", Schedule::OneForwardOneBackward)] {
            let step = step_of(&PipelineRun { schedule, ..PipelineRun::default() }, 5);
            assert_eq!((step.schedule, step.has_schedule), (found, false));
        }
    }

    #[test]
    fn from_ranks_error_names_missing_data() {
        let whole = run(&PipelineRun::default().sessions());
        let refused = |run: &Run, copy, step, words: &str| {
            let error = PipelineStep::from_ranks(&run.ranks(), copy, StepId(step)).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        };
        refused(&whole, 0, 99, "rank 0 has not kept step 99");
        refused(&whole, 7, 5, "no pipeline");
        refused(&run(&UnevenRun::default().sessions()), 0, 5, "no pipeline");
        refused(&run(&PipelineRun::default().sessions()[1..]), 0, 5, "stage 0 of 4 does not publish");
        let one = PipelineRun { blocks: vec![2], ..PipelineRun::default() };
        refused(&run(&one.sessions()), 0, 5, "no pipeline");
    }
}
