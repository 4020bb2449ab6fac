//! Findings on streams with known causes: each cause is found, with its numbers, and nothing else is.

use gnntop_wire::{BatchShape, NameKind, SignalKind, TrackRole, Unit};

mod agreement;
mod input;
mod leak;
mod machine;
mod program;
mod rhythm;
mod slower;
mod steps;
mod storage;

use super::*;
use crate::ranks::Run;
use crate::store::Store;
use gnntop_fixtures::planned::{Reading, StepPlan, counted, gauge, planned_run};
use gnntop_fixtures::{MS, START_NS, StreamBuilder, TrainingRun, each_item};

/// Noise of at most 3 % of `ns`, the same every time.
fn noisy(ns: u64, seed: u64) -> u64 {
    gnntop_fixtures::uneven::noisy(ns, 0.03, seed)
}

/// The stream of `steps` steps as planned, with these readings every 93 ms.
pub(super) fn stream(steps: u64, plan: impl Fn(u64) -> StepPlan, readings: &[Reading]) -> StreamBuilder {
    planned_run((steps, 93 * MS, readings), &mut (), |(), ns, seed| noisy(ns, seed), |step, ()| plan(step))
}

/// The store after them.
pub(super) fn run(steps: u64, plan: impl Fn(u64) -> StepPlan, readings: &[Reading]) -> Store {
    store_of(stream(steps, plan, readings))
}

pub(super) fn store_of(mut stream: StreamBuilder) -> Store {
    stream.flush();
    let mut store = Store::new();
    gnntop_fixtures::each_item(&stream.bytes(), |item| store.apply(item));
    store
}

/// The only finding there is.
#[track_caller]
fn only(store: &Store) -> Finding {
    let mut findings = all_findings(store);
    assert_eq!(findings.found.len(), 1, "{:#?}", findings.found);
    findings.found.remove(0)
}

#[track_caller]
fn assert_contains(finding: &Finding, kind: FindingKind, words: &[&str]) {
    assert_eq!(finding.kind, kind, "{finding:#?}");
    let text = format!("{}\n{}\n{}", finding.summary, finding.evidence.join("\n"), finding.advice.join("\n"));
    for word in words {
        assert!(text.contains(word), "no {word:?} in\n{text}");
    }
}

/// The numbers of a finding, each within 3 % of what is expected: times of made-up steps are as noisy.
#[track_caller]
fn assert_facts(finding: &Finding, kind: FindingKind, facts: &[(Number, f64)]) {
    assert_eq!(finding.kind, kind, "{finding:#?}");
    for (name, expected) in facts {
        let value = finding.fact(*name).unwrap_or_else(|| panic!("no {name:?} in {:#?}", finding.facts));
        assert!((value - expected).abs() <= 0.03 * expected.abs(), "{name:?} is {value} and not {expected}");
    }
}

/// The same of numbers that are of something: a phase, a span, a process.
#[track_caller]
fn assert_states_of(finding: &Finding, of: &str, facts: &[(Number, f64)]) {
    let facts_of = finding.facts.iter().filter(|fact| fact.of.as_deref() == Some(of)).cloned().collect();
    assert_facts(&Finding { facts: facts_of, ..finding.clone() }, finding.kind, facts);
}

fn with_phase(text: &str, more_ns: u64) -> StepPlan {
    StepPlan::default().with_phase(text, more_ns)
}

fn steps_of(finding: &Finding) -> Vec<u64> {
    finding.places.iter().map(|place| place.ordinals.start + 1).collect()
}
