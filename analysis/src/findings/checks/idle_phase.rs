//! A phase that is to compute and waits: the process uses far less of a core than its phases take time, without a GPU that would
//! compute meanwhile. Something in the phase sleeps, asks a network or a disk, or waits for a lock. Or the stacks of a phase are in
//! calls that sleep or wait for another program, whatever else computes.

use gnntop_wire::Quantity;
use gnntop_wire::phase::{ALL_REDUCE, DATA_WAIT, RECEIVE, SEND};

use super::contention;
use crate::findings::claim::Claim;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::hardware;
use crate::findings::number::Number;
use crate::findings::sampled_places::SampledPlaces;
use crate::store::GAP;

/// Reported from this share of the time in which it neither computes nor waits where it should.
const WORTH_REPORTING: f64 = 0.2;
/// Phases and the gap in which a process may wait.
const WAITING: [&str; 7] = [DATA_WAIT, ALL_REDUCE, RECEIVE, SEND, GAP, "checkpoint", "compile"];
/// Stacks that say how much of a phase waits.
const ENOUGH: u64 = 20;
/// Reported from this share of the time in such calls.
const IN_CALLS: f64 = 0.1;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    match in_calls(evidence) {
        Some(finding) => finding.into(),
        None => by_cpu_time(evidence),
    }
}

/// The phase that waits longest in such calls, by the share of its stacks that are in them.
fn in_calls(evidence: &StepEvidence<'_>) -> Option<Finding> {
    let waits =
        evidence.store.phases().iter().filter(|phase| !WAITING.contains(&phase.text.as_str())).filter_map(|phase| {
            let places = SampledPlaces::in_phase(evidence.store, &phase.text);
            let of_phase = places.idle as f64 / places.all.max(1) as f64;
            let share = of_phase * evidence.share(evidence.phase_total_ns(phase.slot));
            (places.idle >= ENOUGH && share >= IN_CALLS).then_some((phase, places, share))
        });
    let (phase, places, share) = waits.max_by(|a, b| a.2.total_cmp(&b.2))?;
    let text = phase.text.as_str();
    let finding = Finding::for_run(FindingKind::IdlePhase, Confidence::High, Some(share), |facts| {
        let share = facts.share(Number::OfTime, share);
        format!("{text} waits {share} of the time in calls that sleep or wait for another program")
    });
    let finding = finding.with_evidence_lines(|facts| places.lines(facts, text)).with_advice(ADVICE);
    Some(finding.with_claim(Claim::Phases(vec![phase.slot])))
}

fn by_cpu_time(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let Some(span) = evidence.span_ns() else { return CheckOutcome::Nothing };
    if !evidence.store.hardware().gpus().is_empty() || evidence.store.device().is_some() {
        return CheckOutcome::NotEnough("the program may wait for a GPU".to_owned());
    }
    let Some(cpu_ns_per_s) = hardware::rate_per_s(evidence.store, Quantity::ProcessCpuTime, &span) else {
        return CheckOutcome::NotEnough("the CPU time of the process is not recorded".to_owned());
    };
    let phases = evidence.store.phases().iter();
    let (waiting, computing): (Vec<_>, Vec<_>) = phases
        .map(|phase| (phase, evidence.share(evidence.phase_total_ns(phase.slot))))
        .partition(|(phase, _)| WAITING.contains(&phase.text.as_str()));
    let waits: f64 = waiting.iter().map(|(_, share)| share).sum();
    let stopped = contention::throttled_share(evidence, &span).unwrap_or(0.0);
    let idle = 1.0 - cpu_ns_per_s / 1e9 - waits - contention::waits(evidence) - stopped;
    let longest = computing.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let longest = longest.filter(|(_, share)| idle >= WORTH_REPORTING && *share >= WORTH_REPORTING);
    let Some((phase, share)) = longest else { return CheckOutcome::Nothing };
    let (slot, phase) = (phase.slot, phase.text.as_str());
    let places = SampledPlaces::in_phase(evidence.store, phase);
    if places.all == 0 {
        let stacks = match evidence.store.session().uses_python() {
            true => "no stacks are sampled at a rate (--stacks 20)",
            false => "where it waits is not recorded",
        };
        return CheckOutcome::NotEnough(format!("{phase} uses little CPU time, and {stacks}"));
    }
    finding(&places, (phase, share), (idle, cpu_ns_per_s / 1e9)).with_claim(Claim::Phases(vec![slot])).into()
}

