//! The allocator of a GPU's memory: how often it found none free, and how much it holds that no tensor uses.

use std::ops::Range;

use crate::findings::claim::{Claim, StepCost};
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, Severity};
use crate::findings::number::Number;
use crate::findings::stated_numbers::StatedNumber;
use crate::store::{CounterSeries, DeviceMemory};

/// What it holds is far above what tensors ever used from this many times that...
const FAR_ABOVE: f64 = 1.5;
/// ...this many bytes more...
const LEAST_BYTES: f64 = 1e9;
/// ...and this share of the GPU's memory. Below that nobody misses it.
const OF_GPU: f64 = 0.5;
/// A step is longer by an attempt if it exceeds the usual time by this many standard deviations.
const SIGMAS: f64 = 5.0;
/// What to try: blocks that can grow leave no holes.
const ADVICE: &str = "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or give batches fewer different sizes";

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let memory = evidence.store.device_memory();
    let Some((memory, span)) = memory.zip(evidence.span_ns()) else {
        return CheckOutcome::Nothing;
    };
    let found = [retries(evidence, &memory, &span), reserved(evidence, &memory, &span)];
    found.into_iter().flatten().collect::<Vec<Finding>>().into()
}

/// No memory was free, and cached blocks were given back to get some.
fn retries(evidence: &StepEvidence<'_>, memory: &DeviceMemory<'_>, span: &Range<u64>) -> Option<Finding> {
    let rose = rises(memory.retries?, span);
    let times: f64 = rose.iter().map(|(_, more)| more).sum();
    if times < 1.0 {
        return None;
    }
    let in_vain: f64 = memory.out_of_memory.map_or(0.0, |counter| rises(counter, span).iter().map(|(_, n)| n).sum());
    let costs: Vec<StepCost> = rose.iter().filter_map(|(between, _)| longest(evidence, between)).collect();
    let cost_ns: f64 = costs.iter().map(|cost| cost.ns).sum();
    let share = (cost_ns > 0.0).then(|| evidence.share(cost_ns));
    let finding = Finding::for_run(FindingKind::GpuAllocator, Confidence::High, share, |facts| {
        let times = how_often(facts.count(Number::Retries, times as u64));
        let cost = share.map(|share| format!(", which costs {} of the time", facts.share(Number::OfTime, share)));
        let cost = cost.unwrap_or_default();
        format!("GPU memory ran out {times}, and cached blocks were given back to get some{cost}")
    })
    .with_claim(Claim::Steps(costs))
    .with_evidence_lines(|facts| {
        let times = (in_vain > 0.0).then(|| how_often(facts.count(Number::InVain, in_vain as u64)))?;
        Some(format!("{times} that did not help"))
    })
    .with_evidence_lines(|facts| {
        let (used, reserved) = (highest(memory.peak?, span)?, highest(memory.reserved?, span)?);
        let (used, reserved) = (facts.bytes(Number::UsedAtMost, used), facts.bytes(Number::Reserved, reserved));
        Some(format!("tensors use at most {used}, and the allocator holds {reserved}"))
    });
    Some(Finding { severity: finding.severity.max(Severity::Minor), ..finding }.with_advice(ADVICE))
}

/// The allocator holds far more than tensors ever used.
fn reserved(evidence: &StepEvidence<'_>, memory: &DeviceMemory<'_>, span: &Range<u64>) -> Option<Finding> {
    let (used, reserved) = (highest(memory.peak?, span)?, memory.reserved?.last()?);
    let total = memory.total?.last()?;
    if reserved < FAR_ABOVE * used || reserved - used < LEAST_BYTES || reserved < OF_GPU * total {
        return None;
    }
    let whose = if evidence.store.session().uses_torch() { "PyTorch's allocator" } else { "the program's allocator" };
    let finding = Finding::for_run(FindingKind::GpuAllocator, Confidence::High, None, |facts| {
        let (reserved, total) = (facts.bytes(Number::Reserved, reserved), facts.bytes(Number::OfGpuMemory, total));
        let used = facts.bytes(Number::UsedAtMost, used);
        format!("{whose} holds {reserved} of the GPU's {total}, and tensors never used more than {used} of it")
    });
    Some(finding.with_evidence("the rest is cached, or lies in holes between tensors").with_advice(ADVICE))
}

/// A number of times, in words.
fn how_often(times: StatedNumber) -> String {
    if times.value == 1.0 { "once".to_owned() } else { format!("{times} times") }
}

/// The times between two readings in which a counter rose, and by how much.
fn rises(counter: &CounterSeries, span: &Range<u64>) -> Vec<(Range<u64>, f64)> {
    let points = counter.series.points().filter(|point| span.contains(&point.t_ns()));
    let readings: Vec<(u64, f64)> = points.filter_map(|point| Some((point.t_ns(), point.value()?))).collect();
    let pairs = readings.windows(2).map(|pair| (pair[0].0..pair[1].0, pair[1].1 - pair[0].1));
    pairs.filter(|(_, more)| *more > 0.0).collect()
}

/// What the longest step that ended in this time took beyond its usual time, if that is more than chance.
fn longest(evidence: &StepEvidence<'_>, between: &Range<u64>) -> Option<StepCost> {
    let rows = (0..evidence.rows.len()).filter(|row| {
        let end_ns = evidence.rows[*row].end_ns();
        end_ns > between.start && evidence.rows[*row].start_ns() < between.end
    });
    let row = rows.max_by(|a, b| evidence.excess_ns(*a).total_cmp(&evidence.excess_ns(*b)))?;
    let excess_ns = evidence.excess_ns(row);
    (excess_ns > SIGMAS * evidence.noise_ns).then(|| evidence.excess_cost(row, 1.0))
}

fn highest(counter: &CounterSeries, span: &Range<u64>) -> Option<f64> {
    let within = counter.series.points().filter(|point| span.contains(&point.t_ns()));
    within.filter_map(|point| point.value()).max_by(f64::total_cmp)
}
