//! Hardware in a report: means and extremes over the session, or the reason why there are none.

use std::collections::BTreeMap;

use gnntop_wire::{Metric, Quantity, SignalKind};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::curves::{self, Curve};
use super::memory::Memory;
use crate::report::document::{Block, ComparisonTable};
use gnntop_analysis::catalogue::{Catalogue, Statistic};
use gnntop_analysis::figures::{bytes, percent, quantity};
use gnntop_analysis::store::{Absence, Point, Signal, Store, Throughput};

/// Names of signals that are listed for one reason.
const NAMES_LISTED: usize = 3;

/// A measured quantity over the session, in JSON with its unit in the names, such as `mean_cores`.
#[derive(Clone, Debug, PartialEq)]
pub struct HardwareFigure {
    /// The unit of the numbers, such as `bytes` or `cores`.
    pub unit: &'static str,
    /// Mean; of a cumulative counter, what it counted divided by the time.
    pub mean: Option<f64>,
    /// Largest reading; absent for cumulative counters.
    pub max: Option<f64>,
    /// Why there is no number.
    pub reason: Option<String>,
}

impl HardwareFigure {
    /// Mean and most, or why there are none.
    fn describe(&self) -> String {
        let written = |value: f64| match self.unit {
            "bytes" => bytes(value),
            "percent" => percent(value / 100.0),
            "watts" => format!("{} W", quantity(value)),
            "celsius" => format!("{} °C", quantity(value)),
            unit => format!("{} {unit}", quantity(value)),
        };
        match (self.mean, self.max) {
            (Some(mean), Some(max)) => format!("mean {}, at most {}", written(mean), written(max)),
            (Some(mean), None) => format!("mean {}", written(mean)),
            (None, _) => format!("absent: {}", self.reason.as_deref().unwrap_or("no reason known")),
        }
    }
}

impl Serialize for HardwareFigure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(&format!("mean_{}", self.unit), &self.mean)?;
        map.serialize_entry(&format!("max_{}", self.unit), &self.max)?;
        map.serialize_entry("reason", &self.reason)?;
        map.end()
    }
}

/// Hardware readings over the session.
#[derive(Clone, Debug, Serialize)]
pub struct Hardware {
    /// CPU time of the process, in cores.
    pub process_cpu: HardwareFigure,
    /// Time in which the main thread was ready to run and had no CPU.
    pub main_thread_cpu_wait: HardwareFigure,
    /// Resident memory of the process.
    pub process_rss: HardwareFigure,
    /// CPU time of the whole machine, in cores.
    pub machine_cpu: HardwareFigure,
    /// CPU time taken by the host, in cores.
    pub machine_steal: HardwareFigure,
    /// Memory in use on the machine.
    pub machine_memory_used: HardwareFigure,
    /// The GPUs.
    pub gpus: Vec<Gpu>,
    /// Why there are none.
    pub no_gpu_reason: Option<String>,
}

/// One GPU over the session.
#[derive(Clone, Debug, Serialize)]
pub struct Gpu {
    /// NVML's number of it.
    pub index: u32,
    /// What the sensor calls it.
    pub device: String,
    /// Share of time in which any kernel ran.
    pub utilisation: HardwareFigure,
    /// Memory in use.
    pub memory_used: HardwareFigure,
    /// Power, as the driver averages it.
    pub power: HardwareFigure,
    /// Temperature of the die.
    pub temperature: HardwareFigure,
}

impl Hardware {
    pub(in crate::report) fn new(figures: &Catalogue<'_>) -> Self {
        let cores = |quantity: Quantity| figure(figures, quantity.into(), "cores", 1.0);
        let bytes = |quantity: Quantity| figure(figures, quantity.into(), "bytes", 1.0);
        let hardware = figures.store().hardware();
        Self {
            process_cpu: cores(Quantity::ProcessCpuTime),
            main_thread_cpu_wait: figure(figures, Quantity::MainThreadCpuWait.into(), "percent", 100.0),
            process_rss: bytes(Quantity::ProcessRss),
            machine_cpu: cores(Quantity::MachineCpuBusy),
            machine_steal: cores(Quantity::MachineCpuSteal),
            machine_memory_used: bytes(Quantity::MachineMemoryUsed),
            gpus: hardware.gpus().into_iter().map(|index| Gpu::new(figures, index)).collect(),
            no_gpu_reason: hardware.gpu_absence().map(|absence| absence.to_string()),
        }
    }
}

impl Gpu {
    fn new(figures: &Catalogue<'_>, index: u32) -> Self {
        let signal = |quantity: Quantity| figures.store().signals().find(quantity.with_instance(index));
        let of = |quantity: Quantity, unit, scale| figure(figures, quantity.with_instance(index), unit, scale);
        let named = [Quantity::GpuUtil, Quantity::GpuPower, Quantity::GpuMemoryUsed];
        Self {
            index,
            device: named.into_iter().find_map(signal).map_or_else(String::new, device),
            utilisation: of(Quantity::GpuUtil, "percent", 100.0),
            memory_used: of(Quantity::GpuMemoryUsed, "bytes", 1.0),
            power: of(Quantity::GpuPower, "watts", 1.0),
            temperature: of(Quantity::GpuTemperature, "celsius", 1.0),
        }
    }
}

