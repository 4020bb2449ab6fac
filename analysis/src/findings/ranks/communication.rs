//! Communication-bound: moving data between ranks takes a large part of the time, without the wait for slow ranks.
//!
//! The last rank to reach an all-reduce waits for no one, so the shortest time of any rank in it is the time of
//! transfer and sum. In a pipeline it is what a step takes beyond the recurrence, in which transfers take no time.

use gnntop_wire::Engine;
use gnntop_wire::phase::ALL_REDUCE;

use super::evidence::RankEvidence;
use super::reduce_lines;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::number::Number;
use crate::findings::robust::median;
use crate::ranks::pipeline::PipelineStep;

/// Reported from this share of the time.
pub(super) const WORTH_REPORTING: f64 = 0.2;
/// Newest steps of a pipeline that are looked at closely.
const MAX_STEPS: usize = 16;

/// What it finds in a run.
pub(super) fn check(evidence: &RankEvidence<'_>) -> CheckOutcome {
    if evidence.ranks.all().len() < 2 {
        return CheckOutcome::NotEnough("only one rank publishes".to_owned());
    }
    if !evidence.has_steps() {
        return evidence.too_few_steps();
    }
    let found = [all_reduce(evidence), hand_over(evidence)];
    found.into_iter().flatten().collect::<Vec<Finding>>().into()
}

fn all_reduce(evidence: &RankEvidence<'_>) -> Option<Finding> {
    let peers = evidence.peers().into_iter().next()?;
    let shortest_ns = |common: &crate::ranks::CommonStep<'_>| {
        let of = |at: &usize| Some(evidence.phase_ns(*at, common.rows[*at].as_ref()?, ALL_REDUCE));
        peers.iter().filter_map(of).reduce(f64::min).unwrap_or(0.0)
    };
    let mut times: Vec<f64> = evidence.steps.iter().map(shortest_ns).collect();
    let share = evidence.share(times.iter().sum());
    if share < WORTH_REPORTING {
        return None;
    }
    let usual_ns = median(&mut times)?;
    let ranks = &evidence.ranks.all()[peers[0]].place;
    let finding = Finding::for_run(FindingKind::CommunicationBound, Confidence::High, Some(share), |facts| {
        let (share, usual) = (facts.share(Number::OfTime, share), facts.time(Number::Usual, usual_ns));
        format!("the all-reduce itself takes {share} of the time, {usual} a step, after the slowest rank has arrived")
    })
    .with_evidence_from(|facts| {
        let copies = facts.count(Number::Copies, ranks.copies.into());
        format!("{copies} copies exchange gradients over {}", describe_engine(&ranks.engine))
    });
    let finding = reduce_lines::add(evidence.ranks.all()[peers[0]].store, finding);
    Some(finding.with_advice("do more work between all-reduces, such as by gradient accumulation"))
}

fn hand_over(evidence: &RankEvidence<'_>) -> Option<Finding> {
    let place = evidence.ranks.all().first()?.place;
    let steps = evidence.steps.iter().take(MAX_STEPS);
    let steps: Vec<PipelineStep> =
        steps.filter_map(|common| PipelineStep::from_ranks(evidence.ranks, place.copy, common.step).ok()).collect();
    let median_of = |number: fn(&PipelineStep) -> f64| median(&mut steps.iter().map(number).collect::<Vec<f64>>());
    let took_ns = median_of(|step| step.makespan_ns() as f64)?;
    let planned_ns = median_of(|step| step.plan.makespan_ns)?;
    let share = 1.0 - planned_ns / took_ns.max(1.0);
    if share < WORTH_REPORTING {
        return None;
    }
    let late = median_of(|step| step.share(|stage| stage.late_ns))?;
    let finding = Finding::for_run(FindingKind::CommunicationBound, Confidence::Medium, Some(share), |facts| {
        let (took, needed) = (facts.time(Number::Step, took_ns), facts.time(Number::Needed, planned_ns));
        format!("a step takes {took}, but its stages need only {needed}: transfers between stages take the rest")
    })
    .with_evidence_from(|facts| {
        let late = facts.share(Number::Late, late);
        format!("stages have their input but do not run yet for {late} of the time")
    })
    .with_evidence_from(|facts| {
        let stages = facts.count(Number::Stages, place.stages.into());
        format!("{stages} stages exchange data through {}", describe_engine(&place.engine))
    });
    Some(finding.with_advice("use fewer, larger micro-batches"))
}

fn describe_engine(engine: &Engine) -> String {
    if *engine == Engine::Unknown { "an unnamed engine".to_owned() } else { engine.to_string() }
}
