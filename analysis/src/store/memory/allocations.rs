//! Memory of the observed program, as its allocator reports it: totals by phase, live bytes over time, the most recent
//! large allocations, those live at the peak, and the bytes live at the ends of steps.

use std::collections::VecDeque;

use gnntop_wire::{Allocation, NameId, PhaseMemory, TrackId};

use crate::store::signals::series::Series;

/// Most phases with separate totals.
const MAX_PHASES: usize = 256;
/// Points of all phases' allocations over time, together.
const PHASE_POINTS: usize = 200_000;
/// Most large allocations tracked as live; beyond this, the oldest is forgotten.
const MAX_LIVE: usize = 512;
/// Events searched backwards for the last one of a step's own thread.
const LOOKBACK: usize = 96;
/// Most ends of steps with their live bytes; beyond this, every second one is dropped.
const MAX_STEP_ENDS: usize = 256;

/// An allocation or release, and the track that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// The track.
    pub track: TrackId,
    /// The allocation or release.
    pub event: Allocation,
}

/// The peak of live bytes after a large allocation, and the large allocations live then. A release reports only its size,
/// so it counts as that of the newest live allocation of this size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peak {
    /// Bytes live after the allocation that reached the peak.
    pub live_bytes: u64,
    /// That allocation.
    pub made_by: Allocated,
    /// The large allocations live then, in the order of allocation.
    pub live: Vec<Allocated>,
}

/// Bytes live at the end of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepEnd {
    /// The step's ordinal in the step table.
    pub ordinal: u64,
    /// Bytes live after its thread's last large allocation or release in it.
    pub live_bytes: u64,
}

/// Memory as reported by the program's allocator.
#[derive(Clone, Debug)]
pub struct Memory {
    phases: Vec<PhaseMemory>,
    /// Cumulative bytes allocated, by index in `phases`.
    allocated_bytes: Vec<Series<f64>>,
    /// All reports of live bytes; the next field has only those read once a second.
    live_bytes: Series<f64>,
    readings: Series<f64>,
    allocations: VecDeque<Allocated>,
    allocation_count: u64,
    /// Large allocations not yet released, as far as sizes show.
    live: Vec<Allocated>,
    peak: Option<Peak>,
    /// Every `step_stride`th end of a step.
    step_ends: Vec<StepEnd>,
    step_stride: u64,
    max_allocations: usize,
    points: usize,
}

impl Memory {
    pub(in crate::store) fn new(allocations_kept: usize, points: usize) -> Self {
        Self {
            phases: Vec::new(),
            allocated_bytes: Vec::new(),
            live_bytes: Series::new(),
            readings: Series::new(),
            allocations: VecDeque::new(),
            allocation_count: 0,
            live: Vec::new(),
            peak: None,
            step_ends: Vec::new(),
            step_stride: 1,
            max_allocations: allocations_kept.max(1),
            points,
        }
    }

    /// The newest totals of each phase, in the order of appearance; [`NameId::NONE`] stands for memory outside every phase.
    /// Empty if the program does not count its allocations.
    pub fn phases(&self) -> &[PhaseMemory] {
        &self.phases
    }

    /// The phases, and the cumulative bytes allocated in each over time, in the order of [`Memory::phases`].
    pub fn allocated_bytes(&self) -> impl Iterator<Item = (&PhaseMemory, &Series<f64>)> {
        self.phases.iter().zip(&self.allocated_bytes)
    }

    /// Bytes live in the whole process over time: as read once a second, and after each large allocation or release.
    pub fn live_bytes(&self) -> &Series<f64> {
        &self.live_bytes
    }

    /// Only the readings taken once a second, regardless of what the program did.
    pub fn readings(&self) -> &Series<f64> {
        &self.readings
    }

    /// Peak of live bytes of the whole process; `None` if the program does not report it.
    pub fn peak_bytes(&self) -> Option<u64> {
        self.phases.iter().map(|phase| phase.peak_bytes).max()
    }

    /// The large allocation that reached the peak, and those before it; `None` before the first.
    pub fn peak(&self) -> Option<&Peak> {
        self.peak.as_ref()
    }

    /// The most recent single allocations and releases at or above the program's threshold, oldest first.
    pub fn allocations(&self) -> impl DoubleEndedIterator<Item = &Allocated> + ExactSizeIterator {
        self.allocations.iter()
    }

    /// Number of such allocations and releases so far, kept or not.
    pub fn allocation_count(&self) -> u64 {
        self.allocation_count
    }

    /// The newest totals of one phase.
    pub fn phase(&self, name: NameId) -> Option<&PhaseMemory> {
        self.phases.iter().find(|phase| phase.phase == name)
    }

    /// Bytes live at the ends of steps, evenly spread over all steps that report them; at most 256.
    pub fn step_ends(&self) -> &[StepEnd] {
        &self.step_ends
    }

    /// Forgets what was live: the process has ended.
    pub(in crate::store) fn interrupt(&mut self) {
        self.live.clear();
    }

    pub(in crate::store) fn add_allocation(&mut self, track: TrackId, event: Allocation) {
        self.allocation_count += 1;
        if self.allocations.len() >= self.max_allocations {
            self.allocations.pop_front();
        }
        self.allocations.push_back(Allocated { track, event });
        self.live_bytes.push(event.t_ns, event.live_bytes as f64, self.points);
        self.follow_live(Allocated { track, event });
    }

