//! Another thread of the program holds the interpreter lock (Python's GIL) while the training thread wants it, as the stacks show
//! that are sampled all the time.

use gnntop_wire::Sampling;

use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::number::Number;
use crate::findings::stated_numbers::StatedNumbers;

/// Reported from this share of the stacks...
const WORTH_REPORTING: f64 = 0.05;
/// ...and from this many of them.
const ENOUGH: u64 = 10;
/// Places that are named.
const NAMED: usize = 3;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let sampled = evidence.store.sampled();
    let (held, all) = (sampled.held(), sampled.total());
    if all == 0 && evidence.store.session().uses_python() {
        return CheckOutcome::NotEnough("no stacks are sampled at a rate (--stacks 20)".to_owned());
    }
    let share = held as f64 / all.max(1) as f64;
    if held < ENOUGH || share < WORTH_REPORTING {
        return CheckOutcome::Nothing;
    }
    Finding::for_run(FindingKind::Interpreter, Confidence::High, Some(share), |facts| {
        let share = facts.share(Number::OfTime, share);
        format!("the training thread waits for Python's interpreter lock {share} of the time: another thread holds it")
    })
    .with_evidence_lines(|facts| places(evidence, facts))
    .with_evidence_from(|facts| {
        let (held, all) = (facts.count(Number::Times, held), facts.count(Number::Stacks, all));
        format!("in {held} of {all} sampled stacks")
    })
    .with_advice("let the other thread do less, or in pieces; or move its work into a process of its own")
    .into()
}

/// Where the other threads were, most frequent first.
fn places(evidence: &StepEvidence<'_>, facts: &mut StatedNumbers) -> Vec<String> {
    let mut places: Vec<(&str, u64)> = Vec::new();
    for (frames, count) in evidence.store.sampled().stacks() {
        let innermost = frames.first().map_or("", |name| evidence.store.name(*name));
        let Some(place) = innermost.strip_prefix(Sampling::HELD_IN) else { continue };
        match places.iter_mut().find(|(known, _)| *known == place) {
            Some((_, all)) => *all += count,
            None => places.push((place, count)),
        }
    }
    places.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let line = |(place, count): &(&str, u64)| {
        let stacks = facts.about(place, |facts| facts.count(Number::Stacks, *count));
        format!("{stacks} times it was in {place}")
    };
    places.iter().take(NAMED).map(line).collect()
}

#[cfg(test)]
mod tests {
    use gnntop_fixtures::START_NS;
    use gnntop_fixtures::planned::StepPlan;
    use gnntop_wire::{Definition, Event, Fact, Framework, NameKind, StackSample, TrackRole};

    use super::*;
    use crate::findings::tests::{store_of, stream};
    use crate::findings::{all_findings, judge_newest};
    use crate::store::Store;

    /// A run of which these of 100 sampled stacks wait.
    fn store(held: u64) -> Store {
        let mut stream = stream(100, |_| StepPlan::default(), &[]);
        let track = stream.track(TrackRole::Samples, "stacks of train, sampled");
        let frames = ["forward", "train (train.py:9)", "GIL held in refresh (monitor.py:12)"];
        let paths = [(stream.path(&frames[..2]), 100 - held), (stream.path(&frames), held)];
        let figures = [(Sampling::Taken, 100), (Sampling::Held, held)];
        let figures = figures.map(|(figure, count)| (stream.name(NameKind::Sampling(figure), figure.text()), count));
        for (path, count) in paths.into_iter().chain(figures) {
            stream.event(track, Event::StackSample(StackSample { path, t_ns: START_NS, count, is_repeat: false }));
        }
        store_of(stream)
    }

    fn found(held: u64) -> Option<Finding> {
        all_findings(&store(held)).found.into_iter().find(|it| it.kind == FindingKind::Interpreter)
    }

    #[test]
    fn interpreter_that_is_held_most_of_the_time_leads_the_verdict() {
        let verdict = judge_newest(&store(80)).to_string();
        assert!(verdict.starts_with("waits for the interpreter (80 %); backward-bound"), "{verdict}");
    }

    #[test]
    fn thread_that_holds_the_interpreter_is_named_with_its_line() {
        let it = found(30).unwrap();
        assert_eq!(
            (it.share, it.evidence[0].as_str()),
            (Some(0.3), "30 times it was in refresh (monitor.py:12)"),
            "{it:#?}"
        );
    }

    #[test]
    fn few_waits_for_the_interpreter_are_none() {
        assert_eq!((found(0), found(4)), (None, None));
    }

    #[test]
    fn only_a_python_program_is_asked_for_stacks() {
        let is_asked = |framework: &str| {
            let mut stream = stream(100, |_| StepPlan::default(), &[]);
            stream.define(Definition::Fact(Fact::Framework(Framework::from(framework))));
            let found = all_findings(&store_of(stream));
            found.not_enough.iter().any(|it| it.kind == FindingKind::Interpreter)
        };
        assert_eq!(["PyTorch 2.9.1", "Python 3.14.0", "candle 0.9"].map(is_asked), [true, true, false]);
    }
}
