//! The speed-up of one run over another, what its ranks, stages and split can give, and what a difference means, unless
//! factors were changed together.

use serde::Serialize;

use super::configuration::Configuration;
use crate::figures::joined;
use crate::findings::finding::{Confidence, Finding, FindingKind, Severity};
use crate::findings::number::Number;
use crate::findings::stated_numbers::{StatedNumber, StatedNumbers};

/// A speed-up is more than the ideal from the first ratio, and clearly less below the second.
const ABOVE: f64 = 1.03;
const BELOW: f64 = 0.8;
/// The slowest stage is named if it takes this many times its even share.
const UNEVEN: f64 = 1.25;

/// What two runs show together: the second's speed-up over the first, and its limits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scaling {
    /// Ratio of the work that the second does in the same time; `None` if the work is unknown.
    pub speed_up: Option<f64>,
    /// Its maximum, by stages, micro-batches and copies, with even stages.
    pub ideal: f64,
    /// The same with the actual blocks of each stage, if both runs report them.
    pub as_split: Option<f64>,
    /// Whether one of them is the control, and what is unknown.
    pub notes: Vec<String>,
    /// Findings about it.
    pub findings: Vec<Finding>,
}

/// The second run's scaling over the first; `None` if neither has several ranks.
pub fn scaling(first: &Configuration, second: &Configuration) -> Option<Scaling> {
    if first.stages * first.copies == 1 && second.stages * second.copies == 1 {
        return None;
    }
    let speed_up = speed_up(first, second);
    let ideal = second.ideal() / first.ideal().max(f64::MIN_POSITIVE);
    let mut findings = Vec::new();
    if let Some(speed_up) = speed_up {
        findings.extend(above_ideal(second, first, speed_up, ideal));
        findings.extend(match first.stages > second.stages {
            true => slow_stage(first, second, 1.0 / speed_up, 1.0 / ideal),
            false => slow_stage(second, first, speed_up, ideal),
        });
    }
    findings.extend(confounded(&[first.clone(), second.clone()]));
    let as_split = as_split(first, second);
    Some(Scaling { speed_up, ideal, as_split, notes: notes(first, second, speed_up), findings })
}

fn speed_up(first: &Configuration, second: &Configuration) -> Option<f64> {
    let times = first.step_ns / second.step_ns.max(1.0);
    match (first.work, second.work) {
        (Some(before), Some(now)) if before > 0.0 => Some(times * now / before),
        _ => (first.copies == second.copies).then_some(times),
    }
}

/// What the splits of both can give: all wait for a stage with more blocks than the others.
fn as_split(first: &Configuration, second: &Configuration) -> Option<f64> {
    let copies = second.copies as f64 / first.copies as f64;
    Some(copies * first.blocks_in_turn()? / second.blocks_in_turn()?)
}

/// Whether one of the two is the control, and what is unknown.
fn notes(first: &Configuration, second: &Configuration, speed_up: Option<f64>) -> Vec<String> {
    let mut notes = Vec::new();
    for (pipeline, other) in [(first, second), (second, first)].into_iter().filter(|(it, _)| it.stages > 1) {
        match pipeline.micro_batches {
            None => notes.push(format!(
                "the micro-batches of {} are not recorded, so its ideal ignores filling and draining (import csv: --fact micro-batches=N)",
                pipeline.name
            )),
            Some(count) if other.stages == 1 && other.micro_batches == Some(count) => {
                notes.push(format!("{} is the control: one stage with the same {count} micro-batches", other.name));
            }
            Some(count) if other.stages == 1 => notes.push(format!(
                "the control is missing: one stage with the same {count} micro-batches would show what the pipeline gains"
            )),
            Some(_) => (),
        }
    }
    if speed_up.is_none() {
        notes.push(
            "the speed-up is unknown: batch sizes are not recorded and the copies differ (import csv: --batch-size N)"
                .to_owned(),
        );
    }
    let totals = [first, second].map(|run| run.split.as_ref().map(|split| split.iter().sum::<usize>()));
    if let [Some(a), Some(b)] = totals
        && a != b
    {
        let (a_name, b_name) = (&first.name, &second.name);
        notes.push(format!("{a_name} computes {a} blocks and {b_name} {b}: they are not the same model"));
    }
    notes
}

