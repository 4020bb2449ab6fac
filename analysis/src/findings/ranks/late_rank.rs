//! A rank whose GPU is late at the collectives, as NCCL reports them: the host sees nothing of GPUs that wait for each
//! other.
//!
//! A collective ends on all ranks at about the same time and begins on each when that rank's GPU reaches it. So the
//! others wait for the rank that begins it last.

use gnntop_wire::{Reported, TrackRole};

use super::evidence::RankEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::number::Number;
use crate::findings::robust::median;
use crate::ranks::Rank;
use crate::store::Track;

/// What two ranks do alone shows nothing about the others.
const POINT_TO_POINT: [&str; 3] = ["send", "receive", "send and receive"];
/// Collectives needed, and the newest that are looked at.
const ENOUGH: usize = 20;
const NEWEST: usize = 1024;
/// A rank is usually late if it is last at this share of them.
const AGAIN: f64 = 0.6;
/// A cost below this share of the time is not a finding.
const WORTH_REPORTING: f64 = 0.03;

/// Looks for a rank that reaches the collectives last.
pub(super) fn check(evidence: &RankEvidence<'_>) -> CheckOutcome {
    let found = communicators(evidence).into_iter().filter_map(|name| late(evidence, name));
    found.collect::<Vec<Finding>>().into()
}

/// The communicators' names, each once.
fn communicators<'a>(evidence: &RankEvidence<'a>) -> Vec<&'a str> {
    let tracks = evidence.ranks.all().iter().flat_map(|rank| rank.store.tracks());
    let mut names: Vec<&str> = tracks.filter(|track| is_communicator(track)).map(|track| track.text.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn is_communicator(track: &Track) -> bool {
    track.role == TrackRole::Communicator
}

/// A collective on one rank, on the run's clock.
#[derive(Clone, Copy, Debug)]
struct Collective<'a> {
    name: &'a str,
    begin: u64,
    end: u64,
}

/// A rank's collectives of one communicator, the newest first.
fn collectives<'a>(rank: &Rank<'a>, communicator: &str) -> Vec<Collective<'a>> {
    let mut all = Vec::new();
    let is_it = |track: &&Track| is_communicator(track) && track.text == communicator;
    let Some(lane) = rank.store.tracks().iter().find(is_it).and_then(Track::lane) else { return all };
    lane.each_box(0..u64::MAX, |one, _| {
        let name = rank.store.name(one.name);
        let operation = name.strip_prefix(Reported::BetweenMachines.text()).unwrap_or(name);
        if all.len() < NEWEST && !POINT_TO_POINT.contains(&operation) {
            all.push(Collective { name, begin: rank.run_ns(one.start_ns), end: rank.run_ns(one.end_ns) });
        }
    });
    all
}

/// Another rank's part in the same collective: of the same name and at the same time, the one with the nearest end.
fn find_same<'a>(part: &Collective<'_>, others: &[Collective<'a>]) -> Option<Collective<'a>> {
    let overlaps =
        |other: &&Collective<'_>| other.name == part.name && other.begin < part.end && part.begin < other.end;
    // Newest first, one after the other: those that begin after this one ends are too new, those that end before it too
    // old.
    let from = others.partition_point(|other| other.begin >= part.end);
    let near = others[from..].iter().take_while(|other| other.end > part.begin);
    near.filter(overlaps).min_by_key(|other| other.end.abs_diff(part.end)).copied()
}

/// Which rank reached a collective last, and how long the others waited for it alone.
fn find_last(parts: &[Collective<'_>]) -> Option<(usize, u64)> {
    let (at, latest) = parts.iter().enumerate().max_by_key(|(_, part)| part.begin)?;
    let second = parts.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, part)| part.begin).max()?;
    Some((at, latest.begin.saturating_sub(second)))
}

/// The rank that is usually late to this communicator's collectives, if there is one.
fn late(evidence: &RankEvidence<'_>, communicator: &str) -> Option<Finding> {
    let ranks: Vec<(&Rank<'_>, Vec<Collective<'_>>)> =
        evidence.ranks.all().iter().map(|rank| (rank, collectives(rank, communicator))).collect();
    let ranks: Vec<_> = ranks.into_iter().filter(|(_, parts)| !parts.is_empty()).collect();
    // Clocks that were never compared cannot show who is late.
    let clocks_ns = ranks.iter().map(|(rank, _)| rank.error_ns).sum::<Option<u64>>()?;
    let (first, others) = ranks.split_first().filter(|(_, others)| !others.is_empty())?;
    let mut waits: Vec<Vec<f64>> = vec![Vec::new(); ranks.len()];
    let mut collectives = 0_u32;
    for part in &first.1 {
        let theirs = others.iter().map(|(_, parts)| find_same(part, parts)).collect::<Option<Vec<Collective<'_>>>>();
        let Some(theirs) = theirs else { continue };
        collectives += 1;
        let all = [&[*part], &theirs[..]].concat();
        if let Some((at, wait)) = find_last(&all).filter(|(_, wait)| *wait > clocks_ns) {
            waits[at].push(wait as f64);
        }
    }
    let (at, waits) = waits.into_iter().enumerate().max_by_key(|(_, waits)| waits.len())?;
    let (share, cost) = (waits.len() as f64 / f64::from(collectives.max(1)), waits.iter().sum::<f64>());
    let is_one = collectives as usize >= ENOUGH && share >= AGAIN && evidence.share(cost) >= WORTH_REPORTING;
    is_one.then(|| finding(evidence, &Late { rank: ranks[at].0, communicator, collectives, share, cost, waits }))?
}

