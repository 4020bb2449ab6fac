//! Memory that grows from beginning to end and does not level off.

mod compiling;
mod growth_time;
mod memory_kind;
mod owner;
mod same_each_step;

use std::ops::Range;

use gnntop_wire::{Metric, Quantity, TrackRole};

use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, Severity};
use crate::findings::number::Number;

use crate::figures::duration;
use crate::store::{Growth, GrowthSource};

use growth_time::{GrowthTime, LEAST_BYTES, LEAST_SHARE, STRETCHES};
use memory_kind::MemoryKind;

/// This many of the changes from stretch to stretch must be increases.
const RISING: usize = STRETCHES - 2;
/// The second half must have this share of the growth, or it is levelling off.
const SECOND_HALF: f64 = 0.3;
/// An hour, in nanoseconds.
const HOUR_NS: f64 = 3.6e12;
/// The machine's memory is looked at over this time, in nanoseconds.
const WORKERS_NS: u64 = 30_000_000_000;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let Some(steps_ns) = evidence.span_ns() else {
        return CheckOutcome::NotEnough("there are no steps to look at".to_owned());
    };
    let times = [Some(GrowthTime::Steps(steps_ns.clone())), GrowthTime::whole_run(evidence, &steps_ns)];
    let times: Vec<GrowthTime> = times.into_iter().flatten().collect();
    let (mut found, mut is_known) = (Vec::<Finding>::new(), false);
    for of in kinds(evidence, &steps_ns) {
        let growths: Vec<(&GrowthTime, [f64; STRETCHES])> =
            times.iter().filter_map(|time| Some((time, of.lowest(evidence.store, time)?))).collect();
        let before = of.max_before(evidence.store, steps_ns.start);
        is_known |= !growths.is_empty();
        // Live, resident and the machine's memory show the same growth: one is enough.
        if !of.is_gpu() && !found.is_empty() {
            continue;
        }
        if growths.is_empty() {
            found.extend(same_each_step::finding(evidence, &times[0], of));
            continue;
        }
        // What was given back before may be given back again.
        let is_new = |lowest: &[f64; STRETCHES]| lowest[STRETCHES - 1] > before.unwrap_or(0.0);
        let mut news =
            growths.into_iter().filter(|(time, lowest)| matches!(time, GrowthTime::Run(_)) || is_new(lowest));
        found.extend(news.find_map(|(time, lowest)| finding(evidence, time, of, lowest)));
    }
    match is_known || !found.is_empty() {
        true => found.into(),
        false => by_trend(evidence, &times[0], &steps_ns),
    }
}

/// Where readings are too few to compare stretches: nothing, if the memory view shows by them that memory does not grow; else why that
/// is unknown.
fn by_trend(evidence: &StepEvidence<'_>, time: &GrowthTime, steps_ns: &Range<u64>) -> CheckOutcome {
    if growth_of_all(evidence).is_some_and(|growth| !growth.bytes_per_step.grows()) {
        return CheckOutcome::Nothing;
    }
    let is_read = |of: MemoryKind| !of.readings(evidence.store, time).is_empty();
    CheckOutcome::NotEnough(match kinds(evidence, steps_ns).into_iter().any(is_read) {
        true => format!("too short for a trend: {} of steps", duration(time.len_ns())),
        false => "no memory is measured".to_owned(),
    })
}

/// The growth that the memory view shows, if it is of the steps looked at.
fn growth_of_all(evidence: &StepEvidence<'_>) -> Option<Growth> {
    let looked_at = evidence.warm_up.len() + evidence.rows.len();
    evidence.store.memory_growth().filter(|_| looked_at as u64 == evidence.store.steps().total())
}