    fn follow_live(&mut self, made: Allocated) {
        if made.event.bytes < 0 {
            let same = |live: &Allocated| live.event.bytes.checked_neg() == Some(made.event.bytes);
            if let Some(at) = self.live.iter().rposition(same) {
                self.live.remove(at);
            }
            return;
        }
        if self.live.len() >= MAX_LIVE {
            self.live.remove(0);
        }
        self.live.push(made);
        let live_bytes = made.event.live_bytes;
        if self.peak.as_ref().is_none_or(|peak| live_bytes > peak.live_bytes) {
            let peak = self.peak.get_or_insert_with(|| Peak { live_bytes: 0, made_by: made, live: Vec::new() });
            (peak.live_bytes, peak.made_by) = (live_bytes, made);
            peak.live.clone_from(&self.live);
        }
    }

    /// Notes what was live when a step of `track` ended, if the track reported it within the step.
    pub(in crate::store) fn end_step(&mut self, track: TrackId, ordinal: u64, start_ns: u64, end_ns: u64) {
        if !ordinal.is_multiple_of(self.step_stride) {
            return;
        }
        // Other threads write in between. A step makes few large allocations, so searching the last events is enough.
        let of_step = |made: &&Allocated| made.track == track && made.event.t_ns <= end_ns;
        let last = self.allocations.iter().rev().take(LOOKBACK).find(of_step);
        let Some(last) = last.filter(|made| made.event.t_ns >= start_ns) else { return };
        self.step_ends.push(StepEnd { ordinal, live_bytes: last.event.live_bytes });
        if self.step_ends.len() > MAX_STEP_ENDS {
            self.step_stride = self.step_stride.saturating_mul(2);
            let stride = self.step_stride;
            self.step_ends.retain(|end| end.ordinal.is_multiple_of(stride));
        }
    }

    /// Adds a phase's totals; `false` if there is no room for another phase.
    pub(in crate::store) fn add_phase(&mut self, memory: PhaseMemory) -> bool {
        // All phases are read at once; one point per reading is enough.
        if self.readings.last().is_none_or(|last| last.t_ns() != memory.t_ns) {
            self.readings.push(memory.t_ns, memory.live_bytes as f64, self.points);
            self.live_bytes.push(memory.t_ns, memory.live_bytes as f64, self.points);
        }
        let at = match self.phases.iter().position(|known| known.phase == memory.phase) {
            Some(at) => at,
            None if self.phases.len() < MAX_PHASES => {
                self.phases.push(memory);
                self.allocated_bytes.push(Series::new());
                self.phases.len() - 1
            }
            None => return false,
        };
        self.phases[at] = memory;
        let points = (PHASE_POINTS / self.phases.len()).min(self.points);
        self.allocated_bytes[at].push(memory.t_ns, memory.allocated_bytes as f64, points);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACK: TrackId = TrackId(1);

    fn memory() -> Memory {
        Memory::new(1000, 1000)
    }

    fn allocate(memory: &mut Memory, t_ns: u64, bytes: i64, live_bytes: u64) {
        memory.add_allocation(TRACK, Allocation { phase: NameId(1), t_ns, bytes, live_bytes });
    }

    #[test]
    fn peak_lists_live_allocations() {
        let mut memory = memory();
        allocate(&mut memory, 1, 700, 700);
        for n in 0..100u64 {
            allocate(&mut memory, n * 10 + 5, 50, 760 + n);
            allocate(&mut memory, n * 10 + 6, 50, 810 + n);
            allocate(&mut memory, n * 10 + 7, -50, 760);
            allocate(&mut memory, n * 10 + 8, -50, 700);
        }
        allocate(&mut memory, 5000, 10, 720);
        let peak = memory.peak().unwrap();
        let live: Vec<_> = peak.live.iter().map(|made| (made.event.t_ns, made.event.bytes)).collect();
        assert_eq!((peak.live_bytes, peak.made_by.event.t_ns), (909, 996));
        assert_eq!(live, [(1, 700), (995, 50), (996, 50)], "what was released is not behind it");
    }

    #[test]
    fn unreleased_allocations_are_bounded() {
        let mut memory = memory();
        for n in 0..5000u64 {
            allocate(&mut memory, n, 1 + (n % 7) as i64, n);
            allocate(&mut memory, n, i64::MIN, n);
        }
        assert_eq!(memory.peak().map(|peak| peak.live.len()), Some(MAX_LIVE));
    }

    #[test]
    fn ends_of_steps_are_thinned_evenly() {
        let mut memory = memory();
        for step in 0..100_000u64 {
            allocate(&mut memory, step * 100 + 10, 900, 1000 + step);
            allocate(&mut memory, step * 100 + 90, -900, 100 + step * 3);
            memory.end_step(TRACK, step, step * 100, step * 100 + 99);
        }
        let ends = memory.step_ends();
        assert!(ends.len() <= MAX_STEP_ENDS && ends.len() > MAX_STEP_ENDS / 3);
        let stride = ends[1].ordinal - ends[0].ordinal;
        assert!(ends.windows(2).all(|pair| pair[1].ordinal - pair[0].ordinal == stride));
        assert!(ends.iter().all(|end| end.live_bytes == 100 + end.ordinal * 3));
    }

    #[test]
    fn step_without_allocation_has_no_end() {
        let mut memory = memory();
        allocate(&mut memory, 50, 5, 5);
        memory.end_step(TRACK, 0, 100, 200);
        memory.end_step(TrackId(2), 1, 0, 200);
        assert!(memory.step_ends().is_empty());
        memory.end_step(TRACK, 2, 40, 60);
        assert_eq!(memory.step_ends(), [StepEnd { ordinal: 2, live_bytes: 5 }]);
    }
}
