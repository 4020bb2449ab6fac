//! Recompilation: after the warm-up, torch.compile compiles functions again, as what it has compiled does not fit what comes, or CUDA
//! graphs are recorded again.

use std::collections::BTreeMap;

use gnntop_wire::{NameId, Reported};

use crate::figures::duration;
use crate::findings::claim::{Claim, StepCost};
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, PLACES_LISTED};
use crate::findings::number::Number;
use crate::findings::stated_numbers::StatedNumbers;
use crate::store::{LaneBox, Track};

/// Reported from this share of the wall time.
const WORTH_REPORTING: f64 = 0.01;
/// Functions, with the reason, that are named.
const NAMED: usize = 3;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let again = compiled_again(evidence);
    let ns: f64 = again.iter().map(|(_, one)| length(one)).sum();
    let share = evidence.share(ns);
    if share < WORTH_REPORTING {
        return CheckOutcome::Nothing;
    }
    let are_graphs = again.iter().all(|(_, one)| text(evidence, one.name) == Reported::CUDA_GRAPH);
    let place = |(row, one): &(usize, LaneBox)| {
        let step = evidence.rows[*row].step().0;
        evidence.place(*row, format!("{} in step {step}, {}", text(evidence, one.name), duration(length(one) as u64)))
    };
    let costs =
        again.iter().map(|(row, one)| StepCost { row: *row, is_inside: true, ns: length(one), without_ns: None });
    Finding::for_run(FindingKind::Recompilation, Confidence::High, Some(share), |facts| {
        let times = facts.count(Number::Times, again.len() as u64);
        let times = if again.len() == 1 { "once".to_owned() } else { format!("{times} times") };
        let (all, share) = (facts.time(Number::InAll, ns), facts.share(Number::OfTime, share));
        let what = if are_graphs { "CUDA graphs are recorded" } else { "torch.compile compiles" };
        format!("{what} again after the warm-up: {times}, {all}, {share} of the time")
    })
    .with_places(again.iter().take(PLACES_LISTED).map(place).collect(), again.len() as u64)
    .with_claim(Claim::Steps(costs.collect()))
    .with_evidence_lines(|facts| by_function(evidence, &again, facts))
    .with_advice(if are_graphs {
        "record one graph for each of a few sizes, pad batches to these, and replay it: a new size, or new memory, needs a new graph"
    } else {
        "where sizes change, compile with dynamic=True or pad batches to a few sizes; else keep what the reason names the same"
    })
    .into()
}

/// What was compiled again in the steps looked at, oldest first, each with its row.
pub(super) fn compiled_again(evidence: &StepEvidence<'_>) -> Vec<(usize, LaneBox)> {
    let Some(lane) = evidence.store.training_track().and_then(Track::lane) else { return Vec::new() };
    let Some(span) = evidence.span_ns() else { return Vec::new() };
    let mut again = Vec::new();
    lane.each_box(span, |one, _| {
        if evidence.store.reported(one.name) == Some(Reported::Recompilation) {
            again.extend(evidence.row_at(one.end_ns).map(|row| (row, *one)));
        }
    });
    again.reverse();
    again
}

fn length(one: &LaneBox) -> f64 {
    one.end_ns.saturating_sub(one.start_ns) as f64
}

/// Which function, and why.
fn text<'a>(evidence: &StepEvidence<'a>, name: NameId) -> &'a str {
    let text = evidence.store.name(name);
    text.strip_prefix(Reported::Recompilation.text()).unwrap_or(text)
}