/// What may grow. The machine's memory is looked at only if the program has workers whose own is not measured, and for long enough:
/// other programs use it as well.
fn kinds(evidence: &StepEvidence<'_>, steps_ns: &Range<u64>) -> Vec<MemoryKind> {
    let workers = evidence.store.tracks().iter().filter(|track| track.role == TrackRole::Loader).count();
    let is_long = steps_ns.end - steps_ns.start >= WORKERS_NS;
    let is_measured = evidence.store.signals().find(Metric::from(Quantity::ChildrenRss)).is_some();
    let of_workers = match workers {
        0 => None,
        _ if is_measured => Some(MemoryKind::Workers(workers)),
        _ => is_long.then_some(MemoryKind::Machine(workers)),
    };
    let gpus = evidence.store.hardware().gpus().into_iter().map(MemoryKind::Gpu);
    [MemoryKind::Live, MemoryKind::Process].into_iter().chain(of_workers).chain(gpus).collect()
}

/// The bytes a step by which the memory view says that this memory grows, if it is of the steps looked at.
fn steady_growth(evidence: &StepEvidence<'_>, of: MemoryKind) -> Option<f64> {
    let growth = growth_of_all(evidence)?;
    let is_same = match growth.source {
        GrowthSource::ResidentReadings => of == MemoryKind::Process,
        GrowthSource::StepEnds | GrowthSource::LiveReadings => of == MemoryKind::Live,
    };
    let trend = growth.bytes_per_step;
    (is_same && trend.grows() && trend.is_steady).then_some(trend.slope)
}

fn finding(
    evidence: &StepEvidence<'_>,
    time: &GrowthTime,
    of: MemoryKind,
    lowest: [f64; STRETCHES],
) -> Option<Finding> {
    let (first, middle, last) = (lowest[0], lowest[STRETCHES / 2 - 1], lowest[STRETCHES - 1]);
    let grown = last - first;
    let rises = lowest.windows(2).filter(|pair| pair[1] > pair[0]).count();
    let goes_on = last - middle >= SECOND_HALF * grown;
    if grown < LEAST_BYTES.max(LEAST_SHARE * first) || rises < RISING || !goes_on {
        return None;
    }
    if compiling::takes_it(evidence, time, of) {
        return None;
    }
    // From the first stretch to the last: one less than there are.
    let part = (STRETCHES - 1) as f64 / STRETCHES as f64;
    let ns = time.len_ns() as f64 * part;
    let trend = steady_growth(evidence, of).filter(|_| matches!(time, GrowthTime::Steps(_)));
    let per_step = trend.unwrap_or(grown / (evidence.rows.len() as f64 * part).max(1.0));
    let finding = Finding::for_run(FindingKind::MemoryGrowth, Confidence::Medium, None, |facts| {
        if let MemoryKind::Gpu(gpu) = of {
            facts.count(Number::Gpu, gpu.into());
        }
        let (first, last) = (facts.bytes(Number::From, first), facts.bytes(Number::To, last));
        let rate = match time {
            GrowthTime::Steps(_) => {
                format!("{} a step", facts.bytes(Number::BytesPerStep, per_step))
            }
            GrowthTime::Run(_) => {
                let rate = facts.bytes(Number::BytesPerHour, grown / ns * HOUR_NS);
                format!("{rate} an hour for {}", facts.time(Number::Lasting, ns))
            }
        };
        format!("{of} grows from {first} in the first eighth of the time to {last} in the last, {rate}")
    })
    .with_evidence_from(|facts| {
        let rises = facts.count(Number::Rises, rises as u64);
        format!("it rises in {rises} of {} stretches and is not levelling off", STRETCHES - 1)
    })
    .with_evidence_lines(|_| {
        of.is_without_mapped_files(evidence.store).then(|| "without the pages of mapped files".to_owned())
    })
    .with_evidence_lines(|facts| {
        let (what, free) = of.free(evidence.store)?;
        let left = trend.and_then(|trend| evidence.store.free_memory_lasts_ns(trend)).unwrap_or(free / (grown / ns));
        let left = facts.time(Number::Left, left);
        Some(match evidence.store.is_over() {
            true => format!("at that rate {what} would have lasted another {left}"),
            false => format!("{what} will last another {left}"),
        })
    });
    owner::finding(evidence, time, of, grown, Finding { severity: Severity::Major, ..finding })
}
