//! Drift: steps with the same work that take longer and longer.

use std::ops::Range;

use gnntop_wire::Quantity;

use super::check::fewer_than;
use super::contention::is_main_thread;
use crate::figures::duration;
use crate::findings::claim::Claim;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, Occurrence};
use crate::findings::hardware;
use crate::findings::level_change::LevelChange;
use crate::findings::number::Number;
use crate::findings::robust::{correlation, median, sigma};
use crate::findings::sampled_places::SampledPlaces;
use crate::store::Phase;

/// With fewer steps a trend is chance.
const ENOUGH: usize = 60;
/// From the first third to the last, steps must get this much slower...
const SLOWER: f64 = 0.1;
/// ...and by this many standard errors.
const ERRORS: f64 = 6.0;
/// Stretches of the run...
const STRETCHES: usize = 12;
/// ...which must get slower one after the other (correlation). Times that go up and down are not getting slower.
const ON_AND_ON: f64 = 0.8;
/// Times that rise by this part of all within two stretches jumped once.
const AT_ONCE: f64 = 0.6;
/// Another program slows steps down if they are preempted this many times more...
const SWITCHES: f64 = 2.0;
/// ...and this many times as often for their length.
const TIMES: f64 = 2.0;
/// Steps that take less in total are not getting slower.
const LEAST_NS: f64 = 3e9;

/// While other programs use this many cores and this one computes this much, steps that take less in total are not either.
const OTHERS: f64 = 0.5;
const COMPUTES: f64 = 0.25;
const LEAST_BESIDE_OTHERS_NS: f64 = 60e9;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    if evidence.rows.len() < ENOUGH {
        return fewer_than(evidence, ENOUGH);
    }
    let least_ns = if computes_beside_others(evidence) { LEAST_BESIDE_OTHERS_NS } else { LEAST_NS };
    if evidence.wall_ns < least_ns {
        let reason = format!(
            "only {} of steps: too short, as other programs come and go in that time",
            duration(evidence.wall_ns as u64)
        );
        return CheckOutcome::NotEnough(reason);
    }
    let ratio = |row: usize| {
        let is_known = evidence.shape.fit.is_some() || !evidence.shape.is_partial[row];
        is_known.then(|| evidence.inside_ns[row] / evidence.by_work_ns[row])
    };
    let n = evidence.rows.len();
    let third = |k: usize| (k * n / 3..(k + 1) * n / 3).filter_map(ratio).collect::<Vec<f64>>();
    let mut thirds = [third(0), third(1), third(2)];
    let medians = thirds.each_mut().map(|third| median(third));
    let [Some(first), Some(middle), Some(last)] = medians else { return fewer_than(evidence, ENOUGH) };
    // The standard error of a median is 1.25 times that of a mean.
    let error = |third: &[f64], center: f64| 1.25 * sigma(third.iter().copied(), center) / (third.len() as f64).sqrt();
    let errors = error(&thirds[0], first).hypot(error(&thirds[2], last));
    let slower = last / first - 1.0;
    if slower < SLOWER || last - first < ERRORS * errors || middle < first * (1.0 - 0.25 * slower) {
        return CheckOutcome::Nothing;
    }
    let mut levels = Vec::with_capacity(STRETCHES);
    for k in 0..STRETCHES {
        let mut stretch: Vec<f64> = (k * n / STRETCHES..(k + 1) * n / STRETCHES).filter_map(ratio).collect();
        levels.extend(median(&mut stretch).map(|level| (k as f64, level)));
    }
    if correlation(&levels).is_none_or(|r| r < ON_AND_ON) {
        return CheckOutcome::Nothing;
    }
    // A single jump is not a drift.
    if has_jumped(&levels) {
        return CheckOutcome::Nothing;
    }
    let is_at_once = |change: &LevelChange<'_>| change.begin.ordinal >= evidence.rows[0].ordinal();
    let is_by_preemption = is_preempted_more(evidence) && !is_slower_without_waits(evidence, slower);
    if is_by_preemption || evidence.level_change().is_some_and(is_at_once) {
        return CheckOutcome::Nothing;
    }
    finding(evidence, slower, middle / first - 1.0).into()
}

/// Whether the times of the stretches rise at one place, and hardly before and after.
fn has_jumped(levels: &[(f64, f64)]) -> bool {
    let rise = |from: &(f64, f64), to: &(f64, f64)| to.1 - from.1;
    let most = levels.windows(3).map(|near| rise(&near[0], &near[2])).fold(0.0, f64::max);
    levels.first().zip(levels.last()).is_some_and(|(first, last)| most >= AT_ONCE * rise(first, last))
}

