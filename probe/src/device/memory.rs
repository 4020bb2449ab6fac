//! The memory of a device by phase and by what it is for.
//!
//! A pool of the driver's tells what is in use and the most that was since it was last asked to forget. Read and reset at
//! both ends of a phase, that is the phase's peak. Reading takes microseconds, so only some steps are measured, ten a second
//! at most; the peak of the others is known together, when the next measured one begins. What lies in a phase inside
//! another belongs to the outer one.
//!
//! What memory is for follows from what the training says it holds ([`Holdings`]) and from what is in use at the edges of
//! `forward`; [`gnntop_wire::device_memory::KINDS`] has the arithmetic in words.

use std::time::{Duration, Instant};

use gnntop_wire::NameKind;
use gnntop_wire::device_memory as names_of;

use crate::names::{self, NameRef, intern};
use crate::{phase, track};

/// Steps are measured no more often than this.
const MEASURE_EVERY: Duration = Duration::from_millis(100);
/// Phases that have a peak of their own.
const MAX_PHASES: usize = 32;

/// Where a device's memory comes from.
pub trait Pool: Send {
    /// What is in use and at its peak; `None` where the driver does not say.
    fn read(&mut self) -> Option<PoolUse>;

    /// Forgets the peaks: they are what is in use now.
    fn reset_peaks(&mut self);
}

/// Memory of a device that this program uses, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolUse {
    /// In tensors now.
    pub used: u64,
    /// In tensors, the most since the peaks were reset.
    pub used_peak: u64,
    /// Taken from the device, in tensors or kept for the next ones.
    pub reserved: u64,
    /// Taken from the device, the most since the peaks were reset.
    pub reserved_peak: u64,
    /// What no program has taken.
    pub free: u64,
    /// Of the device.
    pub total: u64,
    /// Allocations since the start, where the pool counts them.
    pub allocations: Option<u64>,
}

/// What a training holds on its device, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Trainable tensors.
    pub parameters: u64,
    /// Their gradients, from the end of backward to the end of the step.
    pub gradients: u64,
    /// What the optimizer keeps from step to step.
    pub optimizer: u64,
}

/// A device's memory as far as it is known when it has run out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryReport {
    /// Now.
    pub now: PoolUse,
    /// In tensors, the most in this step where it is measured, else since the measured step before.
    pub peak: u64,
    /// The phase that began or ended last.
    pub phase: Option<String>,
    /// The step, 0 before the first.
    pub step: u64,
    /// What memory was for in the last measured step, as in [`gnntop_wire::device_memory::KINDS`], the largest first.
    pub holders: Vec<(&'static str, u64)>,
}

/// What the step that is measured has shown so far.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    used_peak: u64,
    reserved_peak: u64,
    allocations: Option<u64>,
    /// In use when forward began and ended.
    forward: [Option<u64>; 2],
}

/// Counters of one phase.
struct PhaseNames {
    phase: u32,
    used_peak: NameRef,
    reserved_peak: NameRef,
}

/// Reads a pool at the edges of phases.
pub(super) struct Watch {
    pool: Box<dyn Pool>,
    holdings: Option<Holdings>,
    names: Vec<PhaseNames>,
    /// Present while a step is measured.
    measured: Option<Step>,
    last: Option<Instant>,
    step: u64,
    phase: u32,
    kinds: [Option<u64>; names_of::KINDS.len()],
}

impl Watch {
    pub(super) fn new(pool: Box<dyn Pool>) -> Self {
        Self {
            pool,
            holdings: None,
            names: Vec::with_capacity(MAX_PHASES),
            measured: None,
            last: None,
            step: 0,
            phase: 0,
            kinds: Default::default(),
        }
    }

    pub(super) fn set_holdings(&mut self, holdings: Holdings) {
        self.holdings = Some(holdings);
    }

