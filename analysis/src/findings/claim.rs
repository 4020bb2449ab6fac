//! The part of the steps' time that a finding is about, so that no time is counted twice.

use crate::store::PhaseSlot;

/// The time that a finding says is lost, before other findings have claimed the same time.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Claim {
    /// All the steps' time in these phases, or in the gap.
    Phases(Vec<PhaseSlot>),
    /// Some of the time of single steps.
    Steps(Vec<StepCost>),
    /// This share (0 to 1) of every step, in whichever phase.
    Everywhere(f64),
}

/// Some of the time of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StepCost {
    /// Index of the row among those looked at.
    pub row: usize,
    /// Whether it is lost inside the step, or between it and the previous one.
    pub is_inside: bool,
    /// How much.
    pub ns: f64,
    /// The time inside that the step takes without it, if the cost is what it takes beyond that, and so no part of it.
    pub without_ns: Option<f64>,
}
