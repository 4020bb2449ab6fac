//! Slices of time: each second, and each minute made of its seconds.
//!
//! Tracks come in blocks, so an event may be half a second older than one that came before it. A second is closed when the
//! stream is two seconds past it.

use std::collections::VecDeque;

use gnntop_wire::past::{Readings, Slice, StepFigures};
use gnntop_wire::{Mark, NameId, Rival, SignalId, Step, TrackId};

use crate::merge::{self, MAX_MARKS, add_sum, entry};

/// A second, in nanoseconds.
pub const SECOND_NS: u64 = 1_000_000_000;
/// A minute, in nanoseconds.
pub const MINUTE_NS: u64 = 60 * SECOND_NS;
/// Seconds open at a time.
const OPEN_SECONDS: u64 = 3;
/// Most steps from which a second's median step is chosen.
const MAX_CANDIDATES: usize = 64;

/// A second that may still change.
#[derive(Clone, Debug, Default)]
struct OpenSecond {
    slice: Slice,
    /// Every `stride`-th step.
    candidates: Vec<StepFigures>,
    stride: u64,
}

/// The slices of a run; finished ones can be taken.
#[derive(Debug, Default)]
pub(crate) struct Slices {
    open: VecDeque<OpenSecond>,
    minute: Option<Slice>,
    seconds: Vec<Slice>,
    minutes: Vec<Slice>,
}

impl Slices {
    pub(crate) fn step(&mut self, figures: &StepFigures) {
        let open = self.open_second(figures.step.end_ns);
        let slice = &mut open.slice;
        if slice.period.is_empty() {
            slice.first_ordinal = figures.ordinal;
        }
        let (step, period_ns) = (&figures.step, figures.period_ns());
        slice.epoch = step.epoch;
        slice.step.record(step.end_ns.saturating_sub(step.start_ns));
        slice.period.record(period_ns);
        slice.gap.record(figures.gap_ns);
        for (name, ns) in figures.phases.iter().filter(|(_, ns)| *ns > 0) {
            entry(&mut slice.phases, *name, Default::default).record(*ns);
        }
        slice.batch.iter_mut().zip(sums(step, period_ns)).for_each(|(sum, next)| add_sum(sum, &next));
        if slice.worst.as_ref().is_none_or(|worst| worst.period_ns() < period_ns) {
            slice.worst = Some(Box::new(figures.clone()));
        }
        open.offer(figures);
    }

    pub(crate) fn signal(&mut self, signal: SignalId, t_ns: u64, value: f64, increase: Option<(f64, u64)>) {
        add_reading(entry(&mut self.open_second(t_ns).slice.signals, signal, Readings::default), t_ns, value, increase);
    }

    pub(crate) fn counter(&mut self, name: NameId, t_ns: u64, value: f64, increase: Option<(f64, u64)>) {
        add_reading(entry(&mut self.open_second(t_ns).slice.counters, name, Readings::default), t_ns, value, increase);
    }

    pub(crate) fn mark(&mut self, track: TrackId, mark: Mark) {
        let slice = &mut self.open_second(mark.t_ns).slice;
        if slice.marks.len() < MAX_MARKS { slice.marks.push((track, mark)) } else { slice.marks_left_out += 1 }
    }

    pub(crate) fn rival(&mut self, rival: Rival) {
        let rivals = &mut self.open_second(rival.t_ns).slice.rivals;
        if rivals.len() < MAX_MARKS {
            rivals.push(rival);
        }
    }

    /// The open second of this time. Times in closed seconds count in the oldest open one.
    fn open_second(&mut self, t_ns: u64) -> &mut OpenSecond {
        let from_ns = t_ns - t_ns % SECOND_NS;
        if self.open.back().is_none_or(|newest| newest.slice.from_ns < from_ns) {
            self.begin(from_ns);
        }
        let at = self.open.partition_point(|open| open.slice.from_ns <= from_ns).saturating_sub(1);
        &mut self.open[at]
    }

    fn begin(&mut self, from_ns: u64) {
        let slice = Slice { from_ns, to_ns: from_ns.saturating_add(SECOND_NS), ..Slice::default() };
        self.open.push_back(OpenSecond { slice, ..OpenSecond::default() });
        let is_over = |open: &OpenSecond| open.slice.from_ns.saturating_add(OPEN_SECONDS * SECOND_NS) <= from_ns;
        while self.open.front().is_some_and(is_over) {
            if let Some(open) = self.open.pop_front() {
                self.close(open.closed());
            }
        }
    }

    /// Takes a minute of an earlier time.
    pub(crate) fn resume_minute(&mut self, minute: Slice) {
        self.minutes.push(minute);
    }

    /// Adds a finished second to its minute.
    pub(crate) fn close(&mut self, second: Slice) {
        let is_of = |minute: &Slice| minute.from_ns / MINUTE_NS == second.from_ns / MINUTE_NS;
        if !self.minute.as_ref().is_some_and(is_of) {
            // As wide as a minute, however few seconds it has.
            let from_ns = second.from_ns - second.from_ns % MINUTE_NS;
            let minute = Slice { from_ns, to_ns: from_ns.saturating_add(MINUTE_NS), ..Slice::default() };
            self.minutes.extend(self.minute.replace(minute));
        }
        self.minute.iter_mut().for_each(|minute| merge::add(minute, &second));
        self.seconds.push(second);
    }

    /// The finished seconds and minutes, each once.
    pub(crate) fn take_closed(&mut self) -> (Vec<Slice>, Vec<Slice>) {
        (std::mem::take(&mut self.seconds), std::mem::take(&mut self.minutes))
    }

    /// The unfinished seconds and minute. The minute does not include these seconds.
    pub(crate) fn open(&self) -> (Vec<Slice>, Option<Slice>) {
        (self.open.iter().map(|open| open.clone().closed()).collect(), self.minute.clone())
    }
}

impl OpenSecond {
    fn offer(&mut self, figures: &StepFigures) {
        self.stride = self.stride.max(1);
        if !figures.ordinal.is_multiple_of(self.stride) {
            return;
        }
        if self.candidates.len() >= MAX_CANDIDATES {
            self.stride *= 2;
            let stride = self.stride;
            self.candidates.retain(|candidate| candidate.ordinal.is_multiple_of(stride));
        }
        self.candidates.push(figures.clone());
    }

    fn closed(mut self) -> Slice {
        let middle = self.candidates.len().saturating_sub(1) / 2;
        if !self.candidates.is_empty() {
            let key = |figures: &StepFigures| (figures.period_ns(), figures.ordinal);
            self.candidates.select_nth_unstable_by_key(middle, key);
            self.slice.median = Some(Box::new(self.candidates.swap_remove(middle)));
        }
        self.slice
    }
}

/// A step's contribution to the sums of the batch.
pub(crate) fn sums(step: &Step, period_ns: u64) -> [gnntop_wire::past::Sum; 4] {
    let batch = &step.batch;
    let sum = |n: Option<u64>| n.map_or_else(Default::default, |sum| gnntop_wire::past::Sum { sum, period_ns });
    [batch.graphs, batch.nodes, batch.edges, batch.seeds].map(sum)
}

/// Adds a reading, with the increase since the previous one.
pub(crate) fn add_reading(readings: &mut Readings, t_ns: u64, value: f64, increase: Option<(f64, u64)>) {
    readings.add(t_ns, value);
    if let Some((increase, ns)) = increase {
        readings.add_increase(increase, ns);
    }
}
