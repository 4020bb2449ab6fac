//! The content of a frame of the past.

use super::durations::Durations;
use super::readings::Readings;
use crate::event::{Mark, PhaseMemory, Rival, Span, Step, ThreadUsage};
use crate::ids::{NameId, SignalId, TrackId};

/// One entry of a frame of kind 6.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PastEntry {
    /// Figures over everything before the segments that follow.
    Totals(Box<PastTotals>),
    /// Durations of everything before the segments that follow.
    Durations(DurationSeries, Durations),
    /// A slice of time.
    Slice(Box<Slice>),
    /// One of the slowest steps.
    Slow(Box<SlowStep>),
}

/// What [`PastEntry::Durations`] are durations of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurationSeries {
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
        /// How much of their time is on loaders' tracks, in nanoseconds.
        ahead_ns: u64,
    },
}

/// Figures over everything before the segments that follow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PastTotals {
    /// Number of the first segment not included in these figures.
    pub next_segment: u64,
    /// Time of the first event.
    pub first_ns: u64,
    /// Time of the last event.
    pub last_ns: u64,
    /// Steps.
    pub steps: u64,
    /// Graphs, nodes, edges and seeds, each over the steps that report it.
    pub batch: [Sum; 4],
    /// Page faults and switches of the steps that report them.
    pub usage: Option<ThreadUsage>,
    /// Epoch of the first step, epoch of the last, and how often it changed.
    pub epochs: (u64, u64, u64),
    /// First and last loss that was read.
    pub losses: Option<(f64, f64)>,
    /// State of each track at the end.
    pub tracks: Vec<TrackEnd>,
    /// The training track's phases whose step had not ended.
    pub unfinished: Option<Unfinished>,
    /// Memory totals by phase, as last reported.
    pub memory: Vec<PhaseMemory>,
    /// Each signal over the whole time.
    pub signals: Vec<(SignalId, Readings)>,
    /// Each counter of the program over the whole time.
    pub counters: Vec<(NameId, Readings)>,
    /// The files that hold the slices: number of each, and how many of its bytes belong to these figures.
    pub files: Vec<(u64, u64)>,
}

/// A sum over the steps that report a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// The sum.
    pub sum: u64,
    /// Wall time of these steps, in nanoseconds.
    pub period_ns: u64,
}

/// State of a track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrackEnd {
    /// The track.
    pub track: TrackId,
    /// Sequence number of its next event.
    pub next_seq: u64,
    /// Events dropped so far because its ring was full.
    pub dropped: u64,
    /// Its events included in these figures.
    pub events: u64,
    /// Spans among them.
    pub spans: u64,
    /// Steps among them.
    pub steps: u64,
    /// Time of the last event.
    pub last_ns: u64,
}

/// What was known of an unfinished step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// The training track.
    pub track: TrackId,
    /// End of the previous step.
    pub last_end_ns: u64,
    /// Number of the previous step.
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
    /// Ordinal of the first step that ended in it, from 0.
    pub first_ordinal: u64,
    /// Epoch of the last such step.
    pub epoch: u64,
    /// Steps from their own start.
    pub step: Durations,
    /// Steps with the gap before them.
    pub period: Durations,
    /// The gap of each step.
    pub gap: Durations,
    /// Time in each phase, of the steps that spent any.
    pub phases: Vec<(NameId, Durations)>,
    /// Graphs, nodes, edges and seeds, each over the steps that report it.
    pub batch: [Sum; 4],
    /// The step with the longest period.
    pub worst: Option<Box<StepFigures>>,
    /// A step with about the median period.
    pub median: Option<Box<StepFigures>>,
    /// Readings of each signal.
    pub signals: Vec<(SignalId, Readings)>,
    /// Readings of each of the program's counters.
    pub counters: Vec<(NameId, Readings)>,
    /// The first few marks.
    pub marks: Vec<(TrackId, Mark)>,
    /// Marks for which there was no room.
    pub marks_left_out: u64,
    /// The first few other programs that used much of the CPU.
    pub rivals: Vec<Rival>,
}

/// A step, with where its time went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepFigures {
    /// Number of the step in the session, from 0.
    pub ordinal: u64,
    /// The step.
    pub step: Step,
    /// End of the previous step.
    pub period_start_ns: u64,
    /// Time in no phase.
    pub gap_ns: u64,
    /// Time in each phase.
    pub phases: Vec<(NameId, u64)>,
}

impl StepFigures {
    /// Time from the end of the previous step to its own end.
    pub fn period_ns(&self) -> u64 {
        self.step.end_ns.saturating_sub(self.period_start_ns)
    }
}

/// A slow step, with the spans recorded in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlowStep {
    /// The step.
    pub figures: StepFigures,
    /// Spans of its track, in the order of their ends; only the last ones if there were very many.
    pub spans: Vec<Span>,
}
