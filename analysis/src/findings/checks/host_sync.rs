//! Waits for a device in the middle of steps: values of tensors that are read, copies to the CPU, synchronization. Meanwhile the
//! program queues nothing, so that the device runs out of work.
//!
//! The wait alone is no cost: a program that keeps its device busy waits for it somewhere. It costs at most the time in which the
//! device is idle.

use std::collections::BTreeMap;

use gnntop_wire::{NameId, Quantity, Reported};

use crate::figures::FigureUnit;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::hardware;
use crate::findings::number::Number;
use crate::findings::stated_numbers::StatedNumbers;
use crate::store::{LaneBox, Store, Track};

/// Reported from this share of the wall time.
const WORTH_REPORTING: f64 = 0.05;
/// A device that is idle less than this loses nothing.
const BUSY: f64 = 0.05;
/// From this share of idle time on the waits are its likely cause.
const IDLE: f64 = 0.15;
/// Places that are named.
const NAMED: usize = 3;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let waits = Waits::find(evidence);
    let share = evidence.share(waits.ns);
    let idle = idle_share(evidence);
    if share < WORTH_REPORTING || idle.is_some_and(|idle| idle < BUSY) {
        return CheckOutcome::Nothing;
    }
    let confidence = if idle.is_some_and(|idle| idle >= IDLE) { Confidence::Medium } else { Confidence::Low };
    let cost = idle.map(|idle| idle.min(share));
    Finding::for_run(FindingKind::HostSync, confidence, cost, |facts| {
        let each = facts.note(Number::TimesPerStep, waits.times / evidence.rows.len() as f64, FigureUnit::Number);
        let share = facts.share(Number::OfTime, share);
        format!("the program waits for the GPU {:.1} times a step, {share} of the time", each.value)
    })
    .with_evidence_lines(|facts| waits.places(facts))
    .with_evidence_lines(|facts| {
        let most = if idle.is_some_and(|idle| idle < share) { ", the most that they can cost" } else { "" };
        let idle = idle.map(|idle| facts.share(Number::GpuIdle, idle));
        idle.map(|idle| format!("the GPU is idle {idle} of the time{most}: after each wait it has nothing to do"))
    })
    .with_advice(
        "read values once in many steps: add losses up as tensors (detach()), and call item() only to print them",
    )
    .into()
}

/// The waits of the steps looked at.
#[derive(Default)]
struct Waits {
    times: f64,
    ns: f64,
    /// How many of them are known one by one: the longer ones.
    listed: f64,
    /// These, by their names: how many, and how long in all.
    by_place: BTreeMap<String, (u64, f64)>,
}

impl Waits {
    fn find(evidence: &StepEvidence<'_>) -> Self {
        let mut found = Self::default();
        let Some(span) = evidence.span_ns() else { return found };
        let Some(lane) = evidence.store.training_track().and_then(Track::lane) else { return found };
        let (mut around, mut spans_ns, mut spans) = (Vec::new(), 0.0, 0);
        lane.each_box(span.clone(), |one, depth| {
            around.truncate(depth);
            around.push(one.name);
            if evidence.store.reported(one.name) == Some(Reported::DeviceWait) && one.start_ns >= span.start {
                let (times, ns) = found.by_place.entry(place(evidence.store, &around)).or_default();
                (*times, *ns) = (*times + 1, *ns + length(one));
                (spans, spans_ns) = (spans + 1, spans_ns + length(one));
            }
        });
        let sum = |what| {
            let series = &evidence.store.counter_of(what)?.series;
            Some(
                series
                    .points()
                    .filter(|point| span.contains(&point.t_ns()))
                    .filter_map(|point| point.value())
                    .sum::<f64>(),
            )
        };
        // A trace has spans alone; a live session also has shorter waits, which have none.
        found.times = sum(Reported::DeviceWaits).unwrap_or(0.0).max(f64::from(spans));
        found.listed = f64::from(spans);
        found.ns = sum(Reported::DeviceWaitTime).unwrap_or(0.0).max(spans_ns);
        found
    }

    /// A line for each place, those that take longest first.
    fn places(&self, facts: &mut StatedNumbers) -> Vec<String> {
        let mut places: Vec<(&String, &(u64, f64))> = self.by_place.iter().collect();
        places.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
        let longer = if self.listed < self.times { " longer ones" } else { " x" };
        let line = |(place, (times, ns)): &(&String, &(u64, f64))| {
            facts.about(place, |facts| {
                let (times, all) = (facts.count(Number::Times, *times), facts.time(Number::InAll, *ns));
                format!("{times}{longer}, {all}: {place}")
            })
        };
        places.iter().take(NAMED).map(line).collect()
    }
}

