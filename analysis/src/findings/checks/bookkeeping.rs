//! Bookkeeping: whether the times add up, so that the other findings can be believed.

use gnntop_wire::phase::VALIDATION;

use super::check::fewer_than;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::number::Number;

/// Share of the wall time that may remain unaccounted for.
const TOLERANCE: f64 = 0.01;

/// Phases that are around others or in them: an evaluation and a rollout contain their own, such as forward, and Python collects
/// garbage in any.
const NESTS: [&str; 3] = [VALIDATION, "rollout", "gc"];

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let Some(span) = evidence.span_ns() else { return fewer_than(evidence, 1) };
    let found = [
        untiled(evidence, (span.end - span.start) as f64 - outages_ns(evidence) - evidence.traced_ns),
        overlapping(evidence),
        lost_events(evidence),
    ];
    found.into_iter().flatten().collect::<Vec<Finding>>().into()
}

/// Time between steps in which the run had ended and not started again yet.
fn outages_ns(evidence: &StepEvidence<'_>) -> f64 {
    let Some(restarts) = evidence.store.restarts() else { return 0.0 };
    let first = evidence.rows.first().map_or(u64::MAX, |row| row.ordinal());
    let between = restarts.outages.iter().filter(|outage| outage.is_over && outage.ordinal > first);
    between.map(|outage| outage.to_ns.saturating_sub(outage.from_ns) as f64).sum()
}

/// Compares the steps' periods with the wall clock.
fn untiled(evidence: &StepEvidence<'_>, wall_ns: f64) -> Option<Finding> {
    let missing = (wall_ns - evidence.wall_ns).abs() / wall_ns.max(1.0);
    if missing <= TOLERANCE {
        return None;
    }
    let finding = Finding::for_run(FindingKind::Bookkeeping, Confidence::High, Some(missing), |facts| {
        let (timed, wall) = (facts.time(Number::Timed, evidence.wall_ns), facts.time(Number::Wall, wall_ns));
        format!("phases and gap add up to {timed}, but {wall} passed")
    });
    let lost = evidence.store.losses().missing_steps;
    let advice =
        if lost > 0 { "use a larger ring, so that no steps are lost" } else { "treat shares and rates with caution" };
    let finding = finding.with_evidence_from(|facts| {
        let missing = facts.count(Number::Missing, lost);
        format!("missing: {missing} step{}", if lost == 1 { "" } else { "s" })
    });
    Some(finding.with_advice(advice))
}

/// Phases that overlap or run on other threads count once in a step; their spans show how often. What loaders prepare
/// on their own threads is not part of a step.
fn overlapping(evidence: &StepEvidence<'_>) -> Option<Finding> {
    let store = evidence.store;
    // Only over all steps is it known which spans belong to them.
    if store.steps().discarded() > 0 || evidence.rows.len() + evidence.warm_up.len() < store.steps().len() {
        return None;
    }
    let phases = store.spans().iter().filter(|span| span.is_phase && !NESTS.contains(&store.name(span.name)));
    let spans = phases.map(|span| span.durations.total_ns().saturating_sub(span.ahead_ns));
    let spans = spans.fold(0, u64::saturating_add) as f64;
    let statistics = store.statistics();
    let tiled = statistics.tiled_ns().saturating_sub(statistics.gap().total_ns()) as f64;
    let (first, last) = (store.steps().row(0)?.period_start_ns(), store.steps().last()?.end_ns());
    // Time before the first step and after the last belongs to no step.
    let outside = first.saturating_sub(store.first_ns()?).saturating_add(store.now_ns().saturating_sub(last));
    let more = (spans - tiled - outside as f64) / last.saturating_sub(first).max(1) as f64;
    if more <= TOLERANCE {
        return None;
    }
    let finding = Finding::for_run(FindingKind::Bookkeeping, Confidence::High, None, |facts| {
        let share = facts.share(Number::OfTime, more);
        format!("{share} of the time is in two phases at once: they overlap, or run on several threads")
    });
    let finding = finding.with_evidence("only the outermost phase of the training thread counts in a step");
    Some(finding.with_advice("make inner phases plain spans"))
}

/// Events that never arrived.
fn lost_events(evidence: &StepEvidence<'_>) -> Option<Finding> {
    let losses = evidence.store.losses();
    let lost = losses.dropped_events.saturating_add(losses.missed_events);
    let events: u64 = evidence.store.tracks().iter().map(|track| track.events).fold(lost, u64::saturating_add);
    let share = lost as f64 / events.max(1) as f64;
    if share <= TOLERANCE {
        return None;
    }
    let finding = Finding::for_run(FindingKind::Bookkeeping, Confidence::High, None, |facts| {
        let (missing, share) = (facts.count(Number::Missing, lost), facts.share(Number::MissingShare, share));
        format!("{missing} events are missing ({share} of all): phases may be longer than shown")
    });
    Some(finding.with_advice("publish fewer spans"))
}
