//! What every check is, and what it says where there is too little to look at.

use crate::findings::evidence::Evidence;
use crate::findings::finding::{Kind, Outcome};

/// Looks for one kind of finding.
pub(in crate::findings) trait Check: Sync {
    /// What it looks for.
    fn kind(&self) -> Kind;

    /// What there is of it.
    fn look(&self, evidence: &Evidence<'_>) -> Outcome;
}

/// What is said where there are too few steps.
pub(in crate::findings) fn too_few_steps(evidence: &Evidence<'_>) -> Outcome {
    Outcome::NotEnough(format!("only {} steps after the warm-up", evidence.rows.len()))
}