fn length(one: &LaneBox) -> f64 {
    one.end_ns.saturating_sub(one.start_ns) as f64
}

/// Where a wait is: as its name says, or in the outermost operator around it.
fn place(store: &Store, around: &[NameId]) -> String {
    let own = around.last().map_or("", |name| store.name(*name));
    if let Some(place) = own.strip_prefix(Reported::DeviceWait.text()) {
        return place.to_owned();
    }
    let is_operator = |name: &&NameId| store.name(**name).starts_with("aten::");
    around.iter().find(is_operator).map_or(own, |name| store.name(*name)).to_owned()
}

/// Share (0 to 1) of the time in which the GPU of the run has nothing to do: by its kernels, else by readings.
fn idle_share(evidence: &StepEvidence<'_>) -> Option<f64> {
    let span = evidence.span_ns()?;
    if let Some(idle) = hardware::idle_share(evidence.store, span.clone()) {
        return Some(idle.share);
    }
    let gpus = evidence.store.hardware().gpus();
    let busy = gpus.into_iter().filter_map(|gpu| {
        let signal = evidence.store.signals().find(Quantity::GpuUtil.with_instance(gpu))?;
        Some(hardware::held_mean(signal, &span)? / 1e5)
    });
    busy.reduce(f64::max).map(|busy| 1.0 - busy.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use gnntop_fixtures::{MS, START_NS, StreamBuilder, each_item};
    use gnntop_wire::{Event, SignalKind, Step, StepId, TrackRole, Unit};

    use super::*;
    use crate::findings::all_findings;

    /// 200 steps of 30 ms that wait twice for so long, while the GPU is so busy, in percent.
    fn found(wait_ns: u64, gpu: Option<i64>) -> Option<Finding> {
        let mut stream = StreamBuilder::new("reads");
        let main = stream.track(TrackRole::Training, "train");
        let sensors = stream.track(TrackRole::Sensors, "sensors");
        let util = gpu.map(|percent| (stream.signal("gpu.0.util", Unit::MilliPercent, SignalKind::Gauge), percent));
        for step in 1..=200 {
            let start_ns = START_NS + step * 30 * MS;
            for (number, place) in [(0, "train (train.py:9)"), (1, "log (train.py:30)")] {
                let at_ns = start_ns + (5 + number * 10) * MS;
                let text = format!("wait for the device: item in {place}");
                stream.span(main, step, &text, at_ns, at_ns + wait_ns / (number + 1));
            }
            let end_ns = start_ns + 30 * MS;
            stream.phase(main, step, "forward", start_ns, end_ns);
            stream.counter(main, "waits for the device", end_ns - 1, 4.0);
            stream.counter(main, "waits for the device (ns)", end_ns - 1, 1.6 * wait_ns as f64);
            stream.event(main, Event::Step(Step { step: StepId(step), start_ns, end_ns, ..Step::default() }));
            if let Some((signal, percent)) = util {
                stream.sample(sensors, signal, end_ns, percent * 1000);
            }
        }
        let mut store = Store::new();
        stream.end(START_NS + 202 * 30 * MS);
        each_item(&stream.bytes(), |item| store.apply(item));
        all_findings(&store).found.into_iter().find(|finding| finding.kind == FindingKind::HostSync)
    }

    #[test]
    fn waits_are_found_with_their_lines_where_the_gpu_is_idle() {
        let it = found(4 * MS, Some(60)).unwrap();
        assert_eq!((it.confidence, it.fact(Number::TimesPerStep)), (Confidence::Medium, Some(4.0)), "{it:#?}");
        let (of_time, cost) = (it.fact(Number::OfTime).unwrap(), it.share.unwrap());
        assert!((of_time - 0.213).abs() < 0.005 && cost <= of_time, "{it:#?}");
        assert!(it.evidence[0].ends_with(": item in train (train.py:9)"), "{it:#?}");
        assert!(it.evidence[1].ends_with(": item in log (train.py:30)"), "{it:#?}");
        assert!(found(12 * MS, Some(90)).is_some_and(|it| it.share.unwrap() < 0.11), "it costs no more than is idle");
    }

    #[test]
    fn waits_for_a_busy_gpu_cost_nothing() {
        assert_eq!(found(12 * MS, Some(99)), None);
        assert_eq!(found(MS / 2, Some(60)), None, "too short");
        let unknown = found(4 * MS, None).unwrap();
        assert_eq!((unknown.confidence, unknown.share), (Confidence::Low, None), "{unknown:#?}");
    }
}