    pub(super) fn begin_step(&mut self, step: u64) {
        self.step = step;
        if self.last.is_some_and(|last| last.elapsed() < MEASURE_EVERY) {
            return;
        }
        let Some(now) = self.pool.read() else { return };
        self.measured = Some(Step {
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
        if is_forward(name)
            && let Some(step) = &mut self.measured
        {
            step.forward[0].get_or_insert(now.used);
        }
    }

    pub(super) fn end_phase(&mut self, name: u32) {
        self.phase = name;
        let Some(now) = self.edge() else { return };
        if is_forward(name)
            && let Some(step) = &mut self.measured
        {
            step.forward[1] = Some(now.used);
        }
        if let Some(names) = self.names_of(name) {
            let (used, reserved) = (names.used_peak, names.reserved_peak);
            track::counter(used, now.used_peak as f64);
            track::counter(reserved, now.reserved_peak as f64);
        }
    }

    pub(super) fn end_step(&mut self) {
        let Some(now) = self.edge() else { return };
        let Some(step) = self.measured.take() else { return };
        self.last = Some(Instant::now());
        for (name, bytes) in [
            (names_of::USED, now.used),
            (names_of::PEAK, step.used_peak),
            (names_of::RESERVED, now.reserved),
            (names_of::RESERVED_PEAK, step.reserved_peak),
            (names_of::FREE, now.free),
            (names_of::TOTAL, now.total),
        ] {
            track::counter(intern(NameKind::Counter, name), bytes as f64);
        }
        if let (Some(before), Some(after)) = (step.allocations, now.allocations) {
            track::counter(intern(NameKind::Counter, names_of::ALLOCATIONS), after.saturating_sub(before) as f64);
        }
        self.kinds = kinds(self.holdings, &step);
        for ((kind, _), bytes) in names_of::KINDS.iter().zip(self.kinds) {
            let Some(bytes) = bytes else { continue };
            track::counter(intern(NameKind::Counter, &format!("{}{kind}", names_of::KIND)), bytes as f64);
        }
    }

    pub(super) fn report(&mut self) -> Option<MemoryReport> {
        let now = self.pool.read()?;
        let kinds = names_of::KINDS.iter().zip(self.kinds);
        let mut holders: Vec<(&str, u64)> = kinds.filter_map(|((kind, _), bytes)| Some((*kind, bytes?))).collect();
        holders.retain(|(_, bytes)| *bytes > 0);
        holders.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        let peak = self.measured.map_or(0, |step| step.used_peak).max(now.used_peak);
        Some(MemoryReport { now, peak, phase: names::text(self.phase), step: self.step, holders })
    }

    /// Reads and resets the pool at an edge of a phase, while a step is measured.
    fn edge(&mut self) -> Option<PoolUse> {
        let step = self.measured.as_mut()?;
        let now = self.pool.read()?;
        step.used_peak = step.used_peak.max(now.used_peak);
        step.reserved_peak = step.reserved_peak.max(now.reserved_peak);
        self.pool.reset_peaks();
        Some(now)
    }

    fn names_of(&mut self, phase: u32) -> Option<&PhaseNames> {
        if let Some(at) = self.names.iter().position(|known| known.phase == phase) {
            return self.names.get(at);
        }
        if self.names.len() >= MAX_PHASES {
            return None;
        }
        let text = names::text(phase)?;
        let name = |of: &str| intern(NameKind::Counter, &format!("{of}{text}"));
        let (used_peak, reserved_peak) = (name(names_of::PEAK_IN), name(names_of::RESERVED_PEAK_IN));
        self.names.push(PhaseNames { phase, used_peak, reserved_peak });
        self.names.last()
    }
}

/// What memory was for in a step, as in [`names_of::KINDS`]; what does not follow from what is known is absent.
fn kinds(holdings: Option<Holdings>, step: &Step) -> [Option<u64>; names_of::KINDS.len()] {
    let Some(Holdings { parameters, gradients, optimizer }) = holdings else { return Default::default() };
    let [before, after] = step.forward;
    // Gradients of the step before are gone when forward begins: trainings drop them at its end.
    let batch = before.map(|before| before.saturating_sub(parameters + optimizer));
    let activations = before.zip(after).map(|(before, after)| after.saturating_sub(before));
    let known = [Some(parameters), Some(gradients), Some(optimizer), batch, activations];
    let sum = known.into_iter().collect::<Option<Vec<u64>>>().map(|all| all.iter().sum::<u64>());
    let workspace = sum.map(|sum| step.used_peak.saturating_sub(sum));
    [Some(parameters), Some(gradients), Some(optimizer), batch, activations, workspace]
}

fn is_forward(name: u32) -> bool {
    NameRef::from(&phase::FORWARD).id().0 == name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_follow_from_what_is_held_and_seen() {
        let holdings = Holdings { parameters: 100, gradients: 100, optimizer: 200 };
        let step = Step { used_peak: 1_600, forward: [Some(350), Some(950)], ..Step::default() };
        let kinds_of = |step: &Step| kinds(Some(holdings), step);
        assert_eq!(kinds_of(&step), [100, 100, 200, 50, 600, 550].map(Some));
        let unseen = Step { forward: [None; 2], ..step };
        assert_eq!(kinds_of(&unseen), [Some(100), Some(100), Some(200), None, None, None]);
        assert_eq!(kinds(None, &step), [None; 6]);
        let less = Step { used_peak: 10, forward: [Some(1), Some(0)], ..step };
        assert_eq!(kinds_of(&less)[3..], [0, 0, 0].map(Some), "never less than nothing");
    }
}