fn above_ideal(now: &Configuration, before: &Configuration, speed_up: f64, ideal: f64) -> Option<Finding> {
    let fewer_in_the_same = now.stages > 1 && now.stages == before.stages && now.copies == before.copies;
    if speed_up <= ABOVE * ideal.max(1.0) || ideal <= 1.0 && !fewer_in_the_same {
        return None;
    }
    let finding = Finding::for_run(FindingKind::AboveIdeal, Confidence::High, None, |facts| {
        let (speed_up, ideal) = (facts.number(Number::SpeedUp, speed_up), facts.number(Number::Ideal, ideal));
        let shape = now.shape();
        format!(
            "a speed-up of {speed_up:.2} is more than the {ideal:.2} that {shape} can give: \
                something else changed as well"
        )
    })
    .with_evidence_from(|facts| {
        let (was, is) = (step(facts, before), step(facts, now));
        format!("a step takes {was} in {} and {is} in {}", before.name, now.name)
    });
    let has_control = before.micro_batches.is_some() && before.micro_batches == now.micro_batches;
    Some(if now.stages > 1 && !has_control {
        finding
            .with_evidence("smaller batches may each run faster, whatever the number of stages")
            .with_advice("the control is missing: measure one rank with the same micro-batches")
    } else {
        finding.with_advice("look for what else differs: batch size, threads, caches that now hold the data")
    })
}

fn step(facts: &mut StatedNumbers, of: &Configuration) -> StatedNumber {
    facts.about(&of.name, |facts| facts.time(Number::Step, of.step_ns))
}

/// The stage that the others wait for: by the blocks of each stage if they are known, else by timing alone.
fn slow_stage(now: &Configuration, before: &Configuration, speed_up: f64, ideal: f64) -> Option<Finding> {
    if now.stages < 2 || now.stages <= before.stages || speed_up >= BELOW * ideal {
        return None;
    }
    by_split(now).or_else(|| by_timing(now, before, speed_up, ideal))
}

fn by_split(now: &Configuration) -> Option<Finding> {
    let split = now.split.as_ref()?;
    let (all, even) = (split.iter().sum::<usize>(), split.iter().sum::<usize>().div_ceil(split.len().max(1)));
    let (stage, largest) = split.iter().enumerate().max_by_key(|(stage, blocks)| (**blocks, usize::MAX - stage))?;
    if *largest as f64 <= UNEVEN * even as f64 {
        return None;
    }
    let evenly = Configuration { split: Some(vec![even; split.len()]), ..now.clone() };
    let times = evenly.blocks_in_turn().zip(now.blocks_in_turn()).map(|(even, as_split)| even / as_split);
    let slashed = split.iter().map(usize::to_string).collect::<Vec<String>>().join("/");
    let finding = Finding::for_run(FindingKind::Imbalance, Confidence::High, times.map(|times| 1.0 - times), |facts| {
        facts.count(Number::Stage, stage as u64);
        let (largest, all) = (facts.count(Number::Blocks, *largest as u64), facts.count(Number::OfBlocks, all as u64));
        format!("stage {stage} has {largest} of {all} blocks, the others wait for it: {slashed} in {}", now.name)
    })
    .with_evidence_lines(|facts| {
        let times = facts.number(Number::Ratio, times?);
        Some(format!("by the recurrence, a step takes {times:.2} of the time with an even split of equal blocks"))
    });
    Some(finding.with_advice(format!("give each stage {even} blocks")))
}

