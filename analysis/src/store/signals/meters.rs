//! Inputs for energy, kept from the stream: the lines of its counters, and which phase ran when.
//!
//! Each energy counter, each power gauge and each CPU time counter by which energy may be divided gets a line, which stays
//! bounded however long the run is (`energy/line.rs`).

use std::collections::VecDeque;

use gnntop_wire::{Metric, Quantity, SignalId};

use super::signal::Signal;
use crate::energy::{CounterReader, CounterRules, EnergyLine, GapReason, PhaseSpan, Profile};

/// Most lines kept.
const MAX_METERS: usize = 48;
/// Most spans of phases kept, the newest.
const MAX_SPANS: usize = 1 << 15;
/// The highest plausible power of a GPU, of a processor package and of its memory, in watts.
const MAX_GPU_WATTS: f64 = 3000.0;
const MAX_CPU_WATTS: f64 = 1000.0;
const MAX_DRAM_WATTS: f64 = 300.0;
/// A nanosecond of CPU time counts as a microjoule: a thread is 1,000 W, and no machine has a million threads.
const MAX_CPU_TIME_WATTS: f64 = 1e9;
/// RAPL counters change about every millisecond.
const RAPL_OLDEST_NS: u64 = 1_000_000;
/// After this long without a reading, power is unknown in between.
const POWER_VALID_NS: u64 = 10_000_000_000;

/// A line and its input.
#[derive(Clone, Debug)]
struct Meter {
    signal: SignalId,
    metric: Metric,
    reads: ReadingKind,
    line: EnergyLine,
}

#[derive(Clone, Debug)]
enum ReadingKind {
    /// A counter of energy, or of CPU time in nanoseconds, which count as microjoules.
    Counter(CounterReader),
    /// A gauge in milliwatts, with its last value.
    Power(Option<(u64, i64)>),
}

/// All lines of a session.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Meters {
    all: Vec<Meter>,
    spans: VecDeque<PhaseSpan>,
    has_energy: bool,
}

impl Meters {
    /// Notes a signal, which may be one that measures energy.
    pub(in crate::store) fn define(&mut self, signal: &Signal) {
        if self.all.len() >= MAX_METERS || self.all.iter().any(|meter| meter.signal == signal.id) {
            return;
        }
        let Some(metric) = signal.metric.metric() else { return };
        let Some(reads) = reading_kind(metric.quantity()) else { return };
        self.has_energy |= is_energy(metric.quantity());
        self.all.push(Meter { signal: signal.id, metric, reads, line: EnergyLine::new() });
    }

    /// Takes a reading.
    pub(in crate::store) fn sample(&mut self, signal: &Signal, t_ns: u64, value: i64) {
        if let Some(counter) = signal.metric.metric().and_then(range_counter) {
            return self.set_range(counter, value);
        }
        let Some(meter) = self.all.iter_mut().find(|meter| meter.signal == signal.id) else { return };
        match &mut meter.reads {
            ReadingKind::Counter(counter) => match u64::try_from(value) {
                Ok(value) => meter.line.read(counter, t_ns, value),
                Err(_) => counter.note_break(GapReason::Absent),
            },
            ReadingKind::Power(last) => {
                add_power(&mut meter.line, *last, t_ns, value);
                *last = Some((t_ns, value));
            }
        }
    }

    /// Notes that a signal could not be read.
    pub(in crate::store) fn absent(&mut self, signal: SignalId) {
        match self.all.iter_mut().find(|meter| meter.signal == signal).map(|meter| &mut meter.reads) {
            Some(ReadingKind::Counter(counter)) => counter.note_break(GapReason::Absent),
            Some(ReadingKind::Power(last)) => *last = None,
            None => {}
        }
    }

    /// Notes that the program did not run for a while.
    pub(in crate::store) fn interrupt(&mut self) {
        for meter in &mut self.all {
            match &mut meter.reads {
                ReadingKind::Counter(counter) => counter.note_break(GapReason::Absent),
                ReadingKind::Power(last) => *last = None,
            }
        }
    }

    /// Notes that the machine was suspended.
    pub(in crate::store) fn suspended(&mut self) {
        for meter in &mut self.all {
            if let ReadingKind::Counter(counter) = &mut meter.reads {
                counter.note_break(GapReason::Suspended);
            }
        }
    }

