//! Slow at regular times: something on the machine or in the program comes back every few minutes or hours.

use super::check::Check;
use crate::figures::{count, duration, percent, utc};
use crate::findings::claim::Claim;
use crate::findings::evidence::Evidence;
use crate::findings::finding::{Confidence, Finding, Kind, Occurrence, Outcome};
use crate::findings::rhythm::{Episode, Rhythm};
use crate::findings::robust::median;
use crate::findings::stretches::Known;
use crate::store::Store;

/// A shorter run has no rhythm of minutes.
const SHORTEST_RUN_NS: u64 = 240_000_000_000;

/// The check.
pub(super) struct SlowRhythm;

impl Check for SlowRhythm {
    fn kind(&self) -> Kind {
        Kind::SlowRhythm
    }

    fn look(&self, evidence: &Evidence<'_>) -> Outcome {
        if evidence.store.elapsed_ns() < SHORTEST_RUN_NS {
            return Outcome::Nothing;
        }
        let known = evidence.known_of_run();
        Rhythm::find(&known).map_or(Outcome::Nothing, |rhythm| finding(evidence, &known, &rhythm).into())
    }
}

fn finding(evidence: &Evidence<'_>, known: &[Known<'_>], rhythm: &Rhythm) -> Finding {
    let store = evidence.store;
    let (slower, period, lasting) = (percent(rhythm.slower), duration(rhythm.period_ns), duration(rhythm.lasting_ns));
    let times = rhythm.episodes.len();
    let summary = format!("every {period}, steps take up to {slower} longer for {lasting} ({times} times so far)");
    let is_within = |ordinal: u64| rhythm.episodes.iter().any(|episode| episode.ordinals.contains(&ordinal));
    let slow = evidence.rows.iter().filter(|row| is_within(row.ordinal()));
    let share = evidence.share(slow.map(|row| row.period_ns() as f64).sum()) * rhythm.slower / (1.0 + rhythm.slower);
    let place = |episode: &Episode| Occurrence {
        ordinals: episode.ordinals.clone(),
        start_ns: episode.t_ns.start,
        end_ns: episode.t_ns.end,
        sentence: format!("slow for {}, as every {period}", duration(ns(episode))),
    };
    let places: Vec<Occurrence> = rhythm.episodes.iter().map(place).collect();
    let mut finding = Finding::of_run(Kind::SlowRhythm, Confidence::Medium, Some(share), summary)
        .claiming(Claim::Everywhere(share))
        .at(places, times as u64);
    finding.evidence = [Some(when(store, rhythm)), Some(in_all(store, rhythm)), grown(store, known, &is_within)]
        .into_iter()
        .flatten()
        .collect();
    finding.advise("see what runs then: timers (systemctl list-timers), cron jobs, backups, another user's job")
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
fn in_all(store: &Store, rhythm: &Rhythm) -> String {
    let all_ns: f64 = rhythm.episodes.iter().map(|episode| ns(episode) as f64).sum();
    let lost = all_ns * rhythm.slower / (1.0 + rhythm.slower);
    let steps = rhythm.episodes.iter().map(|episode| episode.ordinals.end.saturating_sub(episode.ordinals.start));
    let steps = steps.fold(0, u64::saturating_add);
    let share = percent(lost / store.elapsed_ns().max(1) as f64);
    format!("{} slower steps cost at most {share} of the run so far", count(steps))
}

/// The phase, or the gap, that grows most in these steps.
fn grown(store: &Store, known: &[Known<'_>], is_slow: &dyn Fn(u64) -> bool) -> Option<String> {
    let usual = |slot, slow: bool| {
        let rows = known.iter().filter(|known| is_slow(known.row.ordinal()) == slow);
        median(&mut rows.map(|known| known.row.phase_ns(slot) as f64).collect::<Vec<f64>>())
    };
    let phases = store.phases().iter().filter_map(|phase| {
        let (others, slow) = (usual(phase.slot, false)?, usual(phase.slot, true)?);
        (slow > others).then_some((slow - others, others, slow, phase))
    });
    let (_, others, slow, phase) = phases.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let text = if phase.is_gap() { "the time outside phases" } else { &*phase.text };
    Some(format!("most of it in {text}: {} then, {} otherwise", duration(slow as u64), duration(others as u64)))
}
