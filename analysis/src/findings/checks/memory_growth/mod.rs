//! Memory that grows from beginning to end and does not level off.

mod growth_time;
mod memory_kind;
mod owner;
mod same_each_step;

use std::ops::Range;

use gnntop_wire::TrackRole;

use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, Severity};
use crate::findings::number::Number;

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
        false => CheckOutcome::NotEnough("too few readings of memory".to_owned()),
    }
}

/// What may grow. The machine's memory is looked at only if the program has workers, and for long enough: other programs use
/// it as well.
fn kinds(evidence: &StepEvidence<'_>, steps_ns: &Range<u64>) -> Vec<MemoryKind> {
    let workers = evidence.store.tracks().iter().filter(|track| track.role == TrackRole::Loader).count();
    let is_long = steps_ns.end - steps_ns.start >= WORKERS_NS;
    let machine = (workers > 0 && is_long).then_some(MemoryKind::Machine(workers));
    let gpus = evidence.store.hardware().gpus().into_iter().map(MemoryKind::Gpu);
    [MemoryKind::Live, MemoryKind::Process].into_iter().chain(machine).chain(gpus).collect()
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
    // From the first stretch to the last: one less than there are.
    let part = (STRETCHES - 1) as f64 / STRETCHES as f64;
    let ns = time.len_ns() as f64 * part;
    let finding = Finding::for_run(FindingKind::MemoryGrowth, Confidence::Medium, None, |facts| {
        if let MemoryKind::Gpu(gpu) = of {
            facts.count(Number::Gpu, gpu.into());
        }
        let (first, last) = (facts.bytes(Number::From, first), facts.bytes(Number::To, last));
        let rate = match time {
            GrowthTime::Steps(_) => {
                let steps = (evidence.rows.len() as f64 * part).max(1.0);
                format!("{} a step", facts.bytes(Number::BytesPerStep, grown / steps))
            }
            GrowthTime::Run(_) => {
                let rate = facts.bytes(Number::BytesPerHour, grown / ns * HOUR_NS);
                format!("{rate} an hour for {}", facts.time(Number::Lasting, ns))
            }
        };
        format!("{of} grows from {first} to {last}, {rate}")
    })
    .with_evidence_from(|facts| {
        let rises = facts.count(Number::Rises, rises as u64);
        format!("it rises in {rises} of {} stretches and is not levelling off", STRETCHES - 1)
    })
    .with_evidence_lines(|facts| {
        let (what, free) = of.free(evidence.store)?;
        Some(format!("{what} will last another {}", facts.time(Number::Left, free / (grown / ns))))
    });
    owner::finding(evidence, time, of, grown, Finding { severity: Severity::Major, ..finding })
}
