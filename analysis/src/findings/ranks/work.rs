//! Work not conserved: the copies of the model together do not cover the training set once an epoch. If a loader does
//! not know that there are several ranks, each goes through the whole set: N ranks do N times the work, and look slow.

use std::collections::HashMap;

use gnntop_wire::{Origin, Reported};
use thiserror::Error;

use super::evidence::{RankEvidence, batch_work};
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::number::Number;
use crate::ranks::{Rank, facts};
use crate::store::{Point, SessionState, StepRow};

/// Work may differ from the set by this share...
const SLACK: f64 = 0.05;
/// One rank goes at most this often through the set in an epoch: more, and its batches count something else.
const MOST_TIMES: f64 = 1.5;
/// Rows of a rank that are looked at.
const NEWEST: usize = 16_384;

/// What it finds in a run.
pub(super) fn check(evidence: &RankEvidence<'_>) -> CheckOutcome {
    let all = evidence.ranks.all();
    let copies = all.iter().map(|rank| rank.place.copies).max().unwrap_or(1);
    if copies < 2 {
        return CheckOutcome::Nothing;
    }
    let Some(set) = all.iter().find_map(|rank| facts::count(rank.store, Reported::TrainingSet)) else {
        return CheckOutcome::NotEnough(format!("no rank reports the size of the {}", Reported::TrainingSet.text()));
    };
    // The stages of a copy have the same batches: one of them counts.
    let counted: Vec<&Rank<'_>> = (0..copies.min(all.len() as u32 + 1))
        .filter_map(|copy| all.iter().filter(|rank| rank.place.copy == copy).min_by_key(|rank| rank.place.stage))
        .collect();
    if counted.len() < copies as usize {
        return CheckOutcome::NotEnough(format!("{} of {copies} copies publish", counted.len()));
    }
    let Some(certainty) = same_data(&counted) else { return CheckOutcome::Nothing };
    let set = set as f64;
    // The last epoch of a run may have been cut short: missing work proves nothing.
    let judged = match epoch(&counted, true) {
        Ok(last) if last.times(set) >= 1.0 => Ok(last),
        _ => epoch(&counted, false),
    };
    match judged {
        Ok(epoch) if epoch.work.iter().any(|work| *work as f64 > MOST_TIMES * set + epoch.batch as f64) => {
            CheckOutcome::NotEnough("batches count something else than samples of the training set".to_owned())
        }
        Ok(epoch) => check_epoch(set, &epoch, certainty),
        Err(reason) => CheckOutcome::NotEnough(reason.to_string()),
    }
}

/// What the counted ranks did in one epoch.
struct EpochWork {
    number: u64,
    /// Seeds, graphs or samples of each rank.
    work: Vec<u64>,
    /// The largest batch.
    batch: u64,
}

impl EpochWork {
    /// How many times a set of this size was done.
    fn times(&self, set: f64) -> f64 {
        self.work.iter().map(|work| *work as f64).sum::<f64>() / set
    }
}

/// Why the work of an epoch cannot be counted.
#[derive(Debug, Error)]
enum Uncounted {
    #[error("no epoch is complete on all ranks yet")]
    NoEpoch,
    #[error("batches do not report their seeds, graphs or samples")]
    NoSizes,
    #[error("epoch {0} is not kept on all ranks")]
    NotKept(u64),
}

/// The newest epoch that is complete on all these ranks; `with_last` counts the last one of an ended run as complete.
fn epoch(ranks: &[&Rank<'_>], with_last: bool) -> Result<EpochWork, Uncounted> {
    let newest = |rank: &&Rank<'_>| newest_whole_epoch(rank, with_last);
    let epochs: Option<Vec<u64>> = ranks.iter().map(newest).collect();
    let number = epochs.and_then(|epochs| epochs.into_iter().min()).ok_or(Uncounted::NoEpoch)?;
    let mut found = EpochWork { number, work: Vec::new(), batch: 0 };
    for rank in ranks {
        let samples = samples(rank);
        let size = |row: StepRow<'_>| batch_work(&row).or_else(|| samples.get(&row.ordinal()).copied());
        let batches: Option<Vec<u64>> = rows(rank).filter(|row| row.epoch() == number).map(size).collect();
        let batches = batches.ok_or(Uncounted::NoSizes)?;
        if batches.is_empty() {
            return Err(Uncounted::NotKept(number));
        }
        found.batch = found.batch.max(batches.iter().copied().max().unwrap_or(0));
        found.work.push(batches.into_iter().fold(0, u64::saturating_add));
    }
    Ok(found)
}

fn rows<'a>(rank: &Rank<'a>) -> impl Iterator<Item = StepRow<'a>> + use<'a> {
    rank.store.steps().all().rev().take(NEWEST)
}

