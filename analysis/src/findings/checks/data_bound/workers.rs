//! Loader workers: what they spend their time on, and whether one of them, or a few batches, hold up the others.

use std::collections::BTreeMap;
use std::ops::Range;

use gnntop_wire::TrackRole;

use crate::findings::evidence::StepEvidence;
use crate::findings::finding::Finding;
use crate::findings::number::Number;
use crate::findings::robust::{median, quantile};
use crate::store::{Store, Track};

use super::batch_parts::BatchTimes;

/// A worker holds up the others from this many times their time for a batch.
const UNEVEN: f64 = 1.5;
/// With fewer batches of a worker its median is chance.
const ENOUGH: usize = 8;
/// A batch is a slow one from this many times the usual time.
const SLOW: f64 = 4.0;
/// Slow batches matter from this share of the workers' time.
const WORTH_REPORTING: f64 = 0.1;
/// They are few up to this share of all batches.
const FEW: f64 = 0.1;
/// A part of the workers' time is named from this share.
const MOSTLY: f64 = 0.5;

/// The workers of the steps looked at.
pub(super) struct LoaderWorkers {
    /// How many there are at a time.
    pub count: usize,
    /// What takes most of their time, with its share (0 to 1) of it; `None` if they publish no spans.
    part: Option<(String, f64)>,
    /// What making a batch consists of, if the program says that.
    parts: Option<BatchTimes>,
    /// How long it takes for each batch, by worker.
    batches: BTreeMap<String, Vec<f64>>,
    /// Share (0 to 1) of a worker's time in which it makes batches, all workers added up.
    pub busy: f64,
}

impl LoaderWorkers {
    /// Those with spans in these steps, or, if none has any, all that there are.
    pub(super) fn find(evidence: &StepEvidence<'_>) -> Self {
        let store = evidence.store;
        let span = evidence.span_ns().unwrap_or_default();
        let tracks = || store.tracks().iter().filter(|track| track.role == TrackRole::Loader);
        let with_lane =
            tracks().filter_map(|track| Some((track, track.lane()?.first_ns()?, track.lane()?.last_end_ns()?)));
        let active: Vec<(&Track, u64, u64)> =
            with_lane.filter(|(_, first, last)| *first < span.end && *last > span.start).collect();
        let count = if active.is_empty() { tracks().count() } else { most_at_once(&active) };
        let time = Times::of_tracks(store, &active, &span);
        let all_ns: f64 = time.by_name.values().sum();
        let largest = time.by_name.iter().max_by(|a, b| a.1.total_cmp(b.1));
        let part = largest.map(|(name, ns)| ((*name).to_owned(), ns / all_ns.max(1.0)));
        let batches = largest.map_or_else(BTreeMap::new, |(name, _)| time.batches(name));
        let busy = all_ns / (span.end - span.start).max(1) as f64;
        let parts = BatchTimes::of_workers(store, active.iter().map(|(track, ..)| *track), &span);
        Self { count, part, parts, batches, busy }
    }

    /// Share (0 to 1) of the time in which each of them makes batches; `None` if their spans may be a part of that.
    pub(super) fn busy_share(&self) -> Option<f64> {
        self.parts.map(|_| self.busy / self.count as f64)
    }

    /// What takes most of their time, for a sentence.
    pub(super) fn part(&self) -> String {
        self.parts.map_or_else(|| "batches".to_owned(), |parts| parts.longer().0.to_string())
    }

    /// Whether one of them, or a few batches, take far longer than the others.
    pub(super) fn are_uneven(&self) -> bool {
        self.slowest().is_some() || self.slow_batches().is_some()
    }

    /// Adds what they spend their time on, and what holds them up.
    pub(super) fn describe(&self, finding: Finding) -> Finding {
        let part = self.part.as_ref().filter(|(_, share)| (MOSTLY..1.0).contains(share));
        let finding = finding.with_evidence_lines(|facts| {
            let (part, share) = self.parts?.longer();
            let share = facts.about(&part.to_string(), |facts| facts.share(Number::OfWorkers, share));
            Some(format!("{} takes {share} of the time in which the loader's workers make batches", part.work()))
        });
        let finding = finding.with_evidence_lines(|facts| {
            part.map(|(text, share)| {
                let share = facts.about(text, |facts| facts.share(Number::OfWorkers, *share));
                format!("the loader's workers spend {share} of their time on {text}")
            })
        });
        let finding = finding.with_evidence_lines(|facts| {
            let slowest = self.slowest()?;
            let (ratio, own, others) = facts.about(&slowest.worker, |facts| {
                let ratio = facts.number(Number::Ratio, slowest.own_ns / slowest.others_ns);
                (ratio, facts.time(Number::Each, slowest.own_ns), facts.time(Number::Otherwise, slowest.others_ns))
            });
            Some(format!(
                "{} takes {ratio:.1} x as long for a batch as the others: {own}, theirs {others}",
                slowest.worker
            ))
        });
        finding.with_evidence_lines(|facts| {
            let slow = self.slow_batches().filter(|_| self.slowest().is_none())?;
            let (times, longest) =
                (facts.count(Number::SlowBatches, slow.count), facts.time(Number::Longest, slow.longest_ns));
            let (usual, share) =
                (facts.time(Number::UsualBatch, slow.usual_ns), facts.share(Number::OfWorkers, slow.share));
            let noun = if slow.count == 1 { "batch takes" } else { "batches take" };
            Some(format!("{times} {noun} up to {longest}, usually {usual}, and {share} of the workers' time"))
        })
    }

