//! Memory that grows from beginning to end and does not level off.

use std::fmt;
use std::ops::Range;

use gnntop_wire::{Metric, Quantity};

use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, Severity};
use crate::findings::number::Number;
use crate::store::{Bin, Series, Store, TimeColumns, Value};

/// Stretches into which the time is divided. The lowest reading of each counts, so that what a step takes and gives
/// back does not.
const STRETCHES: usize = 8;
/// This many of the changes from stretch to stretch must be increases.
const RISING: usize = STRETCHES - 2;
/// Smaller growth is not reported...
const LEAST_BYTES: f64 = 32e6;
/// ...nor is growth by a smaller share.
const LEAST_SHARE: f64 = 0.05;
/// The second half must have this share of the growth, or it is levelling off.
const SECOND_HALF: f64 = 0.3;
/// An hour, in nanoseconds.
const HOUR_NS: f64 = 3.6e12;
/// A run of at least this many nanoseconds is long...
const LONG_RUN_NS: u64 = 1_800_000_000_000;
/// ...if it is this many times as long as the steps looked at.
const LONGER: u64 = 2;
/// This fraction of a run is its beginning, in which a program takes its memory.
const BEGINNING: u64 = 20;
/// Readings needed in a stretch.
const READINGS: usize = 3;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let Some(steps_ns) = evidence.span_ns() else {
        return CheckOutcome::NotEnough("there are no steps to look at".to_owned());
    };
    let times = [Some(GrowthTime::Steps(steps_ns.clone())), whole_run(evidence, &steps_ns)];
    let times: Vec<GrowthTime> = times.into_iter().flatten().collect();
    let hosts = [MemoryKind::Live, MemoryKind::Process].into_iter();
    let gpus = evidence.store.hardware().gpus().into_iter().map(MemoryKind::Gpu);
    let (mut found, mut is_known) = (Vec::<Finding>::new(), false);
    for of in hosts.chain(gpus) {
        let growths: Vec<(&GrowthTime, [f64; STRETCHES])> =
            times.iter().filter_map(|time| Some((time, of.growth(evidence.store, time)?))).collect();
        let before = of.max_before(evidence.store, steps_ns.start);
        is_known |= !growths.is_empty();
        // Live and resident memory show the same growth: one is enough.
        if !of.is_gpu() && !found.is_empty() {
            continue;
        }
        // What was given back before may be given back again.
        let is_new = |lowest: &[f64; STRETCHES]| lowest[STRETCHES - 1] > before.unwrap_or(0.0);
        let mut news =
            growths.into_iter().filter(|(time, lowest)| matches!(time, GrowthTime::Run(_)) || is_new(lowest));
        found.extend(news.find_map(|(time, lowest)| finding(evidence, time, of, lowest)));
    }
    match is_known {
        true => found.into(),
        false => CheckOutcome::NotEnough("too few readings of memory".to_owned()),
    }
}

/// Where growth is looked for.
#[derive(Debug)]
enum GrowthTime {
    /// In the steps that are looked at.
    Steps(Range<u64>),
    /// In the whole run: the newest steps may show nothing of a slow leak.
    Run(Range<u64>),
}

impl GrowthTime {
    fn span(&self) -> &Range<u64> {
        match self {
            Self::Steps(span) | Self::Run(span) => span,
        }
    }

    /// Lowest readings of the stretches; `None` where there are too few readings.
    fn lowest<T: Value>(&self, series: &Series<T>) -> Option<[f64; STRETCHES]> {
        let span = self.span();
        if let Self::Run(_) = self {
            let stretches = TimeColumns::equal(span.clone(), STRETCHES);
            let bins = series.value_columns(&stretches, span.end, Some(0));
            let lowest: Option<Vec<f64>> = bins.into_iter().map(|bin| Some(bin?.min)).collect();
            return lowest?.try_into().ok();
        }
        let mut lowest = [f64::INFINITY; STRETCHES];
        let mut readings = [0; STRETCHES];
        let len = span.end - span.start;
        for point in series.points().filter(|point| span.contains(&point.t_ns())) {
            if let Some(value) = point.value() {
                let at = (u128::from(point.t_ns().saturating_sub(span.start)) * STRETCHES as u128 / u128::from(len))
                    as usize;
                lowest[at] = lowest[at].min(value.as_f64());
                readings[at] += 1;
            }
        }
        readings.iter().all(|n| *n >= READINGS).then_some(lowest)
    }
}