fn finding(places: &SampledPlaces, (phase, takes): (&str, f64), (idle, cores): (f64, f64)) -> Finding {
    let cost = idle.min(takes);
    Finding::for_run(FindingKind::IdlePhase, Confidence::Medium, Some(cost), |facts| {
        let takes = facts.about(phase, |facts| facts.share(Number::OfTime, takes));
        let cores = facts.number(Number::Cores, cores);
        format!("{phase} takes {takes} of the time, but the process uses only {cores:.2} cores: it waits there")
    })
    .with_evidence_lines(|facts| places.lines(facts, phase))
    .with_advice(ADVICE)
}

const ADVICE: &str =
    "see what that line waits for: a request, a file, a lock, a sleep or a device that is not measured";

#[cfg(test)]
mod tests {
    use gnntop_fixtures::planned::{StepPlan, counted};
    use gnntop_fixtures::{MS, START_NS};
    use gnntop_wire::{Definition, Event, Fact, Framework, StackSample, TrackRole, Unit};

    use super::*;
    use crate::findings::tests::{store_of, stream};
    use crate::findings::{Findings, all_findings};

    /// A run that uses this many cores, whose stacks are sampled, or not.
    fn judged(cores: f64, plan: fn(u64) -> StepPlan, has_stacks: bool) -> Findings {
        let readings = [counted("process.cpu_time", Unit::Nanoseconds, move |t| t * cores * 1e9)];
        let mut stream = stream(300, plan, &readings);
        stream.define(Definition::Fact(Fact::Framework(Framework::from("PyTorch 2.9.1"))));
        if has_stacks {
            let track = stream.track(TrackRole::Samples, "stacks of train, sampled");
            let path = stream.path(&["backward", "train (train.py:9)", "ask (net.py:3)"]);
            stream.event(track, Event::StackSample(StackSample { path, t_ns: START_NS, count: 40, is_repeat: false }));
        }
        all_findings(&store_of(stream))
    }

    fn found(cores: f64, plan: fn(u64) -> StepPlan) -> Option<Finding> {
        judged(cores, plan, true).found.into_iter().find(|it| it.kind == FindingKind::IdlePhase)
    }

    #[test]
    fn phase_that_waits_is_named_with_its_line_and_what_it_may_cost() {
        let it = found(0.3, |_| StepPlan::default()).unwrap();
        assert!(
            it.summary.starts_with("backward takes 58 % of the time, but the process uses only 0.30 cores"),
            "{it:#?}"
        );
        assert!((it.share.unwrap() - 0.58).abs() < 0.02 && it.confidence == Confidence::Medium, "{it:#?}");
        assert!(it.evidence[0].starts_with("40 stacks sampled in backward: in ask (net.py:3)"), "{it:#?}");
    }

    #[test]
    fn phase_whose_stacks_wait_is_named_although_other_threads_compute() {
        let in_forward = |call: &str, count| {
            let readings = [counted("process.cpu_time", Unit::Nanoseconds, |t| t * 1.3e9)];
            let mut stream = stream(300, |_| StepPlan::default().with_phase("forward", 40 * MS), &readings);
            let track = stream.track(TrackRole::Samples, "stacks of train, sampled");
            for (frames, count) in
                [(&["forward", "main (a.py:9)", call][..], count), (&["forward", "main (a.py:9)"], 50)]
            {
                let path = stream.path(frames);
                stream.event(track, Event::StackSample(StackSample { path, t_ns: START_NS, count, is_repeat: false }));
            }
            all_findings(&store_of(stream)).found.into_iter().find(|it| it.kind == FindingKind::IdlePhase)
        };
        let it = in_forward("recv of a socket (<system call>)", 60).unwrap();
        assert!(it.summary.starts_with("forward waits ") && it.confidence == Confidence::High, "{it:#?}");
        assert!(it.evidence[0].contains("waiting in recv of a socket"), "{it:#?}");
        assert_eq!(in_forward("futex (<system call>)", 60), None, "a thread of its own may compute meanwhile");
        assert_eq!(in_forward("recv of a socket (<system call>)", 9), None, "few");
    }

    #[test]
    fn process_that_computes_or_waits_for_data_is_none() {
        assert_eq!(found(0.97, |_| StepPlan::default()), None);
        assert_eq!(found(0.45, |_| StepPlan::default().with_phase("data wait", 34 * MS)), None);
    }

    #[test]
    fn without_a_line_nothing_is_concluded() {
        let judged = judged(0.3, |_| StepPlan::default(), false);
        assert!(judged.found.iter().all(|it| it.kind != FindingKind::IdlePhase), "{judged:#?}");
        let reason = judged.not_enough.iter().find(|it| it.kind == FindingKind::IdlePhase);
        assert!(reason.is_some_and(|it| it.reason.contains("--stacks 20")), "{judged:#?}");
    }
}
