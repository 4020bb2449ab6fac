//! What the overview's strip shows beside processor, memory and GPU: power, what the program's allocator holds, and its loss.

use gnntop_wire::{SignalKind, Unit};

use super::Scene;
use super::hardware::Item;
use super::spark::{self, Columns};
use crate::figures::{bytes, quantity};
use crate::store::Signal;

/// Newest steps whose losses are looked at.
const LOSSES_MOST: usize = 4096;

/// Power of all components that have a counter of energy, else of the GPUs that tell theirs, and the energy of a mean
/// step at this power.
pub fn power(scene: &Scene<'_>, columns: u16) -> Item {
    let signals = scene.store.signals();
    let mut parts: Vec<(&Signal, f64)> =
        signals.all().iter().filter_map(|signal| Some((signal, watts_per_unit(signal)?))).collect();
    parts.retain(|(signal, _)| scene.store.hardware().of(signal).is_ok());
    if parts.is_empty() {
        let gauge = |gpu: &u32| signals.find(&format!("gpu.{gpu}.power")).map(|signal| (signal, 1e-3));
        parts = scene.store.hardware().gpus().iter().filter_map(gauge).collect();
    }
    let watts = parts.iter().filter_map(|(signal, factor)| Some(scene.store.hardware().of(signal).ok()? * factor));
    let value = watts.reduce(|a, b| a + b).map(|watts| words(watts, &parts, scene));
    let series = parts.iter().map(|(signal, factor)| scaled(signal, *factor, scene, columns)).reduce(added);
    let value = value.ok_or_else(|| "no counter of energy or power".to_owned());
    Item { name: "power".to_owned(), series: series.unwrap_or_default(), full: None, value }
}

/// Watts, of what, and joules a step.
fn words(watts: f64, parts: &[(&Signal, f64)], scene: &Scene<'_>) -> String {
    let of = match parts {
        [(signal, _)] => signal.name.rsplit_once('.').map_or("", |(part, _)| part).replace('.', " "),
        _ => format!("{} parts", parts.len()),
    };
    match scene.store.statistics().period().mean_ns() {
        Some(ns) => format!("{watts:.0} W {of}, {} J a step", quantity(watts * ns / 1e9)),
        None => format!("{watts:.0} W {of}"),
    }
}

fn scaled(signal: &Signal, factor: f64, scene: &Scene<'_>, columns: u16) -> Columns {
    let series = spark::of_signal(signal, scene.store.now_ns(), columns);
    series.into_iter().map(|value| value.map(|value| value * factor)).collect()
}

/// Sums; where one is not known, neither is the sum.
fn added(a: Columns, b: Columns) -> Columns {
    a.into_iter().zip(b).map(|(a, b)| Some(a? + b?)).collect()
}

/// Watts in one unit of a counter of energy, being one a second; `None` for other signals.
fn watts_per_unit(signal: &Signal) -> Option<f64> {
    match (signal.unit, signal.kind) {
        (Unit::Millijoules, SignalKind::Counter) => Some(1e-3),
        (Unit::Microjoules, SignalKind::Counter) => Some(1e-6),
        _ => None,
    }
}

/// Bytes that the program's allocator holds; `None` where it does not tell.
pub fn live_memory(scene: &Scene<'_>, columns: u16) -> Option<Item> {
    let memory = scene.store.memory();
    let live = memory.live_bytes().last()?.value()?;
    let peak = memory.peak_bytes().map(|peak| format!(", peak {}", bytes(peak as f64))).unwrap_or_default();
    let points = memory.live_bytes().points().rev().filter_map(|point| Some((point.t_ns(), point.value()?)));
    let series = spark::of_values(points, scene.store.now_ns(), columns);
    Some(Item { name: "heap".to_owned(), series, full: None, value: Ok(format!("{}{peak}", bytes(live))) })
}

/// The loss that the program last read; `None` where it never did.
pub fn loss(scene: &Scene<'_>, columns: u16) -> Option<Item> {
    let last = scene.store.statistics().last_loss()?;
    let rows = scene.store.steps().all().rev().take(LOSSES_MOST);
    let values = rows.filter_map(|row| Some((row.end_ns(), row.loss()?)));
    let series = spark::of_values(values, scene.store.now_ns(), columns);
    let first = scene.store.statistics().first_loss().unwrap_or(last);
    let value = Ok(format!("{last:.4}, first {first:.4}"));
    Some(Item { name: "loss".to_owned(), series, full: None, value })
}
