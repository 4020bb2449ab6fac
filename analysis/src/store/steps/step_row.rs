//! A row of the step table: the data kept of one step.

use gnntop_wire::{BatchShape, Step, StepId, ThreadUsage};

use crate::store::ids::phases::PhaseSlot;

/// Stored in place of an unknown number.
const UNKNOWN: u64 = u64::MAX;

/// The result of tiling a step: where its wall time went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Period<'a> {
    /// Start of the period: the end of the previous step.
    pub start_ns: u64,
    /// Length of the period.
    pub period_ns: u64,
    /// Time inside no phase. The phases and this add up to the period.
    pub gap_ns: u64,
    /// Time in each phase, by slot; phases beyond the end took no time.
    pub phase_ns: &'a [u64],
}

/// The numbers that every row has.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct StepHead {
    step: u64,
    epoch: u64,
    start_ns: u64,
    end_ns: u64,
    period_start_ns: u64,
    pub(in crate::store) period_ns: u64,
    gap_ns: u64,
    batch: [u64; 4],
    loss: f64,
    usage: [u32; 4],
    has_loss: bool,
    has_usage: bool,
    is_traced: bool,
}

/// One step, as the table keeps it.
#[derive(Clone, Copy, Debug)]
pub struct StepRow<'a> {
    ordinal: u64,
    head: &'a StepHead,
    phase_ns: &'a [u64],
}

impl<'a> StepRow<'a> {
    pub(in crate::store) fn new(ordinal: u64, head: &'a StepHead, phase_ns: &'a [u64]) -> Self {
        Self { ordinal, head, phase_ns }
    }

    pub(in crate::store) fn head(&self) -> &'a StepHead {
        self.head
    }

    /// The row's number in the table, from 0. It does not change when old rows leave.
    pub fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// The step's own number, as the program counts.
    pub fn step(&self) -> StepId {
        StepId(self.head.step)
    }

    /// The epoch.
    pub fn epoch(&self) -> u64 {
        self.head.epoch
    }

    /// When the step started, according to the program.
    pub fn start_ns(&self) -> u64 {
        self.head.start_ns
    }

    /// When the step ended.
    pub fn end_ns(&self) -> u64 {
        self.head.end_ns
    }

    /// When the step's period began: at the end of the previous step, or at the start of a first step.
    pub fn period_start_ns(&self) -> u64 {
        self.head.period_start_ns
    }

    /// Wall time from the end of the previous step to the end of this one: exactly the sum of all phases and the gap.
    pub fn period_ns(&self) -> u64 {
        self.head.period_ns
    }

    /// Time from the step's own start to its end, as in exports: the period without the time before that start.
    pub fn work_ns(&self) -> u64 {
        self.head.end_ns.saturating_sub(self.head.start_ns)
    }

    /// Time of the period in no phase.
    pub fn gap_ns(&self) -> u64 {
        self.head.gap_ns
    }

    /// Time of the period in one phase, or in the gap.
    pub fn phase_ns(&self, slot: PhaseSlot) -> u64 {
        if slot == PhaseSlot::GAP { self.head.gap_ns } else { self.phase_ns.get(slot.index()).copied().unwrap_or(0) }
    }

    /// Time of the period in every phase, by slot and without the gap; phases beyond the end took no time.
    pub(in crate::store) fn phases(&self) -> &'a [u64] {
        self.phase_ns
    }

    /// The batch's size, as far as known.
    pub fn batch(&self) -> BatchShape {
        let [graphs, nodes, edges, seeds] = self.head.batch.map(|n| (n != UNKNOWN).then_some(n));
        BatchShape { graphs, nodes, edges, seeds }
    }

    /// The loss, if the program read it. It may be NaN.
    pub fn loss(&self) -> Option<f64> {
        self.head.has_loss.then_some(self.head.loss)
    }

    /// Whether `gnntop trace` has slowed it down: figures and findings leave it out.
    pub fn is_traced(&self) -> bool {
        self.head.is_traced
    }

    /// The page faults and context switches of the step's thread, each saturating at `u32::MAX`.
    pub fn usage(&self) -> Option<ThreadUsage> {
        let [minor_faults, major_faults, voluntary_switches, involuntary_switches] = self.head.usage.map(u64::from);
        let usage = ThreadUsage { minor_faults, major_faults, voluntary_switches, involuntary_switches };
        self.head.has_usage.then_some(usage)
    }
}

impl StepHead {
    /// The row of a step and its period.
    pub(in crate::store) fn new(step: &Step, period: &Period<'_>) -> Self {
        let BatchShape { graphs, nodes, edges, seeds } = step.batch;
        let usage = step.usage.unwrap_or_default();
        let usage_numbers =
            [usage.minor_faults, usage.major_faults, usage.voluntary_switches, usage.involuntary_switches];
        StepHead {
            step: step.step.0,
            epoch: step.epoch,
            start_ns: step.start_ns,
            end_ns: step.end_ns,
            period_start_ns: period.start_ns,
            period_ns: period.period_ns,
            gap_ns: period.gap_ns,
            batch: [graphs, nodes, edges, seeds].map(|n| n.unwrap_or(UNKNOWN)),
            loss: step.loss.unwrap_or(0.0),
            usage: usage_numbers.map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
            has_loss: step.loss.is_some(),
            has_usage: step.usage.is_some(),
            is_traced: step.is_traced,
        }
    }
}
