//! The trait of all checks, and what they report when there is too little data.

use crate::findings::evidence::{ENOUGH_STEPS, Evidence};
use crate::findings::finding::{Kind, Outcome};

/// Looks for one kind of finding.
pub(in crate::findings) trait Check: Sync {
    /// What it looks for.
    fn kind(&self) -> Kind;

    /// What it found.
    fn look(&self, evidence: &Evidence<'_>) -> Outcome;
}

/// The reason if there are too few steps for most checks.
pub(in crate::findings) fn too_few_steps(evidence: &Evidence<'_>) -> Outcome {
    fewer_than(evidence, ENOUGH_STEPS)
}

/// The reason if fewer steps than `needed` remain after a possible warm-up.
pub(in crate::findings) fn fewer_than(evidence: &Evidence<'_>, needed: usize) -> Outcome {
    let (first, steps) = (evidence.warm_up.len(), evidence.warm_up.len() + evidence.rows.len());
    let noun = if steps == 1 { "step" } else { "steps" };
    let why = if first > 0 { format!(", as the first {first} may warm up") } else { String::new() };
    Outcome::NotEnough(format!("only {steps} {noun}: {} are needed{why}", needed + first))
}
