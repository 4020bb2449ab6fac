//! Marks with the duration of what ended at them: that is their cost, however many there are.

use super::marked::{Effect, Marked, advised};
use crate::findings::claim::Claim;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{Confidence, Finding, FindingKind, PLACES_LISTED};
use crate::findings::number::Number;

/// They matter from this share of the wall time...
const WORTH_REPORTING: f64 = 0.01;
/// ...unless one of them takes this share of a step.
const LONG: f64 = 0.5;
/// Marks at more than one in this many steps are listed only if they are long.
const OFTEN: usize = 4;
/// A shorter one that came once costs a share of a short recording, and nothing of a run: its step is a spike.
const LEAST_ONCE_NS: f64 = 1e9;

/// The finding about the marks of one text; `None` if they have no durations or do not matter.
pub(super) fn finding(evidence: &StepEvidence<'_>, text: &str, marked: &Marked) -> Option<Finding> {
    let own_ns = marked.own_ns?;
    // What only the warm-up does costs the rest of the run nothing.
    let once_ns = came_once_ns(marked);
    let later_ns = marked.effects.iter().filter_map(|effect| effect.own_ns).sum::<f64>() - once_ns;
    let warm_up_ns: f64 = evidence.warm_up.iter().map(|row| row.period_ns() as f64).sum();
    let share = own_ns / (evidence.wall_ns + warm_up_ns).max(1.0);
    let is_long = |effect: &&Effect| {
        let step_ns = evidence.expected_ns[effect.row] + evidence.usual_between_ns;
        effect.own_ns.is_some_and(|ns| ns > LONG * step_ns && ns != once_ns)
    };
    let long = marked.effects.iter().filter(is_long).count();
    if evidence.share(later_ns) < WORTH_REPORTING && long == 0 {
        return None;
    }
    let is_frequent = marked.effects.len() * OFTEN > evidence.rows.len();
    let listed: Vec<&Effect> = marked.effects.iter().filter(|effect| !is_frequent || is_long(effect)).collect();
    let places = listed.iter().take(PLACES_LISTED).map(|effect| effect.place(evidence, text)).collect();
    let finding = Finding::for_run(FindingKind::Stall, Confidence::High, Some(share), |facts| {
        let times = facts.count(Number::Times, marked.count());
        let times = if marked.count() == 1 { "once".to_owned() } else { format!("{times} times") };
        let (all, share) = (facts.time(Number::InAll, own_ns), facts.share(Number::OfTime, share));
        format!("\"{text}\": {times}, {all}, {share} of the wall time, {}", marked.describe_place(facts))
    })
    .with_places(places, marked.count())
    .with_claim(Claim::Steps(marked.effects.iter().map(|effect| effect.claim(evidence)).collect()))
    .with_evidence_from(|facts| {
        let each = facts.time(Number::Each, own_ns / marked.count() as f64);
        format!("{each} each on average, by the marks' durations")
    });
    Some(advised(finding, text, marked.outside))
}

/// The longest of them, if no other takes half as long and it is short; else 0.
fn came_once_ns(marked: &Marked) -> f64 {
    let mut lengths: Vec<f64> = marked.effects.iter().filter_map(|effect| effect.own_ns).collect();
    lengths.sort_by(|a, b| b.total_cmp(a));
    let next = lengths.get(1).copied().unwrap_or(0.0);
    lengths.first().copied().filter(|longest| *longest < LEAST_ONCE_NS && next < longest / 2.0).unwrap_or(0.0)
}
