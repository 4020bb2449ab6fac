//! A run that ended and was started again, and what that cost.

use crate::figures::{count, duration, utc};
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, Occurrence, Severity};
use crate::findings::number::Number;
use crate::findings::stated_numbers::StatedNumbers;
use crate::store::{Outage, Restarts, Store};

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let store = evidence.store;
    store.restarts().map_or(CheckOutcome::Nothing, |restarts| finding(store, &restarts).into())
}

fn finding(store: &Store, restarts: &Restarts) -> Finding {
    let places = restarts.outages.iter().map(|outage| place(store, outage)).collect();
    let finding =
        Finding::for_run(FindingKind::Restarts, Confidence::High, None, |facts| summary(facts, store, restarts));
    let mut finding = finding.with_places(places, restarts.count);
    let of_all = restarts.lost_ns as f64 / store.elapsed_ns().max(1) as f64;
    finding.severity = Severity::from_share(of_all);
    let repeated_ns: u64 = restarts.outages.iter().map(|outage| outage.repeated_ns).sum();
    if repeated_ns > 0 {
        finding = finding.with_evidence_from(|facts| {
            let repeated = facts.time(Number::RepeatedTime, repeated_ns as f64);
            format!("{repeated} of the lost time went into steps done twice")
        });
    }
    match restarts.repeated_steps {
        None => finding
            .with_advice("call gnntop.resumed(steps) where the program resumes, so that steps done twice are counted"),
        Some(0) => finding,
        Some(_) => finding.with_advice("write checkpoints more often"),
    }
}

fn summary(facts: &mut StatedNumbers, store: &Store, restarts: &Restarts) -> String {
    let times = facts.count(Number::Times, restarts.count);
    let times = if restarts.count == 1 { "once".to_owned() } else { format!("{times} times") };
    let lost = facts.time(Number::Lost, restarts.lost_ns as f64);
    let repeated = restarts.repeated_steps.map(|steps| facts.count(Number::RepeatedSteps, steps));
    let twice = match repeated {
        Some(steps) if steps.value == 1.0 => "1 step done twice".to_owned(),
        Some(steps) => format!("{steps} steps done twice"),
        None => "steps done twice unknown".to_owned(),
    };
    let longest = match restarts.longest() {
        Some(outage) if restarts.outages.len() > 1 => {
            let longest = facts.time(Number::Longest, outage.lost_ns() as f64);
            format!("; longest outage {longest}{}", since(store, outage))
        }
        Some(outage) => since(store, outage),
        None => String::new(),
    };
    format!("restarted {times}, {lost} lost, {twice}{longest}")
}

fn place(store: &Store, outage: &Outage) -> Occurrence {
    let until = if outage.is_over { "without steps" } else { "without steps so far" };
    let twice = match outage.repeated_steps {
        Some(0) => String::new(),
        Some(steps) => format!(", then {} steps done again", count(steps)),
        None => ", steps done twice unknown".to_owned(),
    };
    let ns = outage.to_ns.saturating_sub(outage.from_ns);
    Occurrence {
        ordinals: outage.ordinal..outage.ordinal + 1,
        start_ns: outage.from_ns,
        end_ns: outage.to_ns,
        sentence: format!("{} {until}{}{twice}", duration(ns), since(store, outage)),
    }
}

/// When an outage began, if the wall clock is known.
fn since(store: &Store, outage: &Outage) -> String {
    store.session().wall_ns(outage.from_ns).map_or_else(String::new, |ns| format!(", from {}", utc(ns)))
}

#[cfg(test)]
mod tests {
    use gnntop_fixtures::{ParallelRun, each_item};
    use gnntop_wire::{Definition, Fact, put_definitions};

    use super::*;
    use crate::findings::all_findings;
    use crate::ranks::Run;

    fn run_of(streams: &[&Vec<u8>]) -> Run {
        let mut run = Run::default();
        streams.iter().for_each(|stream| each_item(stream, |item| run.apply(item)));
        run
    }

    #[test]
    fn restart_cost_is_a_finding() {
        let [first, mut again] =
            [ParallelRun::restarted(0, 0), ParallelRun::restarted(1, 60)].map(|start| start.session(0));
        put_definitions(&mut again, [&Definition::Fact(Fact::Resumed { steps: 50 })]);
        let found = all_findings(run_of(&[&first, &again]).store());
        let restarts = found.found.iter().find(|finding| finding.kind == FindingKind::Restarts).unwrap();
        assert!(
            restarts.summary.starts_with("restarted once, 58.2 s lost, 10 steps done twice, from 20"),
            "{restarts:?}"
        );
        assert_eq!((restarts.fact(Number::RepeatedSteps), restarts.fact(Number::Times)), (Some(10.0), Some(1.0)));
        assert_eq!(restarts.places.len(), 1);
        let symptoms = [FindingKind::Gap, FindingKind::Spike, FindingKind::Bookkeeping];
        assert!(found.found.iter().all(|finding| !symptoms.contains(&finding.kind)), "{found:?}");
        let once = all_findings(run_of(&[&first]).store());
        assert!(once.found.iter().all(|finding| finding.kind != FindingKind::Restarts));
    }
}