    /// Notes that a phase ran on the training track.
    #[inline]
    pub(in crate::store) fn phase(&mut self, phase: usize, start_ns: u64, end_ns: u64) {
        if !self.has_energy {
            return;
        }
        if self.spans.len() >= MAX_SPANS {
            self.spans.pop_front();
        }
        self.spans.push_back(PhaseSpan { phase, start_ns, end_ns });
    }

    /// Sets a counter's largest value.
    fn set_range(&mut self, metric: Metric, max_value: i64) {
        let meter = self.all.iter_mut().find(|meter| meter.metric == metric);
        if let Some(Meter { reads: ReadingKind::Counter(counter), .. }) = meter {
            let max_value = u64::try_from(max_value).ok().filter(|max| *max > 0);
            counter.set_rules(CounterRules { max_value, ..*counter.rules() });
        }
    }

    /// The line of the signal that measures this, once it has two readings.
    pub(in crate::store) fn line(&self, metric: impl Into<Metric>) -> Option<&EnergyLine> {
        let metric = metric.into();
        let meter = self.all.iter().rev().find(|meter| meter.metric == metric)?;
        meter.line.span().map(|_| &meter.line)
    }

    /// What the signals measure that have a line or may get one.
    pub(in crate::store) fn metrics(&self) -> impl Iterator<Item = Metric> {
        self.all.iter().map(|meter| meter.metric)
    }

    /// The newest phases over time; `phases` is their number.
    pub(in crate::store) fn profile(&self, phases: usize) -> Profile {
        let mut spans: Vec<PhaseSpan> = self.spans.iter().copied().collect();
        // Inner spans arrive before the outer ones, which begin first.
        spans.sort_by_key(|span| (span.start_ns, std::cmp::Reverse(span.end_ns)));
        Profile::new(phases, spans)
    }
}

fn is_energy(quantity: Quantity) -> bool {
    matches!(quantity, Quantity::GpuEnergy | Quantity::CpuEnergy | Quantity::DramEnergy)
}

/// The counter whose range this is.
fn range_counter(metric: Metric) -> Option<Metric> {
    let counter = match metric.quantity() {
        Quantity::CpuEnergyRange => Quantity::CpuEnergy,
        Quantity::DramEnergyRange => Quantity::DramEnergy,
        _ => return None,
    };
    Some(counter.with_instance(metric.instance()))
}

/// How a quantity is read for energy; `None` if it is irrelevant.
fn reading_kind(quantity: Quantity) -> Option<ReadingKind> {
    let counter = |unit_uj, most_watts, oldest_ns| {
        ReadingKind::Counter(CounterReader::new(CounterRules { unit_uj, max_value: None, most_watts, oldest_ns }))
    };
    Some(match quantity {
        Quantity::GpuEnergy => counter(1000, MAX_GPU_WATTS, None),
        Quantity::CpuEnergy => counter(1, MAX_CPU_WATTS, Some(RAPL_OLDEST_NS)),
        Quantity::DramEnergy => counter(1, MAX_DRAM_WATTS, Some(RAPL_OLDEST_NS)),
        Quantity::MachineCpuBusy | Quantity::ProcessCpuTime => counter(1, MAX_CPU_TIME_WATTS, Some(0)),
        Quantity::GpuPower | Quantity::GpuPowerNow => ReadingKind::Power(None),
        _ => return None,
    })
}

/// Adds a gauge's power since its last value, as the mean of the two.
fn add_power(line: &mut EnergyLine, last: Option<(u64, i64)>, t_ns: u64, milliwatts: i64) {
    match last.filter(|(last_ns, _)| *last_ns < t_ns && t_ns - last_ns <= POWER_VALID_NS) {
        Some((last_ns, before)) => {
            let mean = (before.max(0) as f64 + milliwatts.max(0) as f64) / 2.0;
            // Milliwatts times nanoseconds are 1e-6 microjoules.
            line.add(t_ns, 0, (mean * (t_ns - last_ns) as f64 / 1e6).round() as u64);
        }
        None if line.knots().is_empty() => line.add(t_ns, 0, 0),
        None => line.add_gap(t_ns, GapReason::Absent),
    }
}
