//! Validation that takes a large part of the time.

use gnntop_wire::phase::VALIDATION;
use gnntop_wire::{NameId, Reported};

use super::unnamed_validation;
use crate::findings::claim::Claim;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::number::Number;
use crate::findings::sampled_places::SampledPlaces;

/// Reported from this share of the wall time.
const WORTH_REPORTING: f64 = 1.0 / 3.0;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let found = as_phase(evidence).or_else(|| unnamed_validation::find(evidence));
    found.map_or(CheckOutcome::Nothing, CheckOutcome::from)
}

fn as_phase(evidence: &StepEvidence<'_>) -> Option<Finding> {
    let phase = evidence.store.phase(VALIDATION)?;
    let ns = evidence.phase_total_ns(phase.slot);
    let share = evidence.share(ns);
    if share < WORTH_REPORTING {
        return None;
    }
    let is_end = |name: NameId| evidence.store.reported(name) == Some(Reported::Validation);
    let marks = |span| evidence.store.marks().within(span).filter(|mark| is_end(mark.name)).count() as u64;
    let times = evidence.span_ns().map_or(0, marks);
    let finding = Finding::for_run(FindingKind::Validation, Confidence::High, Some(share), |facts| {
        let (share, all) = (facts.share(Number::OfTime, share), facts.time(Number::InAll, ns));
        format!("validation takes {share} of the time, {all}")
    })
    .with_claim(Claim::Phases(vec![phase.slot]))
    .with_evidence_lines(|facts| {
        (times > 0).then(|| {
            let each = facts.time(Number::Each, ns / times as f64);
            let noun = if times == 1 { "time" } else { "times" };
            format!("{} {noun}, {each} each", facts.count(Number::Times, times))
        })
    })
    .with_evidence_lines(|facts| SampledPlaces::in_phase(evidence.store, VALIDATION).lines(facts, VALIDATION))
    .with_advice("validate less often, on fewer batches, or on larger ones: without gradients more fits into memory");
    Some(finding)
}

#[cfg(test)]
mod tests {
    use gnntop_fixtures::planned::StepPlan;
    use gnntop_fixtures::{MS, START_NS};
    use gnntop_wire::{Event, StackSample, TrackRole};

    use super::*;
    use crate::findings::tests::{run, store_of, stream};
    use crate::findings::{Judgement, Severity};

    /// 300 steps of 34 ms, every 50th after a validation that takes so long.
    fn found(validation_ms: u64) -> Vec<Finding> {
        let plan = move |step: u64| {
            let mut plan = StepPlan::default();
            if step.is_multiple_of(50) {
                plan.phases.insert(0, ("validation", validation_ms * MS));
                plan.mark_inside = Some("validation");
            }
            plan
        };
        Judgement::for_steps(&run(300, plan, &[]), 0..u64::MAX).findings.found
    }

    #[test]
    fn validation_of_a_third_of_the_time_is_found() {
        let found = found(1200);
        let it = found.iter().find(|finding| finding.kind == FindingKind::Validation).unwrap();
        assert!((it.share.unwrap() - 0.41).abs() < 0.02 && it.severity == Severity::Major, "{it:#?}");
        assert!(it.evidence[0].starts_with("6 times, 1.") && it.fact(Number::Times) == Some(6.0), "{it:#?}");
        assert!(!found.iter().any(|finding| finding.kind == FindingKind::Bound), "it is what bounds the run");
    }

    #[test]
    fn short_validation_is_no_finding() {
        assert!(!found(400).iter().any(|finding| finding.kind == FindingKind::Validation));
    }

    #[test]
    fn lines_of_validation_are_named() {
        let plan = |_| StepPlan { phases: vec![("validation", 30 * MS), ("forward", 20 * MS)], ..StepPlan::default() };
        let mut stream = stream(100, plan, &[]);
        let track = stream.track(TrackRole::Samples, "stacks of train, sampled");
        let path = stream.path(&["validation", "score (train.py:44)"]);
        stream.event(track, Event::StackSample(StackSample { path, t_ns: START_NS, count: 60, is_repeat: false }));
        let found = Judgement::for_steps(&store_of(stream), 0..u64::MAX).findings.found;
        let it = found.iter().find(|finding| finding.kind == FindingKind::Validation).unwrap();
        assert_eq!(it.evidence.last().unwrap(), "60 stacks sampled in validation: in score (train.py:44)");
    }
}