/// A late rank.
struct Late<'a, 'r> {
    rank: &'a Rank<'r>,
    communicator: &'a str,
    collectives: u32,
    /// Share of the collectives that it reaches last.
    share: f64,
    /// How long the others wait for it, in total.
    cost: f64,
    waits: Vec<f64>,
}

fn finding(evidence: &RankEvidence<'_>, late: &Late<'_, '_>) -> Option<Finding> {
    let Late { rank, communicator, collectives, share, cost, .. } = late;
    let number = rank.place.rank;
    let usual_ns = median(&mut late.waits.clone())?;
    let finding = Finding::for_run(FindingKind::Straggler, Confidence::High, Some(evidence.share(*cost)), |facts| {
        facts.count(Number::Rank, number.into());
        let (often, wait) = (facts.share(Number::OftenLast, *share), facts.time(Number::OthersWait, usual_ns));
        format!(
            "rank {number} is a straggler: it is last at {often} of the collectives, \
                and the other GPUs wait {wait} for it"
        )
    })
    .with_evidence_from(|facts| {
        let collectives = facts.count(Number::Collectives, (*collectives).into());
        let all = facts.time(Number::InAll, *cost);
        format!("{collectives} collectives of {communicator:?}: the other GPUs wait {all} for rank {number} in all")
    });
    Some(finding.with_advice(format!("see why rank {number}'s GPU is late: its batches, its clocks, its host")))
}

#[cfg(test)]
mod tests {
    use gnntop_fixtures::uneven::{place, rank_info};
    use gnntop_fixtures::{MS, START_NS, StreamBuilder};
    use gnntop_wire::TrackRole;

    use super::*;
    use crate::findings::ranks::rank_findings;
    use crate::ranks::fixture::run;

    /// When a rank's GPU reaches a step's all-reduce, after the first could.
    type Arrival = fn(u32, u64) -> u64;

    /// Three ranks whose hosts all do the same, and whose GPUs meet in an all-reduce of 4 ms in each of 60 steps of 30 ms.
    fn found(arrival: Arrival) -> Vec<Finding> {
        let session = |rank: u32| {
            let mut stream = StreamBuilder::from_info(&rank_info("ddp", place(rank, 3)));
            let main = stream.track(TrackRole::Training, "train");
            let nccl = stream.track(TrackRole::Communicator, "nccl default_pg");
            for step in 1..=60 {
                let begin = START_NS + step * 30 * MS;
                let last = (0..3).map(|rank| arrival(rank, step)).max().unwrap();
                stream.phase(main, step, "backward", begin, begin + 28 * MS);
                stream.step(main, step, begin, begin + 30 * MS);
                stream.span(nccl, 0, "send", begin, begin + MS);
                let end = begin + 10 * MS + last + 4 * MS + u64::from(rank) * 20_000;
                stream.span(nccl, 0, "all-reduce", begin + 10 * MS + arrival(rank, step), end);
            }
            stream.end(START_NS + 61 * 30 * MS);
            stream.bytes()
        };
        let sessions = [0, 1, 2].map(session);
        rank_findings(&run(&sessions).ranks()).found
    }

    #[test]
    fn late_rank_is_named() {
        let found = found(|rank, step| if rank == 1 { 6 * MS } else { step % 3 * 100_000 });
        let [finding] = &found[..] else { panic!("{found:#?}") };
        assert_eq!(finding.kind, FindingKind::Straggler);
        assert!(finding.summary.starts_with("rank 1 is a straggler: it is last at 100"), "{finding:#?}");
        let fact = |number| finding.fact(number).unwrap();
        assert_eq!((fact(Number::Rank), fact(Number::OftenLast), fact(Number::Collectives)), (1.0, 1.0, 60.0));
        assert!((5.9e6..6e6).contains(&fact(Number::OthersWait)) && finding.share.unwrap() > 0.15, "{finding:#?}");
    }

    #[test]
    fn ranks_late_in_turns_give_no_finding() {
        assert_eq!(found(|rank, _| u64::from(rank) * 50_000), []);
        assert_eq!(found(|rank, step| if u64::from(rank) == step % 3 { 6 * MS } else { 0 }), []);
    }
}
