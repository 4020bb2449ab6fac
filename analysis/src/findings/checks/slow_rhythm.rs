//! Slow at regular times: something on the machine or in the program comes back every few minutes or hours.

use crate::figures::{duration, utc};
use crate::findings::claim::Claim;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, Occurrence};
use crate::findings::number::Number;
use crate::findings::rhythm::{Episode, Rhythm};
use crate::findings::robust::median;
use crate::findings::run_stretches::{RunStep, most_grown};
use crate::findings::stated_numbers::StatedNumbers;
use crate::store::Store;

/// A shorter run has no rhythm of minutes.
const SHORTEST_RUN_NS: u64 = 240_000_000_000;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    if evidence.store.elapsed_ns() < SHORTEST_RUN_NS {
        return CheckOutcome::Nothing;
    }
    let known = evidence.run_steps();
    Rhythm::find(&known).map_or(CheckOutcome::Nothing, |rhythm| finding(evidence, &known, &rhythm).into())
}

fn finding(evidence: &StepEvidence<'_>, known: &[RunStep<'_>], rhythm: &Rhythm) -> Finding {
    let store = evidence.store;
    let is_within = |ordinal: u64| rhythm.episodes.iter().any(|episode| episode.ordinals.contains(&ordinal));
    let slow = evidence.rows.iter().filter(|row| is_within(row.ordinal()));
    let share = evidence.share(slow.map(|row| row.period_ns() as f64).sum()) * rhythm.slower / (1.0 + rhythm.slower);
    let place = |episode: &Episode| Occurrence {
        ordinals: episode.ordinals.clone(),
        start_ns: episode.t_ns.start,
        end_ns: episode.t_ns.end,
        sentence: format!("slow for {}, as every {}", duration(ns(episode)), duration(rhythm.period_ns)),
    };
    let places: Vec<Occurrence> = rhythm.episodes.iter().map(place).collect();
    let times = rhythm.episodes.len() as u64;
    let finding = Finding::for_run(FindingKind::SlowRhythm, Confidence::Medium, Some(share), |facts| {
        let (period, slower) =
            (facts.time(Number::EveryTime, rhythm.period_ns as f64), facts.share(Number::Slower, rhythm.slower));
        let (lasting, times) =
            (facts.time(Number::Lasting, rhythm.lasting_ns as f64), facts.count(Number::Times, times));
        format!("every {period}, steps take up to {slower} longer for {lasting} ({times} times so far)")
    })
    .with_claim(Claim::Everywhere(share))
    .with_places(places, times)
    .with_evidence(when(store, rhythm))
    .with_evidence_from(|facts| total_cost(facts, store, rhythm))
    .with_evidence_lines(|facts| grown(facts, store, known, &is_within));
    finding.with_advice("see what runs then: timers (systemctl list-timers), cron jobs, backups, another user's job")
}

fn ns(episode: &Episode) -> u64 {
    episode.t_ns.end.saturating_sub(episode.t_ns.start)
}

/// The first and the last time, and when the next one is due.
fn when(store: &Store, rhythm: &Rhythm) -> String {
    let wall = |t_ns: u64| {
        let since_start =
            || format!("{} after the start", duration(t_ns.saturating_sub(store.first_ns().unwrap_or(0))));
        store.session().wall_ns(t_ns).map_or_else(since_start, utc)
    };
    let starts = || rhythm.episodes.iter().map(|episode| episode.t_ns.start);
    let (first, last) = (starts().next().unwrap_or(0), starts().next_back().unwrap_or(0));
    let next = wall(last.saturating_add(rhythm.period_ns));
    format!("first at {}, last at {}, next expected at about {next}", wall(first), wall(last))
}

/// What all of them cost together.
fn total_cost(facts: &mut StatedNumbers, store: &Store, rhythm: &Rhythm) -> String {
    let all_ns: f64 = rhythm.episodes.iter().map(|episode| ns(episode) as f64).sum();
    let lost = all_ns * rhythm.slower / (1.0 + rhythm.slower);
    let steps = rhythm.episodes.iter().map(|episode| episode.ordinals.end.saturating_sub(episode.ordinals.start));
    let steps = facts.count(Number::Steps, steps.fold(0, u64::saturating_add));
    let share = facts.share(Number::OfRun, lost / store.elapsed_ns().max(1) as f64);
    format!("{steps} slower steps cost at most {share} of the run so far")
}

/// The phase, or the gap, that grows most in these steps.
fn grown(
    facts: &mut StatedNumbers,
    store: &Store,
    known: &[RunStep<'_>],
    is_slow: &dyn Fn(u64) -> bool,
) -> Option<String> {
    let usual = |slot, slow: bool| {
        let rows = known.iter().filter(|known| is_slow(known.row.ordinal()) == slow);
        median(&mut rows.map(|known| known.row.phase_ns(slot) as f64).collect::<Vec<f64>>())
    };
    let (phase, others, slow) = most_grown(store, |slot| Some((usual(slot, false)?, usual(slot, true)?)))?;
    facts.about(phase, |facts| {
        let (slow, others) = (facts.time(Number::Usual, slow), facts.time(Number::Otherwise, others));
        Some(format!("most of it in {phase}: {slow} then, {others} otherwise"))
    })
}
