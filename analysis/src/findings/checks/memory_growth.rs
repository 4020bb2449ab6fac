//! Memory that grows from the beginning to the end and shows no sign of levelling off.

use std::fmt;
use std::ops::Range;

use super::check::Check;
use crate::figures::{bytes, duration};
use crate::findings::evidence::Evidence;
use crate::findings::finding::{Confidence, Finding, Kind, Outcome, Severity};
use crate::store::{Series, Value};

/// Stretches that the time is cut into; the lowest reading of each counts, so that what a step takes and gives
/// back does not.
const STRETCHES: usize = 8;
/// Of the rises from stretch to stretch so many must go up.
const RISING: usize = STRETCHES - 2;
/// Growth that is worth a word...
const LEAST_BYTES: f64 = 32e6;
/// ...also as a share of what there was.
const LEAST_SHARE: f64 = 0.05;
/// The second half must have this share of the growth, or it is levelling off.
const SECOND_HALF: f64 = 0.3;
/// Readings a stretch needs.
const READINGS: usize = 3;

/// The check.
pub(super) struct MemoryGrowth;

impl Check for MemoryGrowth {
    fn kind(&self) -> Kind {
        Kind::MemoryGrowth
    }

    fn look(&self, evidence: &Evidence<'_>) -> Outcome {
        let Some(span) = evidence.span_ns() else {
            return Outcome::NotEnough("there are no steps to look at".to_owned());
        };
        let live = evidence.store.memory().live_bytes();
        let mut candidates = vec![(MemoryOf::Live, growth(live, &span))];
        if let Some(signal) = evidence.store.signals().find("process.rss") {
            candidates.push((MemoryOf::Process, growth(&signal.series, &span)));
        }
        for gpu in evidence.store.hardware().gpus() {
            if let Some(signal) = evidence.store.signals().find(&format!("gpu.{gpu}.memory.used")) {
                candidates.push((MemoryOf::Gpu(gpu), growth(&signal.series, &span)));
            }
        }
        if candidates.iter().all(|(_, growth)| growth.is_none()) {
            return Outcome::NotEnough("too few readings of memory".to_owned());
        }
        let found = candidates.into_iter().filter_map(|(of, growth)| finding(evidence, &span, of, growth?));
        // Live and resident memory tell the same story: once is enough.
        found.take(1).collect::<Vec<Finding>>().into()
    }
}

/// The memory that grows.
#[derive(Clone, Copy, Debug)]
enum MemoryOf {
    /// What the program's allocator has given out.
    Live,
    /// What the process holds of the machine's.
    Process,
    /// What is in use of the GPU with this number.
    Gpu(u32),
}

impl fmt::Display for MemoryOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Live => f.write_str("the program's live memory"),
            Self::Process => f.write_str("the process's resident memory"),
            Self::Gpu(gpu) => write!(f, "GPU {gpu}'s memory in use"),
        }
    }
}

/// Lowest readings of the stretches; `None` where there are too few readings.
fn growth<T: Value>(series: &Series<T>, span: &Range<u64>) -> Option<[f64; STRETCHES]> {
    let mut lowest = [f64::INFINITY; STRETCHES];
    let mut readings = [0; STRETCHES];
    let len = span.end - span.start;
    for point in series.points().filter(|point| span.contains(&point.t_ns())) {
        if let Some(value) = point.value() {
            let at =
                (u128::from(point.t_ns().saturating_sub(span.start)) * STRETCHES as u128 / u128::from(len)) as usize;
            lowest[at] = lowest[at].min(value.as_f64());
            readings[at] += 1;
        }
    }
    readings.iter().all(|n| *n >= READINGS).then_some(lowest)
}

fn finding(evidence: &Evidence<'_>, span: &Range<u64>, of: MemoryOf, lowest: [f64; STRETCHES]) -> Option<Finding> {
    let (first, middle, last) = (lowest[0], lowest[STRETCHES / 2 - 1], lowest[STRETCHES - 1]);
    let grown = last - first;
    let rises = lowest.windows(2).filter(|pair| pair[1] > pair[0]).count();
    let goes_on = last - middle >= SECOND_HALF * grown;
    if grown < LEAST_BYTES.max(LEAST_SHARE * first) || rises < RISING || !goes_on {
        return None;
    }
    // From the first stretch to the last: one less than there are.
    let ns = (span.end - span.start) as f64 * (STRETCHES - 1) as f64 / STRETCHES as f64;
    let per_ns = grown / ns;
    let steps = evidence.rows.len() as f64 * (STRETCHES - 1) as f64 / STRETCHES as f64;
    let summary =
        format!("{of} grows from {} to {}, {} a step", bytes(first), bytes(last), bytes(grown / steps.max(1.0)));
    let mut finding = Finding::of_run(Kind::MemoryGrowth, Confidence::Medium, None, summary)
        .because(format!("it rises in {rises} of {} stretches and is not levelling off", STRETCHES - 1))
        .advise("look for objects kept from step to step: losses with their graph, lists of results, caches");
    finding.severity = Severity::Major;
    if !matches!(of, MemoryOf::Gpu(_))
        && let Ok(free) = evidence.store.hardware().reading("machine.memory.available")
    {
        finding = finding
            .because(format!("the machine's free memory will last another {}", duration((free / per_ns) as u64)));
    }
    Some(finding)
}
