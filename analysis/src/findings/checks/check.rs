//! What a check is, and what it reports when there is too little data.

use crate::findings::evidence::{ENOUGH_STEPS, StepEvidence};
use crate::findings::finding::{CheckOutcome, FindingKind};

/// Times that are needed where each is the mean of several steps.
const ENOUGH_MEANS: u64 = 60;

/// Looks for one kind of finding.
pub(super) struct StepCheck {
    /// What it looks for.
    pub kind: FindingKind,
    needs_steps: bool,
    /// Whether means of several steps say nothing about it.
    needs_own_times: bool,
    find: fn(&StepEvidence<'_>) -> CheckOutcome,
}

impl StepCheck {
    pub(super) const fn new(kind: FindingKind, find: fn(&StepEvidence<'_>) -> CheckOutcome) -> Self {
        Self { kind, needs_steps: false, needs_own_times: false, find }
    }

    /// One that needs enough steps to say anything about them.
    pub(super) const fn over_steps(kind: FindingKind, find: fn(&StepEvidence<'_>) -> CheckOutcome) -> Self {
        Self { needs_steps: true, ..Self::new(kind, find) }
    }

    /// The same, if it is about single steps.
    pub(super) const fn of_single_steps(self) -> Self {
        Self { needs_own_times: true, ..self }
    }

    /// What it finds.
    pub(super) fn outcome(&self, evidence: &StepEvidence<'_>) -> CheckOutcome {
        let shared = evidence.store.session().mean_of_steps();
        if shared > 1 {
            let means = evidence.rows.len() as u64 / shared;
            if self.needs_own_times {
                return CheckOutcome::NotEnough(format!("there is one mean time for every {shared} steps"));
            }
            if means < ENOUGH_MEANS {
                return CheckOutcome::NotEnough(format!(
                    "only {means} means of {shared} steps each: {ENOUGH_MEANS} are needed"
                ));
            }
        }
        if self.needs_steps && !evidence.has_steps() { too_few_steps(evidence) } else { (self.find)(evidence) }
    }
}

/// The reason if there are too few steps for most checks.
pub(in crate::findings) fn too_few_steps(evidence: &StepEvidence<'_>) -> CheckOutcome {
    fewer_than(evidence, ENOUGH_STEPS)
}

/// The reason if fewer steps than `needed` remain after a possible warm-up.
pub(in crate::findings) fn fewer_than(evidence: &StepEvidence<'_>, needed: usize) -> CheckOutcome {
    let (first, steps) = (evidence.warm_up.len(), evidence.warm_up.len() + evidence.rows.len());
    let noun = if steps == 1 { "step" } else { "steps" };
    let why = if first > 0 { format!(", as the first {first} may warm up") } else { String::new() };
    CheckOutcome::NotEnough(format!("only {steps} {noun}: {} are needed{why}", needed + first))
}
