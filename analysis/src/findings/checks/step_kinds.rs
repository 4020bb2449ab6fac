//! Kinds of steps: durations that recur and that no batch size explains. Means over all steps hide them, and a step is
//! slow only compared with its own kind.

use super::check::{Check, too_few_steps};
use crate::figures::{count, duration};
use crate::findings::evidence::Evidence;
use crate::findings::finding::{Confidence, Finding, Kind, Outcome, Severity};
use crate::findings::kinds::StepKind;

/// The check.
pub(super) struct StepKinds;

impl Check for StepKinds {
    fn kind(&self) -> Kind {
        Kind::StepKinds
    }

    fn look(&self, evidence: &Evidence<'_>) -> Outcome {
        if !evidence.has_steps() {
            return too_few_steps(evidence);
        }
        if evidence.kinds.all.is_empty() {
            return Outcome::Nothing;
        }
        let kinds = &evidence.kinds.all;
        let sentence = |kind: &StepKind| format!("{} {}", kind.which, duration(kind.usual_ns as u64));
        let summary = kinds.iter().map(sentence).collect::<Vec<String>>().join(", ");
        let steps =
            |kind: &StepKind| format!("{} steps, median {}", count(kind.steps as u64), duration(kind.usual_ns as u64));
        let steps = kinds.iter().map(steps).collect::<Vec<String>>().join("; ");
        let mut finding = Finding::of_run(Kind::StepKinds, Confidence::High, None, summary)
            .because(steps)
            .advise("compare only steps of one kind");
        finding.severity = Severity::Note;
        finding.count = kinds.len() as u64;
        finding.into()
    }
}