    /// The worker that takes far longer for a batch than the others do.
    fn slowest(&self) -> Option<SlowWorker> {
        let mut medians: Vec<(&String, f64)> = self
            .batches
            .iter()
            .filter(|(_, times)| times.len() >= ENOUGH)
            .filter_map(|(worker, times)| Some((worker, median(&mut times.clone())?)))
            .collect();
        medians.sort_by(|a, b| b.1.total_cmp(&a.1));
        let ((worker, own_ns), others) = medians.split_first().map(|(first, others)| (*first, others))?;
        let others_ns = median(&mut others.iter().map(|(_, ns)| *ns).collect::<Vec<f64>>())?.max(1.0);
        (own_ns > UNEVEN * others_ns).then(|| SlowWorker { worker: worker.clone(), own_ns, others_ns })
    }

    /// A few batches that take far longer than usual.
    fn slow_batches(&self) -> Option<SlowBatches> {
        let mut all: Vec<f64> = self.batches.values().flatten().copied().collect();
        if all.len() < ENOUGH {
            return None;
        }
        let usual_ns = quantile(&mut all, 0.5)?.max(1.0);
        let slow: Vec<f64> = all.iter().copied().filter(|ns| *ns > SLOW * usual_ns).collect();
        let share = slow.iter().sum::<f64>() / all.iter().sum::<f64>().max(1.0);
        let are_few = (slow.len() as f64) <= FEW * all.len() as f64;
        (share >= WORTH_REPORTING && are_few).then(|| SlowBatches {
            count: slow.len() as u64,
            usual_ns,
            longest_ns: slow.iter().copied().fold(0.0, f64::max),
            share,
        })
    }
}

/// The worker that takes longest for a batch.
struct SlowWorker {
    worker: String,
    own_ns: f64,
    others_ns: f64,
}

/// Few batches that take far longer than others.
struct SlowBatches {
    count: u64,
    usual_ns: f64,
    longest_ns: f64,
    /// Share (0 to 1) of the workers' time.
    share: f64,
}

/// How long the outermost spans of workers take, by name, and each of them by name and worker.
#[derive(Default)]
struct Times<'a> {
    by_name: BTreeMap<&'a str, f64>,
    each: BTreeMap<(&'a str, &'a str), Vec<f64>>,
}

impl<'a> Times<'a> {
    fn of_tracks(store: &'a Store, tracks: &[(&'a Track, u64, u64)], span: &Range<u64>) -> Self {
        let mut times = Self::default();
        for (track, _, _) in tracks {
            let Some(lane) = track.lane() else { continue };
            lane.each_box(span.clone(), |outer, depth| {
                if depth == 0 {
                    let (name, ns) = (store.name(outer.name), (outer.end_ns - outer.start_ns) as f64);
                    *times.by_name.entry(name).or_default() += ns;
                    times.each.entry((name, worker(&track.text))).or_default().push(ns);
                }
            });
        }
        times
    }

    fn batches(&self, name: &str) -> BTreeMap<String, Vec<f64>> {
        let of_name = self.each.iter().filter(|((of, _), _)| *of == name);
        of_name.map(|((_, worker), times)| ((*worker).to_owned(), times.clone())).collect()
    }
}

/// A worker's name without its loader's: the next epoch's `loader 2 worker 3` does the work of `loader 1 worker 3`.
fn worker(track: &str) -> &str {
    track.find("worker ").map_or(track, |at| &track[at..])
}

/// Most tracks that are in use at the same time.
fn most_at_once(tracks: &[(&Track, u64, u64)]) -> usize {
    let at = |t_ns: u64| tracks.iter().filter(|(_, first, last)| (*first..=*last).contains(&t_ns)).count();
    tracks.iter().map(|(_, first, _)| at(*first)).max().unwrap_or(0)
}
