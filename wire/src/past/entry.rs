//! What a frame of the past holds.

use super::durations::Durations;
use super::readings::Readings;
use crate::event::{Mark, PhaseMemory, Span, Step, ThreadUsage};
use crate::ids::{NameId, SignalId, TrackId};

/// One entry of a frame of kind 6.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Past {
    /// Figures over everything before the segments that follow.
    Whole(Box<Whole>),
    /// Durations of everything before the segments that follow.
    Durations(Series, Durations),
    /// One stretch of time.
    Slice(Box<Slice>),
    /// One of the slowest steps.
    Slow(Box<SlowStep>),
}

/// What [`Past::Durations`] are durations of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// Steps from their own start.
    Step,
    /// Steps with the gap before them.
    Period,
    /// The gap of each step.
    Gap,
    /// Time in a phase, of each step that spent any.
    Phase(NameId),
    /// Single spans of a name.
    Span {
        /// The name.
        name: NameId,
        /// How much of their time lies on loaders' tracks, in nanoseconds.
        ahead_ns: u64,
    },
}

/// Figures over everything before the segments that follow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Whole {
    /// Number of the first segment that is not in these figures.
    pub next_segment: u64,
    /// When the first of it happened.
    pub first_ns: u64,
    /// When the last of it happened.
    pub last_ns: u64,
    /// Steps.
    pub steps: u64,
    /// Graphs, nodes, edges and seeds, each over the steps that tell it.
    pub batch: [Sum; 4],
    /// Page faults and switches of the steps that tell them.
    pub usage: Option<ThreadUsage>,
    /// Epoch of the first step and of the last, and how often it changed.
    pub epochs: (u64, u64, u64),
    /// First and last loss that was read.
    pub losses: Option<(f64, f64)>,
    /// Where each track stood at the end.
    pub tracks: Vec<TrackEnd>,
    /// The training track's phases that waited for the end of their step.
    pub unfinished: Option<Unfinished>,
    /// Memory totals by phase, as last told.
    pub memory: Vec<PhaseMemory>,
    /// Each signal over the whole time.
    pub signals: Vec<(SignalId, Readings)>,
    /// Each counter of the program over the whole time.
    pub counters: Vec<(NameId, Readings)>,
    /// The files that hold the slices: number of each and how many of its bytes belong to these figures.
    pub files: Vec<(u64, u64)>,
}

/// A sum over the steps in which a number was known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// The sum.
    pub sum: u64,
    /// Wall time of these steps, in nanoseconds.
    pub period_ns: u64,
}

/// Where a track stood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrackEnd {
    /// The track.
    pub track: TrackId,
    /// Sequence number of its next event.
    pub next_seq: u64,
    /// Events dropped so far because its ring was full.
    pub dropped: u64,
    /// Events of it that are in these figures.
    pub events: u64,
    /// Spans among them.
    pub spans: u64,
    /// Steps among them.
    pub steps: u64,
    /// Time of the last one.
    pub last_ns: u64,
}

/// What was known of a step that had not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// The training track.
    pub track: TrackId,
    /// End of the step before, and its number.
    pub last_end_ns: u64,
    /// The number of that step.
    pub last_step: u64,
    /// Phases since then: name, start and end.
    pub phases: Vec<(NameId, u64, u64)>,
}

/// Figures over a stretch of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slice {
    /// Start.
    pub from_ns: u64,
    /// End.
    pub to_ns: u64,
    /// Ordinal of the first step that ended in it, counted from 0.
    pub first_ordinal: u64,
    /// Epoch of the last of these steps.
    pub epoch: u64,
    /// Steps from their own start.
    pub step: Durations,
    /// Steps with the gap before them.
    pub period: Durations,
    /// The gap of each step.
    pub gap: Durations,
    /// Time in each phase, of the steps that spent any.
    pub phases: Vec<(NameId, Durations)>,
    /// Graphs, nodes, edges and seeds, each over the steps that tell it.
    pub batch: [Sum; 4],
    /// The step with the longest period.
    pub worst: Option<Box<StepFigures>>,
    /// A step whose period is about the median.
    pub median: Option<Box<StepFigures>>,
    /// What was read of each signal.
    pub signals: Vec<(SignalId, Readings)>,
    /// What was read of each counter of the program.
    pub counters: Vec<(NameId, Readings)>,
    /// Marks, the first few.
    pub marks: Vec<(TrackId, Mark)>,
    /// Marks that found no room.
    pub marks_left_out: u64,
}

/// One step with where its time went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepFigures {
    /// Number of the step in the session, counted from 0.
    pub ordinal: u64,
    /// The step.
    pub step: Step,
    /// End of the step before.
    pub period_start_ns: u64,
    /// Time in no phase.
    pub gap_ns: u64,
    /// Time in each phase.
    pub phases: Vec<(NameId, u64)>,
}

impl StepFigures {
    /// From the end of the step before to its own.
    pub fn period_ns(&self) -> u64 {
        self.step.end_ns.saturating_sub(self.period_start_ns)
    }
}

/// A slow step with what was recorded in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlowStep {
    /// The step.
    pub figures: StepFigures,
    /// Spans of its track, in the order of their ends; the last ones where there were very many.
    pub spans: Vec<Span>,
}
