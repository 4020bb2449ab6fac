//! Findings on streams with known causes: each cause is found, with its numbers, and nothing else is.

use gnntop_wire::{BatchShape, Event, Mark, NameKind, SignalKind, Step, StepId, ThreadUsage, TrackRole, Unit};

mod agreement;
mod leak;
mod machine;
mod rhythm;
mod slower;
mod steps;

use super::*;
use crate::ranks::Run;
use crate::store::Store;
use gnntop_fixtures::{MS, START_NS, StreamBuilder, TrainingRun, each_item};

/// One step of a made-up run.
#[derive(Clone)]
struct MadeUpStep {
    phases: Vec<(&'static str, u64)>,
    gap_ns: u64,
    batch: BatchShape,
    usage: ThreadUsage,
    epoch: u64,
    /// A mark at the end of the step's first phase.
    mark_inside: Option<&'static str>,
    /// A mark in the middle of the gap before the step.
    mark_before: Option<&'static str>,
    counter: Option<(&'static str, f64)>,
    is_traced: bool,
}

impl Default for MadeUpStep {
    fn default() -> Self {
        Self {
            phases: vec![("data wait", MS), ("forward", 10 * MS), ("backward", 20 * MS), ("optimizer", 3 * MS)],
            gap_ns: MS / 2,
            batch: BatchShape { graphs: Some(256), nodes: Some(3584), edges: Some(7168), seeds: None },
            usage: ThreadUsage { minor_faults: 3, voluntary_switches: 2, ..ThreadUsage::default() },
            epoch: 0,
            mark_inside: None,
            mark_before: None,
            counter: None,
            is_traced: false,
        }
    }
}

/// A signal that is read every 93 ms, from the time that has passed.
struct MadeUpSignal {
    name: &'static str,
    unit: Unit,
    kind: SignalKind,
    value: fn(f64) -> f64,
}

fn gauge(name: &'static str, unit: Unit, value: fn(f64) -> f64) -> MadeUpSignal {
    MadeUpSignal { name, unit, kind: SignalKind::Gauge, value }
}

fn counted(name: &'static str, unit: Unit, value: fn(f64) -> f64) -> MadeUpSignal {
    MadeUpSignal { name, unit, kind: SignalKind::Counter, value }
}

/// Noise of at most 3 % of `ns`, the same every time.
fn noisy(ns: u64, seed: u64) -> u64 {
    let mixed = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let share = (mixed >> 40) as f64 / (1u64 << 24) as f64;
    (ns as f64 * (0.97 + 0.06 * share)) as u64
}

/// The store after `steps` steps as planned, with these readings.
fn run(steps: u64, plan: impl Fn(u64) -> MadeUpStep, readings: &[MadeUpSignal]) -> Store {
    let mut stream = StreamBuilder::new("made up");
    let main = stream.track(TrackRole::Training, "main");
    let sensors = stream.track(TrackRole::Sensors, "sensors");
    let signals: Vec<_> = readings.iter().map(|r| (stream.signal(r.name, r.unit, r.kind), r)).collect();
    let (mut t_ns, mut next_reading_ns) = (START_NS, START_NS);
    for step in 1..=steps {
        let plan = plan(step);
        let gap_ns = noisy(plan.gap_ns, step * 31);
        if let Some(text) = plan.mark_before {
            stream.mark(main, text, t_ns + gap_ns / 2);
        }
        t_ns += gap_ns;
        let start_ns = t_ns;
        for (i, (text, ns)) in plan.phases.iter().enumerate() {
            let ns = noisy(*ns, step * 31 + i as u64 + 1);
            stream.phase(main, step, text, t_ns, t_ns + ns);
            t_ns += ns;
            if let Some(text) = plan.mark_inside.filter(|_| i == 0) {
                let name = stream.name(NameKind::Text, text);
                stream.event(main, Event::Mark(Mark { name, t_ns, ..Mark::default() }));
            }
        }
        if let Some((text, value)) = plan.counter {
            stream.counter(main, text, t_ns - 1, value);
        }
        let MadeUpStep { batch, usage, epoch, .. } = plan;
        let (step, end_ns, usage, is_traced) = (StepId(step), t_ns, Some(usage), plan.is_traced);
        stream.event(main, Event::Step(Step { step, epoch, start_ns, end_ns, batch, loss: None, usage, is_traced }));
        while next_reading_ns < t_ns {
            for (id, reading) in &signals {
                let value = (reading.value)((next_reading_ns - START_NS) as f64 / 1e9);
                stream.sample(sensors, *id, next_reading_ns, value as i64);
            }
            next_reading_ns += 93 * MS;
        }
    }
    store_of(stream)
}

fn store_of(mut stream: StreamBuilder) -> Store {
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

fn with_phase(text: &'static str, more_ns: u64) -> MadeUpStep {
    let mut plan = MadeUpStep::default();
    plan.phases.iter_mut().filter(|phase| phase.0 == text).for_each(|phase| phase.1 += more_ns);
    plan
}

fn steps_of(finding: &Finding) -> Vec<u64> {
    finding.places.iter().map(|place| place.ordinals.start + 1).collect()
}