/// Samples of the rank's batches, by the ordinals of their steps.
fn samples(rank: &Rank<'_>) -> HashMap<u64, u64> {
    let Some(samples) = rank.store.counter_of(Reported::Samples) else { return HashMap::new() };
    let of_step = |point: &Point<f64>| {
        let row = rank.store.steps().row_at(point.t_ns().saturating_sub(1))?;
        Some((row.ordinal(), point.value()? as u64))
    };
    samples.series.points().rev().take(NEWEST).filter_map(of_step).collect()
}

/// The newest epoch that is over and has all its steps.
fn newest_whole_epoch(rank: &Rank<'_>, with_last: bool) -> Option<u64> {
    let newest = rank.store.steps().last()?;
    let has_ended = matches!(rank.store.session().state(), SessionState::Ended(_));
    let over = if has_ended && with_last { newest.epoch() } else { newest.epoch().checked_sub(1)? };
    let before = rows(rank).find(|row| row.epoch() < over);
    let oldest = rows(rank).last()?;
    let is_whole = before.is_some() || (oldest.ordinal() == 0 && oldest.epoch() == over);
    is_whole.then_some(over)
}

/// How certain it is that the ranks have the same set; `None` if they have not: each has its part of it.
fn same_data(ranks: &[&Rank<'_>]) -> Option<Confidence> {
    let differ = |what| {
        let mut values: Vec<f64> = ranks.iter().filter_map(|rank| facts::value(rank.store, what)).collect();
        let known = values.len();
        values.dedup();
        (values.len() > 1, known == ranks.len())
    };
    let ((sizes_differ, _), (data_differ, are_known)) = (differ(Reported::TrainingSet), differ(Reported::TrainingData));
    // The loaders of a Python program are its rank's own, and may hold a part.
    let is_python = |rank: &&Rank<'_>| rank.store.session().info().is_some_and(|info| info.origin == Origin::Python);
    let is_surely_same = are_known || !ranks.iter().any(is_python);
    match sizes_differ || data_differ || !is_surely_same && batches_differ(ranks) {
        true => None,
        false if is_surely_same => Some(Confidence::High),
        false => Some(Confidence::Medium),
    }
}

/// Whether the ranks' first batches differ in their nodes or edges: then they do not go through one list in one order.
fn batches_differ(ranks: &[&Rank<'_>]) -> bool {
    let first = |rank: &&Rank<'_>| rows(rank).last().map(|row| (row.ordinal(), row.batch().nodes, row.batch().edges));
    let mut firsts = ranks.iter().map(first);
    let Some(Some(one)) = firsts.next() else { return false };
    let is_other = |other: &(u64, Option<u64>, Option<u64>)| other.0 == one.0 && (other.1, other.2) != (one.1, one.2);
    firsts.flatten().any(|other| is_other(&other))
}

fn check_epoch(set: f64, epoch: &EpochWork, certainty: Confidence) -> CheckOutcome {
    let ranks = epoch.work.len();
    // Equal work for all may need a batch of padding on each, or leave as much out.
    let slack = SLACK.max(ranks as f64 * epoch.batch as f64 / set);
    let times = epoch.times(set);
    if (times - 1.0).abs() <= slack {
        return CheckOutcome::Nothing;
    }
    let walks_all = |work: &u64| (*work as f64 / set - 1.0).abs() <= SLACK;
    let share = (times > 1.0).then(|| 1.0 - 1.0 / times);
    let all_walk_all = times > 1.0 && epoch.work.iter().all(walks_all);
    let advice = match all_walk_all {
        true => "give every rank its share (a distributed sampler; use_ddp=True for DGL's loader)",
        false => "look at how the training set is split over the ranks",
    };
    let finding = Finding::for_run(FindingKind::WorkNotConserved, certainty, share, |facts| {
        let (ranks, times) = (facts.count(Number::Copies, ranks as u64), facts.number(Number::Ratio, times));
        match times > 1.0 {
            _ if all_walk_all => {
                format!(
                    "each of {ranks} copies goes through the whole training set: an epoch does {times:.1} x the work"
                )
            }
            true => format!("an epoch covers {times:.2} x the training set: some of it more than once"),
            false => format!("an epoch covers {times:.2} x the training set: the rest is never used"),
        }
    });
    finding
        .with_evidence_from(|facts| {
            facts.count(Number::Epoch, epoch.number);
            let works = epoch.work.iter().enumerate().take(8).map(|(copy, work)| {
                facts.about(&format!("copy {copy}"), |facts| facts.count(Number::Work, *work)).to_string()
            });
            let (works, number) = (works.collect::<Vec<String>>().join(", "), epoch.number);
            let set = facts.count(Number::TrainingSet, set as u64);
            format!("in epoch {number} the copies did {works}; the training set has {set}")
        })
        .with_evidence("seconds an epoch are not comparable; seeds or graphs a second over all ranks are")
        .with_advice(advice)
        .into()
}
