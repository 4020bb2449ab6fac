//! A device's memory, by phase and by purpose.
//!
//! A driver's pool reports its use and its peak since the last reset. Read and reset at both ends of a phase, it gives the
//! phase's peak. A read takes microseconds, so only some steps are measured, at most ten a second. The peak over all other
//! steps is read when the next measured step begins. A phase inside another counts towards the outer one.
//!
//! What memory is for follows from what the training says it holds ([`Holdings`]) and from the use at the start and end of
//! `forward`; [`Purpose`] describes the arithmetic.

use std::time::{Duration, Instant};

use gnntop_wire::{DeviceMemory, NameKind, Purpose, Reported};

use super::pool::{Holdings, MemoryReport, Pool, PoolUse};
use crate::names::{self, NameRef, intern};
use crate::phase;
use crate::track::{self, Peak};

/// Shortest time between two measured steps.
const MEASURE_EVERY: Duration = Duration::from_millis(100);
/// Readings of the measured step so far.
#[derive(Clone, Copy, Debug, Default)]
struct MeasuredStep {
    used_peak: u64,
    reserved_peak: u64,
    allocations: Option<u64>,
    /// Bytes in use when forward began and ended.
    forward: [Option<u64>; 2],
}

/// The counters of a step, named when the watch begins: making a name allocates and locks, and a training thread must not
/// wait for either.
struct StepCounters {
    used: NameRef,
    peak: NameRef,
    reserved: NameRef,
    reserved_peak: NameRef,
    free: NameRef,
    total: NameRef,
    allocations: NameRef,
    kinds: [NameRef; Purpose::ALL.len()],
}

impl StepCounters {
    fn new() -> Self {
        let counter = |what: DeviceMemory| {
            let what = Reported::Memory(what);
            intern(NameKind::Reported(what), what.text())
        };
        Self {
            used: counter(DeviceMemory::Used),
            peak: counter(DeviceMemory::Peak),
            reserved: counter(DeviceMemory::Reserved),
            reserved_peak: counter(DeviceMemory::ReservedPeak),
            free: counter(DeviceMemory::Free),
            total: counter(DeviceMemory::Total),
            allocations: counter(DeviceMemory::Allocations),
            kinds: Purpose::ALL.map(|purpose| counter(DeviceMemory::Of(purpose))),
        }
    }
}

/// Reads a pool at the start and end of each phase.
pub(super) struct MemoryWatch {
    pool: Box<dyn Pool>,
    counters: StepCounters,
    forward: u32,
    /// `Some` while a step is measured.
    measured: Option<MeasuredStep>,
    last: Option<Instant>,
    step: u64,
    phase: u32,
    kinds: [Option<u64>; Purpose::ALL.len()],
}

impl MemoryWatch {
    pub(super) fn new(pool: Box<dyn Pool>) -> Self {
        Self {
            pool,
            counters: StepCounters::new(),
            forward: NameRef::from(&phase::FORWARD).id().0,
            measured: None,
            last: None,
            step: 0,
            phase: 0,
            kinds: Default::default(),
        }
    }

    pub(super) fn begin_step(&mut self, step: u64) {
        self.step = step;
        if self.last.is_some_and(|last| last.elapsed() < MEASURE_EVERY) {
            return;
        }
        let Some(now) = self.pool.read() else { return };
        self.measured = Some(MeasuredStep {
            used_peak: now.used_peak,
            reserved_peak: now.reserved_peak,
            allocations: now.allocations,
            forward: [None; 2],
        });
        self.pool.reset_peaks();
    }

    pub(super) fn begin_phase(&mut self, name: u32) {
        self.phase = name;
        let Some(now) = self.edge() else { return };
        if name == self.forward
            && let Some(step) = &mut self.measured
        {
            step.forward[0].get_or_insert(now.used);
        }
    }

