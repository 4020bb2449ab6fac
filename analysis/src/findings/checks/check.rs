//! The trait of all checks, and what they report when there is too little data.

use crate::findings::evidence::{ENOUGH_STEPS, StepEvidence};
use crate::findings::finding::{CheckOutcome, FindingKind};

/// Looks for one kind of finding.
pub(in crate::findings) trait StepCheck: Sync {
    /// What it looks for.
    fn kind(&self) -> FindingKind;

    /// What it found.
    fn check(&self, evidence: &StepEvidence<'_>) -> CheckOutcome;
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