fn device(signal: &Signal) -> String {
    signal.device.clone()
}

/// What is measured, its figures times `scale`.
fn figure(figures: &Catalogue<'_>, metric: Metric, unit: &'static str, scale: f64) -> HardwareFigure {
    let name = metric.to_string();
    let measured = figures.subject("QUANTITY", &name);
    let is_counter = metric.quantity().kind() == SignalKind::Counter;
    let mean = measured.get(if is_counter { Statistic::PerS } else { Statistic::Mean });
    let max = measured.value(Statistic::Max).or_else(|| measured.value(Statistic::Peak));
    HardwareFigure {
        unit,
        max: max.map(|max| max * scale),
        mean: mean.as_ref().ok().map(|mean| mean.value * scale),
        reason: mean.err().map(|absent| absent.to_string()),
    }
}

/// Why a signal has no value at the end; `None` if it has one.
fn absence(store: &Store, signal: &Signal) -> Option<String> {
    match signal.series.last() {
        None => Some(Absence::NotReadYet.to_string()),
        Some(Point::Break { reason, .. }) => Some(store.name(*reason).to_owned()),
        Some(Point::Value { .. }) => None,
    }
}

/// The signals without a value at the end, by reason.
pub(in crate::report) fn not_measured(store: &Store) -> Vec<String> {
    let mut by_reason: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for signal in store.signals().all() {
        if let Some(reason) = absence(store, signal) {
            by_reason.entry(reason).or_default().push(signal.metric.to_string());
        }
    }
    let sentence = |(reason, names): (String, Vec<String>)| {
        let listed = names[..names.len().min(NAMES_LISTED)].join(", ");
        let more = names.len().saturating_sub(NAMES_LISTED);
        if more > 0 { format!("{listed} and {more} more: {reason}") } else { format!("{listed}: {reason}") }
    };
    by_reason.into_iter().map(sentence).collect()
}

/// The figures of one recording that stand in one table.
pub(in crate::report) type Machine<'r> = (&'r Throughput, &'r Memory, &'r Hardware);

/// Throughput, memory and hardware: a row for each quantity, a column for each recording.
pub(in crate::report) fn blocks(runs: &[(&str, Machine<'_>)], curves: &[Curve]) -> Vec<Block> {
    let mut all = ComparisonTable::new("", runs);
    let rate = |rate: Option<f64>| rate.map(|rate| format!("{}/s", quantity(rate)));
    all.row("steps", |(t, ..)| rate(t.steps_per_s));
    all.row("graphs", |(t, ..)| rate(t.graphs_per_s));
    all.row("nodes", |(t, ..)| rate(t.nodes_per_s));
    all.row("edges", |(t, ..)| rate(t.edges_per_s));
    all.row("seeds", |(t, ..)| rate(t.seeds_per_s));
    all.row("most memory live", |(_, memory, _)| memory.peak_live_bytes.map(|n| bytes(n as f64)));
    all.row("process CPU", |(.., h)| Some(h.process_cpu.describe()));
    let wait =
        |h: &Hardware| Some(&h.main_thread_cpu_wait).filter(|wait| wait.mean.is_some()).map(HardwareFigure::describe);
    all.row("main thread waits", |(.., h)| wait(h).map(|wait| format!("{wait}, for a CPU")));
    all.row("process memory", |(.., h)| Some(h.process_rss.describe()));
    all.row("machine CPU", |(.., h)| Some(h.machine_cpu.describe()));
    all.row("machine steal", |(.., h)| Some(h.machine_steal.describe()));
    all.row("machine memory", |(.., h)| Some(h.machine_memory_used.describe()));
    all.row("GPU", |(.., h)| h.no_gpu_reason.as_ref().map(|why| format!("none: {why}")));
    for at in 0..runs.iter().map(|(_, (.., hardware))| hardware.gpus.len()).max().unwrap_or(0) {
        let index = runs.iter().find_map(|(_, (.., hardware))| hardware.gpus.get(at)).map_or(0, |gpu| gpu.index);
        all.row(&format!("GPU {index}"), |(.., h)| Some(h.gpus.get(at)?.device.clone()));
        all.row(&format!("GPU {index} utilisation"), |(.., h)| Some(h.gpus.get(at)?.utilisation.describe()));
        all.row(&format!("GPU {index} memory"), |(.., h)| Some(h.gpus.get(at)?.memory_used.describe()));
        all.row(&format!("GPU {index} power"), |(.., h)| Some(h.gpus.get(at)?.power.describe()));
        all.row(&format!("GPU {index} temperature"), |(.., h)| Some(h.gpus.get(at)?.temperature.describe()));
    }
    let heading = Block::heading("Throughput, memory and hardware");
    [heading, Block::picture(curves::picture(curves))].into_iter().chain(all.table()).collect()
}