/// Whether the program and others both use much of the machine meanwhile: one that only waits is no slower beside them.
fn computes_beside_others(evidence: &StepEvidence<'_>) -> bool {
    let rate = |quantity: Quantity| hardware::rate_per_s(evidence.store, quantity, &evidence.span_ns()?);
    let (all, own) = (rate(Quantity::MachineCpuBusy), rate(Quantity::ProcessCpuTime));
    all.zip(own).is_some_and(|(all, own)| own >= COMPUTES * 1e9 && all - own >= OTHERS * 1e9)
}

/// Whether the training thread is preempted more and more often: then other programs slow it down. A longer step is
/// preempted more often, so the rate counts, too.
fn is_preempted_more(evidence: &StepEvidence<'_>) -> bool {
    let n = evidence.rows.len();
    let usual = |rows: Range<usize>, per: &dyn Fn(usize) -> f64| {
        let times = |row: usize| Some(evidence.rows[row].usage()?.involuntary_switches as f64 / per(row));
        median(&mut rows.filter_map(times).collect::<Vec<f64>>()).unwrap_or(0.0)
    };
    let thirds = |per: &dyn Fn(usize) -> f64| (usual(0..n / 3, per), usual(2 * n / 3..n, per));
    let (a_step, a_time) = (thirds(&|_| 1.0), thirds(&|row| evidence.inside_ns[row].max(1.0)));
    a_step.1 - a_step.0 >= SWITCHES && a_time.1 > TIMES * a_time.0
}

/// Whether steps get slower also without the thread's waits for a CPU: preemptions cost no more than these, where they are measured.
fn is_slower_without_waits(evidence: &StepEvidence<'_>, slower: f64) -> bool {
    let n = evidence.rows.len();
    let span = |rows: Range<usize>| evidence.rows[rows.start].period_start_ns()..evidence.rows[rows.end - 1].end_ns();
    let thirds = [span(0..n / 3), span(2 * n / 3..n)];
    is_main_thread(evidence) && hardware::is_slower_without_waits(evidence.store, slower, SLOWER, thirds)
}

/// The step in the middle of a third, by its time for its work: what to compare.
fn usual_step(evidence: &StepEvidence<'_>, name: &str, rows: Range<usize>) -> Option<Occurrence> {
    let ratio = |row: &usize| evidence.inside_ns[*row] / evidence.by_work_ns[*row];
    let mut full: Vec<usize> = rows.filter(|row| !evidence.shape.is_partial[*row]).collect();
    full.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    let row = *full.get(full.len() / 2)?;
    let (step, took) = (evidence.rows[row].step().0, duration(evidence.inside_ns[row] as u64));
    Some(evidence.place(row, format!("step {step} took {took}, as is usual in the {name} third")))
}

fn finding(evidence: &StepEvidence<'_>, slower: f64, half_way: f64) -> Finding {
    let n = evidence.rows.len();
    let phase_ns = |phase: &Phase, rows: Range<usize>| {
        median(&mut rows.map(|row| evidence.timed[row].phase_ns(phase.slot) as f64).collect::<Vec<f64>>())
            .unwrap_or(0.0)
    };
    let growth = |phase: &'_ Phase| phase_ns(phase, 2 * n / 3..n) - phase_ns(phase, 0..n / 3);
    let share = slower / 2.0 / (1.0 + slower / 2.0);
    let finding = Finding::for_run(FindingKind::Drift, Confidence::High, Some(share), |facts| {
        let slower = facts.share(Number::Slower, slower);
        format!("steps with the same work get {slower} slower from the first third to the last")
    });
    let places = [("first", 0..n / 3), ("last", 2 * n / 3..n)].map(|(name, rows)| usual_step(evidence, name, rows));
    let mut finding = finding
        .with_claim(Claim::Everywhere(share))
        .with_places(places.into_iter().flatten().collect(), 1)
        .with_evidence_from(|facts| {
            let slower = facts.share(Number::MiddleSlower, half_way.max(0.0));
            format!("the middle third is {slower} slower than the first")
        });
    let grown = evidence.store.phases().iter().filter(|p| !p.is_gap()).map(|phase| (growth(phase), &phase.text));
    if let Some((ns, phase)) = grown.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(ns, _)| *ns > 0.0) {
        finding = finding.with_evidence_from(|facts| {
            let more = facts.about(phase, |facts| facts.time(Number::More, ns));
            format!("most of it in {phase}: {more} more a step")
        });
        finding =
            finding.with_evidence_lines(|facts| SampledPlaces::in_phase(evidence.store, phase).lines(facts, phase));
    }
    finding.with_advice("look for what grows from step to step, such as lists and caches")
}