    pub(super) fn end_phase(&mut self, name: u32) {
        self.phase = name;
        let Some(now) = self.edge() else { return };
        if name == self.forward
            && let Some(step) = &mut self.measured
        {
            step.forward[1] = Some(now.used);
        }
        track::phase_peak(name, Peak::Used, now.used_peak);
        track::phase_peak(name, Peak::Reserved, now.reserved_peak);
    }

    pub(super) fn end_step(&mut self, holdings: Option<Holdings>) {
        let Some(now) = self.edge() else { return };
        let Some(step) = self.measured.take() else { return };
        self.last = Some(Instant::now());
        let counters = &self.counters;
        for (name, bytes) in [
            (counters.used, now.used),
            (counters.peak, step.used_peak),
            (counters.reserved, now.reserved),
            (counters.reserved_peak, step.reserved_peak),
            (counters.free, now.free),
            (counters.total, now.total),
        ] {
            track::counter(name, bytes as f64);
        }
        if let (Some(before), Some(after)) = (step.allocations, now.allocations) {
            track::counter(counters.allocations, after.saturating_sub(before) as f64);
        }
        self.kinds = kinds(holdings, &step);
        for (name, bytes) in counters.kinds.into_iter().zip(self.kinds) {
            let Some(bytes) = bytes else { continue };
            track::counter(name, bytes as f64);
        }
    }

    pub(super) fn report(&mut self) -> Option<MemoryReport> {
        let now = self.pool.read()?;
        let kinds = Purpose::ALL.iter().zip(self.kinds);
        let mut holders: Vec<(&str, u64)> = kinds.filter_map(|(kind, bytes)| Some((kind.text(), bytes?))).collect();
        holders.retain(|(_, bytes)| *bytes > 0);
        holders.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        let peak = self.measured.map_or(0, |step| step.used_peak).max(now.used_peak);
        Some(MemoryReport { now, peak, phase: names::name_text(self.phase), step: self.step, holders })
    }

    /// Reads and resets the pool at a phase's start or end, while a step is measured.
    fn edge(&mut self) -> Option<PoolUse> {
        let step = self.measured.as_mut()?;
        let now = self.pool.read()?;
        step.used_peak = step.used_peak.max(now.used_peak);
        step.reserved_peak = step.reserved_peak.max(now.reserved_peak);
        self.pool.reset_peaks();
        Some(now)
    }
}

/// A step's memory by purpose, as in [`Purpose::ALL`]; a purpose that cannot be derived is absent.
fn kinds(holdings: Option<Holdings>, step: &MeasuredStep) -> [Option<u64>; Purpose::ALL.len()] {
    let Some(Holdings { parameters, gradients, optimizer }) = holdings else { return Default::default() };
    let [before, after] = step.forward;
    // The previous step's gradients are gone when forward begins: training loops drop them at the end of a step.
    let batch = before.map(|before| before.saturating_sub(parameters + optimizer));
    let activations = before.zip(after).map(|(before, after)| after.saturating_sub(before));
    let told = parameters + gradients + optimizer;
    let workspace =
        batch.zip(activations).map(|(batch, activations)| step.used_peak.saturating_sub(told + batch + activations));
    [Some(parameters), Some(gradients), Some(optimizer), batch, activations, workspace]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_computed_from_holdings_and_peaks() {
        let holdings = Holdings { parameters: 100, gradients: 100, optimizer: 200 };
        let step = MeasuredStep { used_peak: 1_600, forward: [Some(350), Some(950)], ..MeasuredStep::default() };
        let kinds_of = |step: &MeasuredStep| kinds(Some(holdings), step);
        assert_eq!(kinds_of(&step), [100, 100, 200, 50, 600, 550].map(Some));
        let unseen = MeasuredStep { forward: [None; 2], ..step };
        assert_eq!(kinds_of(&unseen), [Some(100), Some(100), Some(200), None, None, None]);
        assert_eq!(kinds(None, &step), [None; 6]);
        let less = MeasuredStep { used_peak: 10, forward: [Some(1), Some(0)], ..step };
        assert_eq!(kinds_of(&less)[3..], [0, 0, 0].map(Some), "never less than nothing");
    }
}
