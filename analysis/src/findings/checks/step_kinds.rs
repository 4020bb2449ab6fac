//! Kinds of steps: durations that recur and that no batch size explains. Means over all steps hide them, and a step is
//! slow only compared with its own kind.

use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, Severity};
use crate::findings::kinds::StepKind;
use crate::findings::number::Number;
use crate::findings::stated_numbers::StatedNumbers;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    if evidence.kinds.all.is_empty() {
        return CheckOutcome::Nothing;
    }
    let kinds = &evidence.kinds.all;
    let usual = |facts: &mut StatedNumbers, kind: &StepKind| {
        facts.about(&kind.which, |facts| facts.time(Number::Usual, kind.usual_ns).to_string())
    };
    let mut finding = Finding::for_run(FindingKind::StepKinds, Confidence::High, None, |facts| {
        let kinds = kinds.iter().map(|kind| format!("{} {}", kind.which, usual(facts, kind)));
        kinds.collect::<Vec<String>>().join(", ")
    })
    .with_evidence_from(|facts| {
        let steps = kinds.iter().map(|kind| {
            let steps = facts.about(&kind.which, |facts| facts.count(Number::Steps, kind.steps as u64));
            format!("{steps} steps, median {}", usual(facts, kind))
        });
        steps.collect::<Vec<String>>().join("; ")
    })
    .with_advice("compare only steps of one kind");
    finding.severity = Severity::Note;
    finding.count = kinds.len() as u64;
    finding.into()
}