/// A line for each function and reason, those that take longest first.
fn by_function(evidence: &StepEvidence<'_>, again: &[(usize, LaneBox)], facts: &mut StatedNumbers) -> Vec<String> {
    let mut sums: BTreeMap<NameId, (u64, f64)> = BTreeMap::new();
    for (_, one) in again {
        let (times, ns) = sums.entry(one.name).or_default();
        (*times, *ns) = (*times + 1, *ns + length(one));
    }
    let mut sums: Vec<(NameId, (u64, f64))> = sums.into_iter().collect();
    sums.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
    let line = |(name, (times, ns)): &(NameId, (u64, f64))| {
        let text = text(evidence, *name);
        facts.about(text, |facts| {
            let (times, all) = (facts.count(Number::Times, *times), facts.time(Number::InAll, *ns));
            format!("{times} x, {all}: {text}")
        })
    };
    sums.iter().take(NAMED).map(line).collect()
}

#[cfg(test)]
mod tests {
    use gnntop_fixtures::{MS, START_NS, StreamBuilder, each_item};
    use gnntop_wire::{Event, Step, StepId, TrackRole};

    use super::*;
    use crate::findings::all_findings;
    use crate::store::Store;

    /// 200 steps of 30 ms, some of which compile for 40 ms within forward.
    fn findings(span: &str, compiles: fn(u64) -> bool) -> Vec<Finding> {
        let mut stream = StreamBuilder::new("compiled");
        let main = stream.track(TrackRole::Training, "train");
        let mut t_ns = START_NS;
        for step in 1..=200 {
            let start_ns = t_ns;
            stream.phase(main, step, "forward", t_ns, t_ns + 5 * MS);
            t_ns += 5 * MS;
            if compiles(step) {
                stream.span(main, step, span, t_ns, t_ns + 40 * MS);
                stream.phase(main, step, "compile", t_ns, t_ns + 40 * MS);
                t_ns += 40 * MS;
            }
            stream.phase(main, step, "forward", t_ns, t_ns + 5 * MS);
            stream.phase(main, step, "backward", t_ns + 5 * MS, t_ns + 25 * MS);
            t_ns += 25 * MS;
            stream.event(main, Event::Step(Step { step: StepId(step), start_ns, end_ns: t_ns, ..Step::default() }));
        }
        stream.end(t_ns);
        let mut store = Store::new();
        each_item(&stream.bytes(), |item| store.apply(item));
        all_findings(&store).found
    }

    #[test]
    fn recompilation_is_found_with_function_and_reason() {
        let span = "compile again: forward (model.py:12): tensor 'x' size mismatch at index 0. expected 32, actual 17";
        let found = findings(span, |step| step == 1 || step >= 40 && step.is_multiple_of(20));
        let it = found.iter().find(|finding| finding.kind == FindingKind::Recompilation).unwrap();
        assert_eq!((it.fact(Number::Times), it.fact(Number::InAll), it.count), (Some(9.0), Some(360e6), 9), "{it:#?}");
        assert!(it.evidence[0].contains("9 x, 360 ms: forward (model.py:12): tensor 'x' size"), "{it:#?}");
        assert!((it.share.unwrap() - 0.057).abs() < 0.002 && it.places[0].ordinals.start == 39, "{it:#?}");
        let spikes = found.iter().filter(|finding| finding.kind == FindingKind::Spike && finding.share > Some(0.01));
        assert_eq!(spikes.count(), 0, "its time is claimed");
    }

    #[test]
    fn graphs_that_are_recorded_again_are_named() {
        let found = findings("compile again: CUDA graph", |step| step.is_multiple_of(20));
        let it = found.iter().find(|finding| finding.kind == FindingKind::Recompilation).unwrap();
        assert!(it.summary.starts_with("CUDA graphs are recorded again after the warm-up: 10 times"), "{it:#?}");
    }

    #[test]
    fn first_compilation_and_one_in_the_warm_up_are_none() {
        let kinds = |span: &str, compiles: fn(u64) -> bool| {
            findings(span, compiles).iter().any(|finding| finding.kind == FindingKind::Recompilation)
        };
        assert!(!kinds("compile validate (model.py:30)", |step| step.is_multiple_of(20)));
        assert!(!kinds("compile again: forward (model.py:12)", |step| step <= 2));
        assert!(!kinds("compile again: forward (model.py:12)", |step| step == 100), "below 1 %");
    }
}
