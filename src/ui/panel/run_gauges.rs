//! What the overview's strip shows beside processor, memory and GPU: power, what the program's allocator holds, and its loss.

use crate::ui::chart::spark;
use crate::ui::panel::gauge::Gauge;
use crate::ui::scene::Scene;
use gnntop_analysis::energy::EnergyScope;
use gnntop_analysis::figures::{bytes, quantity};

/// Time of a column, and time over which power is averaged.
const SECOND_NS: u64 = 1_000_000_000;
/// Newest steps whose losses are shown.
const LOSSES_MOST: usize = 4096;

/// Power of all known components over the last second, its scope and origin, and the energy of a mean step.
pub fn power(scene: &Scene<'_>, columns: u16) -> Gauge {
    let gauge = |series, value| Gauge { name: "power".to_owned(), series, full: None, value };
    let Some(told) = scene.app.energy() else { return gauge(Vec::new(), Err("not known yet".to_owned())) };
    let (book, scope) = (&told.book, told.figures.scope);
    let now = book.read_until(scope).map(|end_ns| end_ns.saturating_sub(SECOND_NS)..end_ns);
    let watts = now.and_then(|now| book.total_watts(scope, now));
    let (Some(watts), Some(all)) = (watts, told.figures.in_scope()) else {
        return gauge(Vec::new(), Err("no counter of energy or power, no load to model it by".to_owned()));
    };
    let newest = scene.store.now_ns() / SECOND_NS;
    let second = |at: u64| book.total_watts(scope, at * SECOND_NS..(at + 1) * SECOND_NS);
    let ages = (0..u64::from(columns)).rev();
    let series = ages.map(|age| newest.checked_sub(age).and_then(second)).collect();
    let whose = if scope == EnergyScope::Job { "job" } else { "devices" };
    let step = told.figures.step.map(|step| format!(", {} J a step", quantity(step.joules))).unwrap_or_default();
    gauge(series, Ok(format!("{} W {whose} {}{step}", quantity(watts), all.label.as_str())))
}

/// Bytes that the program's allocator holds; `None` if it does not report them.
pub fn live_memory(scene: &Scene<'_>, columns: u16) -> Option<Gauge> {
    let memory = scene.store.memory();
    let live = memory.live_bytes().last()?.value()?;
    let peak = memory.peak_bytes().map(|peak| format!(", peak {}", bytes(peak as f64))).unwrap_or_default();
    let points = memory.live_bytes().points().rev().filter_map(|point| Some((point.t_ns(), point.value()?)));
    let series = spark::value_columns(points, scene.store.now_ns(), columns);
    Some(Gauge { name: "heap".to_owned(), series, full: None, value: Ok(format!("{}{peak}", bytes(live))) })
}

/// The loss that the program last read; `None` if it never did.
pub fn loss(scene: &Scene<'_>, columns: u16) -> Option<Gauge> {
    let last = scene.store.statistics().last_loss()?;
    let rows = scene.store.steps().all().rev().take(LOSSES_MOST);
    let values = rows.filter_map(|row| Some((row.end_ns(), row.loss()?)));
    let series = spark::value_columns(values, scene.store.now_ns(), columns);
    let first = scene.store.statistics().first_loss().unwrap_or(last);
    let value = Ok(format!("{last:.4}, first {first:.4}"));
    Some(Gauge { name: "loss".to_owned(), series, full: None, value })
}