/// The time of the whole run up to these steps, without its beginning, if it is much longer than theirs.
fn whole_run(evidence: &StepEvidence<'_>, steps_ns: &Range<u64>) -> Option<GrowthTime> {
    let first_ns = evidence.store.first_ns()?;
    let ns = steps_ns.end.saturating_sub(first_ns);
    let is_long = ns >= LONG_RUN_NS && ns / LONGER >= steps_ns.end - steps_ns.start;
    is_long.then(|| GrowthTime::Run(first_ns + ns / BEGINNING..steps_ns.end))
}

/// The memory that grows.
#[derive(Clone, Copy, Debug)]
enum MemoryKind {
    /// What the program's allocator has handed out.
    Live,
    /// What the process holds of the machine's.
    Process,
    /// Memory in use on the GPU with this number.
    Gpu(u32),
}

impl MemoryKind {
    fn is_gpu(self) -> bool {
        matches!(self, Self::Gpu(_))
    }

    /// Bytes left to grow into, if known.
    fn free(self, store: &Store) -> Option<(String, f64)> {
        match self {
            Self::Live | Self::Process => {
                let free = store.hardware().reading(Quantity::MachineMemoryAvailable).ok()?;
                Some(("the machine's free memory".to_owned(), free))
            }
            Self::Gpu(gpu) => {
                let reading = |quantity: Quantity| store.hardware().reading(quantity.with_instance(gpu)).ok();
                let free = reading(Quantity::GpuMemoryTotal)? - reading(Quantity::GpuMemoryUsed)?;
                Some((format!("GPU {gpu}'s free memory"), free))
            }
        }
    }

    /// The maximum before a time.
    fn max_before(self, store: &Store, t_ns: u64) -> Option<f64> {
        let time = TimeColumns::from_edges(vec![store.first_ns()?, t_ns]);
        let most = |bins: Vec<Option<Bin>>| bins.first().copied().flatten().map(|bin| bin.max);
        let signal = |metric: Metric| most(store.signals().find(metric)?.series.value_columns(&time, t_ns, Some(0)));
        match self {
            Self::Live => most(store.memory().live_bytes().value_columns(&time, t_ns, Some(0))),
            Self::Process => signal(Quantity::ProcessRss.into()),
            Self::Gpu(gpu) => signal(Quantity::GpuMemoryUsed.with_instance(gpu)),
        }
    }

    /// Lowest readings of the stretches of a time; `None` where there are too few readings.
    fn growth(self, store: &Store, time: &GrowthTime) -> Option<[f64; STRETCHES]> {
        let signal = |metric: Metric| time.lowest(&store.signals().find(metric)?.series);
        match self {
            Self::Live => time.lowest(store.memory().live_bytes()),
            Self::Process => signal(Quantity::ProcessRss.into()),
            Self::Gpu(gpu) => signal(Quantity::GpuMemoryUsed.with_instance(gpu)),
        }
    }
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Live => f.write_str("the program's live memory"),
            Self::Process => f.write_str("the process's resident memory"),
            Self::Gpu(gpu) => write!(f, "GPU {gpu}'s memory in use"),
        }
    }
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
    let ns = (time.span().end - time.span().start) as f64 * part;
    let mut finding = Finding::for_run(FindingKind::MemoryGrowth, Confidence::Medium, None, |facts| {
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
    .with_advice("look for objects kept from step to step: losses with their graph, lists of results, caches");
    finding.severity = Severity::Major;
    Some(finding.with_evidence_lines(|facts| {
        let (what, free) = of.free(evidence.store)?;
        Some(format!("{what} will last another {}", facts.time(Number::Left, free / (grown / ns))))
    }))
}
