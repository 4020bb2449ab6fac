//! What hardware did over a range of time: the values that a gauge held, what a counter counted, and how much of it no kernel
//! ran.

use std::ops::Range;

use gnntop_wire::{Metric, Origin, Quantity, Reported};

use crate::store::{Point, Signal, Store, Track};

/// A GPU with no smaller utilisation, in thousandths of a percent, is what copies to it wait for.
const BUSY_GPU: f64 = 90e3;

/// The values of a gauge and how long each was held within `span`, in nanoseconds.
pub(super) fn held_values<'a>(signal: &'a Signal, span: &'a Range<u64>) -> impl Iterator<Item = (f64, u64)> + 'a {
    let points = signal.series.points();
    let ends = signal.series.points().skip(1).map(Point::t_ns).chain([span.end]);
    points.zip(ends).filter_map(|(point, end)| {
        let (from, to) = (point.t_ns().max(span.start), end.min(span.end));
        let value = point.value()?;
        (to > from).then(|| (value as f64, to - from))
    })
}

/// Share (0 to 1) of the time in which a gauge held values that satisfy `is`; `None` without readings.
pub(super) fn held_share(signal: &Signal, span: &Range<u64>, is: impl Fn(f64) -> bool) -> Option<f64> {
    let (yes, all) = held_values(signal, span).fold((0u64, 0u64), |(yes, all), (value, ns)| {
        (yes.saturating_add(if is(value) { ns } else { 0 }), all.saturating_add(ns))
    });
    (all > 0).then(|| yes as f64 / all as f64)
}

/// Mean of a gauge over the time in which it was read; `None` without readings.
pub(crate) fn held_mean(signal: &Signal, span: &Range<u64>) -> Option<f64> {
    let (sum, all) = held_values(signal, span)
        .fold((0.0, 0.0), |(sum, all), (value, ns)| (sum + value * ns as f64, all + ns as f64));
    (all > 0.0).then(|| sum / all)
}

/// A cumulative counter's increase between its readings within `span`, per second; `None` if there are fewer than two.
pub(super) fn rate_per_s(store: &Store, metric: impl Into<Metric>, span: &Range<u64>) -> Option<f64> {
    let points = store.signals().find(metric)?.series.points();
    let mut within = points.filter(|point| span.contains(&point.t_ns()));
    let mut before = within.next()?;
    let (mut increase, mut ns) = (0.0, 0u64);
    for point in within {
        if let (Some(from), Some(to)) = (before.value(), point.value())
            && to >= from
            && point.t_ns() > before.t_ns()
        {
            increase += (i128::from(to) - i128::from(from)) as f64;
            ns = ns.saturating_add(point.t_ns().saturating_sub(before.t_ns()));
        }
        before = point;
    }
    (ns > 0).then(|| increase * 1e9 / ns as f64)
}

/// Share of a time in which the main thread was ready to run and had no CPU, if that is measured.
pub(super) fn waiting_share(store: &Store, span: &Range<u64>) -> Option<f64> {
    rate_per_s(store, Quantity::MainThreadCpuWait, span).map(|ns| (ns / 1e9).min(1.0))
}

/// Whether steps that take longer by the share `slower` do so by `least` without the main thread's waits for a CPU, first and then: waits
/// that are not measured may be why.
pub(super) fn is_slower_without_waits(store: &Store, slower: f64, least: f64, spans: [Range<u64>; 2]) -> bool {
    let [Some(first), Some(then)] = spans.map(|span| waiting_share(store, &span)) else { return false };
    (1.0 + slower) * (1.0 - then) >= (1.0 + least) * (1.0 - first)
}

/// Share (0 to 1) of the machine's cores at work; `None` if their number is unknown.
pub(super) fn machine_busy(store: &Store, span: &Range<u64>) -> Option<f64> {
    let cores = store.hardware().cores().len();
    let busy = rate_per_s(store, Quantity::MachineCpuBusy, span)? / 1e9;
    (cores > 0).then(|| busy / cores as f64)
}

/// The cores that the program may use: those in its CPU mask, or fewer by the limit of its control group; `None` if neither is
/// known.
pub(super) fn allotted_cores(store: &Store) -> Option<f64> {
    let reading = |quantity: Quantity| store.signals().find(quantity)?.series.last()?.value().map(|value| value as f64);
    let quota = reading(Quantity::AllottedCpuQuota).map(|millipercent| millipercent / 1e5);
    let mask = reading(Quantity::AllottedCpuThreads);
    [mask, quota].into_iter().flatten().filter(|cores| *cores > 0.0).reduce(f64::min)
}

/// Whether a copy to the device waits for the work before it: then its time says nothing about the copy.
pub(super) fn copies_wait_for_device(store: &Store, span: &Range<u64>) -> bool {
    let is_queued = store.device().is_some_and(|device| device.steps().total() > 0 && !device.is_synchronised());
    let is_busy = |gpu: u32| {
        let signal = store.signals().find(Quantity::GpuUtil.with_instance(gpu))?;
        held_mean(signal, span)
    };
    is_queued || store.hardware().gpus().into_iter().filter_map(is_busy).any(|mean| mean >= BUSY_GPU)
}

/// How much of a time a device was idle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Idle {
    /// Share (0 to 1) of the time in which none of its streams had a kernel.
    pub share: f64,
    /// The part of it in which one of them had a copy.
    pub copying: f64,
    /// Kernels and copies that were traced.
    pub kernels: u64,
}

/// The share of `span` in which no stream of a device had a kernel; `None` if no kernels were traced.
pub(super) fn idle_share(store: &Store, span: Range<u64>) -> Option<Idle> {
    store.session().info().filter(|info| info.origin == Origin::Trace)?;
    let lanes: Vec<_> = store.tracks().iter().filter(|track| track.role.is_device()).filter_map(Track::lane).collect();
    // Older kernels are not kept individually.
    let from_ns = lanes.iter().map(|lane| lane.full_from_ns()).fold(span.start, u64::max);
    let (mut kernels, mut all) = (Vec::new(), Vec::new());
    for lane in lanes {
        lane.each_box(from_ns..span.end, |work, _| {
            let times = (work.start_ns.max(from_ns), work.end_ns.min(span.end));
            all.push(times);
            if store.reported(work.name) != Some(Reported::DeviceCopy) {
                kernels.push(times);
            }
        });
    }
    if all.is_empty() || from_ns >= span.end {
        return None;
    }
    let idle = |times: &mut Vec<(u64, u64)>| 1.0 - covered_ns(times) as f64 / (span.end - from_ns) as f64;
    let (share, without_copies) = (idle(&mut kernels), idle(&mut all));
    Some(Idle { share, copying: share - without_copies, kernels: all.len() as u64 })
}

/// How much time these cover together.
fn covered_ns(times: &mut [(u64, u64)]) -> u64 {
    times.sort_unstable();
    let (mut covered_ns, mut until_ns) = (0, 0);
    for (start_ns, end_ns) in times {
        covered_ns += end_ns.saturating_sub((*start_ns).max(until_ns));
        until_ns = until_ns.max(*end_ns);
    }
    covered_ns
}
