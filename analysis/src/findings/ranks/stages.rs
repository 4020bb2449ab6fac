//! Stages with unequal work: one takes longer than the others, and all wait for it.

use gnntop_wire::phase::{BACKWARD, FORWARD};
use thiserror::Error;

use super::evidence::RankEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::number::Number;
use crate::findings::robust::median;
use crate::ranks::pipeline::{PipelineError, PipelineStep};

/// Newest steps that are looked at closely.
const MAX_STEPS: usize = 16;
/// A stage that takes less than this many times the median of the others is as fast as they are.
const UNEQUAL: f64 = 1.25;
/// A better split must make steps this much faster to be worth reporting.
const WORTH_REPORTING: f64 = 1.03;

/// What it finds in a run.
pub(super) fn check(evidence: &RankEvidence<'_>) -> CheckOutcome {
    let all = evidence.ranks.all();
    if all.iter().all(|rank| rank.place.stages < 2) {
        return CheckOutcome::Nothing;
    }
    if !evidence.has_steps() {
        return evidence.too_few_steps();
    }
    let mut copies: Vec<u32> = all.iter().map(|rank| rank.place.copy).collect();
    copies.sort_unstable();
    copies.dedup();
    let found: Vec<Result<Option<Finding>, NoSteps>> = copies.iter().map(|copy| check_copy(evidence, *copy)).collect();
    let errors = || found.iter().filter_map(|found| found.as_ref().err());
    match errors().next() {
        Some(reason) if errors().count() == found.len() => CheckOutcome::NotEnough(reason.to_string()),
        // Copies are split alike, so one represents all.
        _ => found.into_iter().flatten().flatten().take(1).collect::<Vec<Finding>>().into(),
    }
}

/// Why nothing can be said of a copy's stages.
#[derive(Debug, Error)]
enum NoSteps {
    #[error("no step that all stages have")]
    None,
    #[error(transparent)]
    Unknown(PipelineError),
}

fn check_copy(evidence: &RankEvidence<'_>, copy: u32) -> Result<Option<Finding>, NoSteps> {
    let steps = evidence.steps.iter().take(MAX_STEPS);
    let steps: Vec<PipelineStep> =
        match steps.map(|common| PipelineStep::from_ranks(evidence.ranks, copy, common.step)).collect() {
            Ok(steps) => steps,
            Err(reason) => return check_phases(evidence, copy).ok_or(NoSteps::Unknown(reason)),
        };
    let Some(step) = typical(&steps) else { return Err(NoSteps::None) };
    let Some((slowest, ratio)) = step.slowest() else { return Ok(None) };
    if ratio < UNEQUAL || step.balanced_gain() < WORTH_REPORTING {
        return Ok(None);
    }
    let (now_ns, better_ns) = (step.plan.makespan_ns, step.balanced_plan.makespan_ns);
    let share = 1.0 - better_ns / now_ns.max(1.0);
    let confidence = if step.balanced.blocks.is_some() { Confidence::High } else { Confidence::Medium };
    let finding = Finding::for_run(FindingKind::Imbalance, confidence, Some(share), |facts| {
        facts.count(Number::Stage, slowest as u64);
        let (ratio, now) = (facts.number(Number::Ratio, ratio), facts.time(Number::Step, now_ns));
        let better = facts.time(Number::Balanced, better_ns);
        format!(
            "stage {slowest} takes {ratio:.1} x as long as the other stages: \
                a step of {now} would take {better} with a balanced split"
        )
    })
    .with_evidence_from(|facts| {
        let costs = step.stages.iter().enumerate().map(|(stage, of)| {
            let cost_ns = of.cost.both_ns();
            facts.about(&format!("stage {stage}"), |facts| facts.time(Number::MicroBatch, cost_ns)).to_string()
        });
        format!("time of a micro-batch by stage: {}", costs.collect::<Vec<String>>().join(", "))
    })
    .with_evidence_from(|facts| {
        let (idle, even) = (facts.share(Number::Idle, step.bubble()), facts.share(Number::IdleEven, step.formula()));
        let these = facts.share(Number::IdlePredicted, step.plan.bubble());
        format!(
            "stages are idle {idle} of the time; \
                the recurrence predicts {even} for even stages and {these} for these"
        )
    });
    Ok(Some(match (&step.balanced.blocks, step.stages.iter().map(|stage| stage.blocks).collect::<Option<Vec<_>>>()) {
        (Some(better), Some(now)) => finding
            .with_evidence_from(|facts| {
                let all = facts.count(Number::OfBlocks, now.iter().sum::<usize>() as u64);
                format!("{all} blocks are split {}", slashed(&now))
            })
            .with_advice(format!(
                "split them {}: {:.2} x as fast by the recurrence",
                slashed(better),
                step.balanced_gain()
            )),
        _ => finding
            .with_evidence("stages do not report how many blocks they have")
            .with_advice("move layers from that stage to the others"),
    }))
}

/// The step whose slowest stage is slower than the others by the usual ratio.
fn typical(steps: &[PipelineStep]) -> Option<&PipelineStep> {
    let ratio = |step: &PipelineStep| step.slowest().map_or(1.0, |slowest| slowest.1);
    let usual = median(&mut steps.iter().map(ratio).collect::<Vec<f64>>())?;
    steps.iter().min_by(|a, b| (ratio(a) - usual).abs().total_cmp(&(ratio(b) - usual).abs()))
}

/// Blocks in the usual notation of a split, such as `6/2/2/2`.
fn slashed(blocks: &[usize]) -> String {
    blocks.iter().map(usize::to_string).collect::<Vec<String>>().join("/")
}

/// From the phases, if there are no micro-batches: `None` without either.
fn check_phases(evidence: &RankEvidence<'_>, copy: u32) -> Option<Option<Finding>> {
    let all = evidence.ranks.all();
    let mut stages: Vec<usize> = (0..all.len()).filter(|at| all[*at].place.copy == copy).collect();
    stages.sort_by_key(|at| all[*at].place.stage);
    let work_ns = |at: &usize| {
        let of = |row: &_| Some(evidence.phase_ns(*at, row, FORWARD) + evidence.phase_ns(*at, row, BACKWARD));
        evidence.median(*at, of).filter(|ns| *ns > 0.0)
    };
    let costs: Vec<f64> = stages.iter().map(work_ns).collect::<Option<_>>()?;
    let slowest = (0..costs.len()).max_by(|a, b| costs[*a].total_cmp(&costs[*b]))?;
    let others = costs.iter().enumerate().filter(|(at, _)| *at != slowest).map(|cost| *cost.1);
    let usual = median(&mut others.collect::<Vec<f64>>())?;
    if costs[slowest] < UNEQUAL * usual {
        return Some(None);
    }
    let even_ns = costs.iter().sum::<f64>() / costs.len() as f64;
    let stage = all[stages[slowest]].place.stage;
    // A step cannot take less than its slowest stage; the rest of it may be anything.
    let share = evidence.share((costs[slowest] - even_ns) * evidence.steps.len() as f64);
    let finding = Finding::for_run(FindingKind::Imbalance, Confidence::Medium, Some(share.min(1.0)), |facts| {
        facts.count(Number::Stage, stage.into());
        let ratio = facts.number(Number::Ratio, costs[slowest] / usual);
        let (own, even) = (facts.time(Number::Longest, costs[slowest]), facts.time(Number::Balanced, even_ns));
        format!(
            "stage {stage} works {ratio:.1} x as long as the other stages: \
                    {own} a step in forward and backward; even stages would take {even}"
        )
    });
    Some(Some(finding.with_advice("move layers from that stage to the others")))
}