/// What timing alone says about the slowest stage: for a pipeline of one slow stage and otherwise even ones,
/// `T = W / M + (M - 1) c` by the recurrence, where W is the time of all work in sequence and c the slowest stage's
/// time for a micro-batch. W follows from the other run, whose stages are assumed to be even.
fn by_timing(now: &Configuration, before: &Configuration, speed_up: f64, ideal: f64) -> Option<Finding> {
    let micro_batches = now.micro_batches.filter(|count| *count > 1)? as f64;
    let work_ns = now.step_ns * speed_up * before.ideal() / now.copies as f64;
    let slowest_ns = (now.step_ns - work_ns / micro_batches) / (micro_batches - 1.0);
    let times = slowest_ns * now.stages as f64 * micro_batches / work_ns.max(1.0);
    if times < UNEVEN {
        return None;
    }
    let even_ns = work_ns * (micro_batches + now.stages as f64 - 1.0) / (micro_batches * now.stages as f64);
    let share = (1.0 - even_ns / now.step_ns.max(1.0)).clamp(0.0, 1.0);
    let finding = Finding::for_run(FindingKind::Imbalance, Confidence::Low, Some(share), |facts| {
        let (times, speed_up) = (facts.number(Number::Ratio, times), facts.number(Number::SpeedUp, speed_up));
        let (ideal, shape, before) = (facts.number(Number::Ideal, ideal), now.shape(), before.shape());
        format!(
            "the slowest stage takes about {times:.1} x its even share: \
                {shape} are {speed_up:.2} x as fast as {before} where {ideal:.2} x is possible"
        )
    })
    .with_evidence_from(|facts| {
        let (step, even) = (facts.time(Number::Step, now.step_ns), facts.time(Number::Balanced, even_ns));
        format!("a step takes {step}; even stages would take {even} by the recurrence")
    });
    let finding = match before.stages {
        1 => finding,
        _ => finding.with_evidence(format!("if the stages of {} are even", before.name)),
    };
    Some(
        finding
            .with_evidence("inferred from step times alone: a fixed cost per micro-batch would look the same")
            .with_advice("record how many blocks each stage has (import csv: --fact blocks=6/2/2/2)"),
    )
}

/// Factors that were changed together in a set of runs, so that their effects cannot be separated.
pub fn confounded(runs: &[Configuration]) -> Option<Finding> {
    let differing = |a: &Configuration, b: &Configuration| -> Vec<&'static str> {
        let known = a.factors.iter().filter_map(|(name, value)| Some((*name, value, b.factors.get(name)?)));
        known.filter(|(_, value, other)| value != other).map(|(name, ..)| name).collect()
    };
    // For each run: how it differs from the run that is most similar in everything except the ranks.
    let mut together: Vec<(String, Vec<&'static str>)> = Vec::new();
    for run in runs {
        let others = runs.iter().filter(|other| other.factors.get("ranks") != run.factors.get("ranks"));
        let nearest = others.map(|other| differing(run, other)).min_by_key(Vec::len);
        if let Some(factors) = nearest.filter(|factors| factors.len() > 1) {
            together.push((run.name.clone(), factors));
        }
    }
    let mut factors: Vec<&'static str> = together.iter().flat_map(|(_, factors)| factors.clone()).collect();
    factors.sort_unstable();
    factors.dedup();
    if factors.is_empty() {
        return None;
    }
    let finding = Finding::for_run(FindingKind::Confounded, Confidence::High, None, |facts| {
        facts.count(Number::Factors, factors.len() as u64);
        format!("{} were changed at once, so their effects cannot be separated", joined(&factors))
    });
    let mut finding = Finding { severity: Severity::Minor, count: together.len() as u64, ..finding };
    for run in runs.iter().take(8) {
        let values: Vec<String> =
            factors.iter().filter_map(|name| Some(format!("{name} {}", run.factors.get(name)?))).collect();
        finding = finding.with_evidence(format!("{}: {}", run.name, values.join(", ")));
    }
    Some(finding.with_advice("add a run that differs in only one of them"))
}
