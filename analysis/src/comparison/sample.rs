//! The steps of a run used in a comparison.

use crate::catalogue::{Catalogue, Subject};
use crate::findings::{self, Class};
use crate::ranks::Run;
use crate::store::{GAP, StepRow, Store};

/// Number of newest steps considered, as in the findings, so that a screen and a report see the same ones.
const MAX_STEPS: u64 = 8192;
/// Most steps compared, the newest: more would narrow the interval more than it matters.
const COMPARED: usize = 4096;

/// A run with fewer steps is represented by its past, if it has one.
const FEWEST: usize = 20;
const SECOND_NS: u64 = 1_000_000_000;

/// The newest full batches of a run after its warm-up.
pub(super) struct RunSample<'a> {
    pub run: &'a Run,
    pub rows: Vec<StepRow<'a>>,
    /// Whether the rows are instead the median steps of seconds and minutes.
    pub uses_medians: bool,
    /// The figures over these steps alone.
    pub figures: Catalogue<'a>,
}

/// What is timed.
#[derive(Clone, Copy)]
pub(super) enum TimedPart<'n> {
    /// The step with the gap before it.
    Period,
    /// The step from its own start.
    Step,
    /// A phase or the gap, by its name.
    Phase(&'n str),
}

impl<'n> TimedPart<'n> {
    pub(super) fn name(self) -> &'n str {
        match self {
            Self::Period => "period",
            Self::Step => "step",
            Self::Phase(name) => name,
        }
    }
}

/// The unit of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkUnit {
    Seeds,
    Graphs,
    Steps,
}

impl WorkUnit {
    /// The unit that all rows of all samples report.
    pub(super) fn common(samples: &[RunSample<'_>]) -> Self {
        let all_tell = |unit: &Self| samples.iter().flat_map(|sample| &sample.rows).all(|row| unit.size(row).is_some());
        [Self::Seeds, Self::Graphs].into_iter().find(all_tell).unwrap_or(Self::Steps)
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Seeds => "seeds",
            Self::Graphs => "graphs",
            Self::Steps => "steps",
        }
    }

    pub(super) fn size(self, row: &StepRow<'_>) -> Option<u64> {
        match self {
            Self::Seeds => row.batch().seeds,
            Self::Graphs => row.batch().graphs,
            Self::Steps => Some(1),
        }
    }
}

impl<'a> RunSample<'a> {
    pub(super) fn new(run: &'a Run) -> Self {
        let end = run.store().steps().total();
        let classes = findings::classes(run.store(), end.saturating_sub(MAX_STEPS)..end);
        let full = classes.into_iter().filter(|(_, class)| *class == Class::Full);
        Self::with_steps(run, full.map(|(row, _)| row).collect(), false)
    }

    fn with_steps(run: &'a Run, mut rows: Vec<StepRow<'a>>, uses_medians: bool) -> Self {
        rows.retain(|row| !row.is_traced());
        rows.drain(..rows.len().saturating_sub(COMPARED));
        let figures = Catalogue::new(run.store()).with_steps(rows.clone());
        Self { run, rows, uses_medians, figures }
    }

    /// Samples of all these runs. If the steps of one are no longer kept individually, all samples are of medians, so that
    /// they are comparable.
    pub(super) fn from_runs(sides: [&[&'a Run]; 2]) -> [Vec<Self>; 2] {
        let samples = sides.map(|runs| runs.iter().map(|run| Self::new(run)).collect::<Vec<Self>>());
        let is_past = |sample: &Self| sample.rows.len() < FEWEST && sample.store().steps().medians().len() > 0;
        if samples.iter().flatten().any(is_past) {
            return sides.map(|runs| runs.iter().map(|run| Self::from_medians(run)).collect());
        }
        samples
    }

    /// The newest median steps of reduced steps, and of each second of the others.
    fn from_medians(run: &'a Run) -> Self {
        let steps = run.store().steps();
        let kept: Vec<StepRow<'a>> = steps.all().collect();
        let seconds = kept.chunk_by(|a, b| a.end_ns() / SECOND_NS == b.end_ns() / SECOND_NS);
        let median = |rows: &[StepRow<'a>]| {
            let mut rows = rows.to_vec();
            let middle = rows.len().saturating_sub(1) / 2;
            rows.sort_unstable_by_key(|row| (row.period_ns(), row.ordinal()));
            rows.get(middle).copied()
        };
        Self::with_steps(run, steps.medians().chain(seconds.filter_map(median)).collect(), true)
    }

    pub(super) fn store(&self) -> &'a Store {
        self.run.store()
    }

    /// Copies of the model that process a batch each in a step.
    pub(super) fn copies(&self) -> f64 {
        self.run.member().place().map_or(1.0, |place| f64::from(place.copies.max(1)))
    }

    /// For each step, the work of all copies and its time with the gap before it.
    pub(super) fn work(&self, unit: WorkUnit) -> Vec<(f64, f64)> {
        let copies = if unit == WorkUnit::Steps { 1.0 } else { self.copies() };
        let pair = |row: &StepRow<'_>| (unit.size(row).unwrap_or(0) as f64 * copies, row.period_ns() as f64);
        self.rows.iter().map(pair).collect()
    }

    /// Work of all copies a second.
    pub(super) fn work_per_s(&self, unit: WorkUnit) -> f64 {
        let copies = if unit == WorkUnit::Steps { 1.0 } else { self.copies() };
        copies * self.figures.value(&format!("{}.per_s", unit.as_str())).unwrap_or(0.0)
    }

    /// How long a part took in each step that has it. Every step has a gap, if only of no length.
    pub(super) fn times_ns(&self, part: TimedPart<'_>) -> Vec<f64> {
        let phase = self.store().phase(part.name());
        let ns = |row: &StepRow<'_>| match part {
            TimedPart::Period => Some(row.period_ns()),
            TimedPart::Step => Some(row.work_ns()),
            TimedPart::Phase(GAP) => Some(row.gap_ns()),
            TimedPart::Phase(_) => phase.map(|phase| row.phase_ns(phase.slot)).filter(|ns| *ns > 0),
        };
        self.rows.iter().filter_map(ns).map(|ns| ns as f64).collect()
    }

    /// The figures of a part.
    pub(super) fn part<'s>(&'s self, part: TimedPart<'s>) -> Subject<'s, 'a> {
        match part {
            TimedPart::Period | TimedPart::Step => self.figures.subject(part.name(), ""),
            TimedPart::Phase(name) => self.figures.subject("NAME", name),
        }
    }
}
