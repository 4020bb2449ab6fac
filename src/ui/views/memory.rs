//! Memory over time on the columns of the step bars: live and at its peak, where it is allocated, what made the peak,
//! page faults, and whether it leaks.
//!
//! ```text
//! ▌steps  1 step a column ──────────────────────────────── 24.9 steps/s
//! ─memory  1 step a column, 3.27 s ─────────────────────────────────────
//!  leak            +1.20 MiB a step (95 %: 1.15 to 1.26), 230 steps
//!  live            212 MiB, at its peak 512 MiB
//!  512 MiB⣀⣀⣤⣤⣶⣶⣿⣿⣀⣀⣤⣤⣶⣶⣿⣿⣀⣀⣤⣤⣶⣶⣿⣿⣀⣀⣤⣤⣶⣶⣿⣿
//! ─the peak  512 MiB in backward, step 88 ──────────────────────────────
//!  +64.0 MiB       backward, layer 3      step 88, live 512 MiB
//! ```

mod device;

use std::ops::Range;

use gnntop_wire::{NameId, PhaseMemory, Quantity};

use super::quantities::{Readings, ShownMetric};
use crate::app::View;
use crate::ui::chart::time_axis::TimeAxis;
use crate::ui::panel::strips::{self, ChartSource, Label, StripRow};
use crate::ui::scene::Scene;
use crate::ui::sheet::Sheet;
use gnntop_analysis::figures::{bytes, count, duration, percent, quantity};
use gnntop_analysis::store::{Allocated, FEWEST_POINTS, Growth, GrowthSource, Series, Store, Trend};

/// Allocations of the peak that are listed.
const PEAK_LINES: usize = 6;
/// Phases that have a chart.
const PHASE_CHARTS: usize = 8;
/// Rows of the chart of live memory, as a share of the body.
const LIVE_SHARE: u16 = 6;
/// Rates are taken over at least this long.
const RATE_NS: u64 = 1_000_000_000;
/// What a program does that does not count its allocations.
const OF_PYTHON: &str = "not reported: what a Python program allocates is not counted";
const NO_ALLOCATOR: &str = "not reported: the program does not use gnntop-probe's TrackingAllocator";

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let rows = (body.height() / LIVE_SHARE).clamp(2, 8);
    strips::draw(body, scene, scene.app.line(View::Memory), |axis| lines(scene, axis, rows));
}

fn lines<'a>(scene: &Scene<'a>, axis: &TimeAxis, rows: u16) -> Vec<StripRow<'a>> {
    let read = Readings { scene, axis };
    let mut lines = vec![StripRow::heading("memory", &axis.note(scene))];
    lines.extend(leak(scene.store));
    lines.extend(live(&read, rows));
    lines.extend(resident(&read, rows));
    lines.extend(peak(scene));
    lines.extend(phases(&read));
    lines.extend(device::lines(&read));
    lines.extend(faults(&read));
    lines.extend(on_gpus(&read));
    lines.extend(kept(scene.store));
    lines
}

/// Whether memory grows from step to step, how sure that is, and what it comes from.
fn leak<'a>(store: &Store) -> Vec<StripRow<'a>> {
    let Some(Growth { bytes_per_step: trend, source: of }) = store.memory_growth() else {
        let reason =
            format!("not enough evidence: {FEWEST_POINTS} steps with a figure after the first tenth are needed");
        return vec![StripRow::fact("growth", Err(reason))];
    };
    let Trend { slope, low, high, points, is_steady } = trend;
    let signed = |value: f64| format!("{}{}", if value > 0.0 { "+" } else { "" }, bytes(value));
    let interval = format!("(95 %: {} to {})", signed(low), signed(high));
    let verdict = match () {
        () if trend.grows() && is_steady => format!("grows by {} a step {interval}", bytes(slope)),
        () if trend.grows() => format!("none seen: it rose, but not steadily; {} a step {interval}", signed(slope)),
        () if trend.shrinks() => format!("none: {} a step {interval}", signed(slope)),
        () => format!("none seen: {} a step {interval}", signed(slope)),
    };
    let left = time_left(store, &trend).filter(|_| trend.grows() && is_steady);
    let figures = match of {
        GrowthSource::StepEnds => "live bytes at the end",
        GrowthSource::LiveReadings => "readings of live bytes",
        GrowthSource::ResidentReadings => "readings of resident memory",
    };
    let about = format!("{figures} of {} steps, taken as independent", count(points as u64));
    let mut lines = vec![StripRow::fact("growth", Ok(verdict))];
    lines.extend(left.map(|left| StripRow::fact("", Ok(left))));
    lines.push(StripRow::Note(about));
    lines
}

/// How long the machine's free memory lasts at this rate.
fn time_left(store: &Store, trend: &Trend) -> Option<String> {
    let free = store.hardware().reading(Quantity::MachineMemoryAvailable).ok()?;
    let left_ns = store.free_memory_lasts_ns(trend.slope).filter(|ns| *ns < 1e18)?;
    Some(format!("at this pace the machine's {} still free last {}", bytes(free), duration(left_ns as u64)))
}

fn live<'a>(read: &Readings<'_, 'a>, rows: u16) -> Vec<StripRow<'a>> {
    let store = read.scene.store;
    let memory = store.memory();
    let Some(peak) = memory.peak_bytes() else {
        let why = if store.session().uses_python() { OF_PYTHON } else { NO_ALLOCATOR };
        return vec![StripRow::fact("live", Err(why.to_owned()))];
    };
    let source = memory.live_bytes();
    let at_cursor = ChartSource::Values(source).at_cursor(read.axis, store.now_ns());
    let last = source.last().and_then(|point| point.value());
    let value = if read.axis.cursor.is_some() { at_cursor } else { last };
    let say = |live: f64| format!("{}; at its peak {}", bytes(live), bytes(peak as f64));
    let mut lines = vec![StripRow::Fact {
        about: "live".to_owned(),
        value: value.map(say).ok_or_else(|| "not reported at the selected step".to_owned()),
        right: "the program's allocator".to_owned(),
    }];
    lines.extend(StripRow::chart(ChartSource::Values(source), Label::Top(bytes), Some(peak as f64), rows));
    lines
}

fn resident<'a>(read: &Readings<'_, 'a>, rows: u16) -> Vec<StripRow<'a>> {
    let peak = read.value(Quantity::ProcessRssPeak).ok();
    let swap = read.value(Quantity::ProcessSwap).ok().filter(|swap| *swap > 0.0);
    let most = peak.map(|peak| format!("; at its peak {}", bytes(peak))).unwrap_or_default();
    let swapped = swap.map(|swap| format!("; in swap {}", bytes(swap))).unwrap_or_default();
    let rows = if read.scene.store.memory().peak_bytes().is_some() { 1 } else { rows };
    let metric = Quantity::ProcessRss.into();
    let rss = ShownMetric { about: "resident", metric, full: peak, label: Label::Top(bytes), rows };
    read.lines(&rss, |rss| format!("{}{most}{swapped}", bytes(rss)))
}

/// The large allocations that were live at the peak, the largest first.
fn peak<'a>(scene: &Scene<'a>) -> Vec<StripRow<'a>> {
    let store = scene.store;
    let Some(peak) = store.memory().peak() else { return Vec::new() };
    let last = peak.made_by;
    let note =
        format!("{} live after the last of these {}", bytes(peak.live_bytes as f64), count(peak.live.len() as u64));
    let mut lines = vec![StripRow::heading("behind the peak", &note)];
    let mut live: Vec<&Allocated> = peak.live.iter().collect();
    live.sort_by_key(|made| (std::cmp::Reverse(made.event.bytes), std::cmp::Reverse(made.event.t_ns)));
    lines.extend(live.iter().take(PEAK_LINES).map(|made| {
        let before_ns = last.event.t_ns.saturating_sub(made.event.t_ns);
        let when = if before_ns == 0 { "the last".to_owned() } else { format!("{} before", duration(before_ns)) };
        StripRow::Fact { about: bytes(made.event.bytes as f64), value: Ok(place(store, made)), right: when }
    }));
    let rest = live.iter().skip(PEAK_LINES).map(|made| made.event.bytes as f64).sum::<f64>();
    let smaller = (peak.live_bytes as f64 - live.iter().map(|made| made.event.bytes as f64).sum::<f64>()).max(0.0);
    let more = live.len().saturating_sub(PEAK_LINES);
    let others = if more > 0 { format!("{} in {more} more large ones, ", bytes(rest)) } else { String::new() };
    lines.push(StripRow::Note(format!(
        "{others}{} in smaller or older ones; releases are matched by size",
        bytes(smaller)
    )));
    lines
}

/// The phase, the spans inside it and the step of an allocation, if known.
fn place(store: &Store, made: &Allocated) -> String {
    let t_ns = made.event.t_ns;
    let track = store.track(made.track);
    let mut words = vec![format!("in {}", phase_name(store, made.event.phase))];
    let around = track.and_then(|track| track.lane()).map(|lane| lane.enclosing_names(t_ns)).unwrap_or_default();
    words.extend(around.iter().filter(|name| **name != made.event.phase).map(|name| store.name(*name).to_owned()));
    let mut place = words.join(" > ");
    let step = store.steps().row_at(t_ns).filter(|row| row.end_ns() >= t_ns);
    if let Some(row) = step {
        place.push_str(&format!(", step {}", count(row.step().0)));
    }
    match track {
        Some(track) if store.training_track().is_none_or(|main| main.id != track.id) => {
            format!("{place}, on {}", track.text)
        }
        _ => place,
    }
}

fn phase_name(store: &Store, name: NameId) -> String {
    if name == NameId::NONE { "no phase".to_owned() } else { store.name(name).to_owned() }
}

/// What each phase allocated, and how fast over time; the phase that allocated most first.
fn phases<'a>(read: &Readings<'_, 'a>) -> Vec<StripRow<'a>> {
    let store = read.scene.store;
    let mut phases: Vec<(&'a PhaseMemory, &'a Series<f64>)> =
        store.memory().allocated_bytes().filter(|(phase, _)| phase.allocated_count > 0).collect();
    if phases.is_empty() {
        return Vec::new();
    }
    phases.sort_by_key(|(phase, _)| std::cmp::Reverse(phase.allocated_bytes));
    let all: f64 = phases.iter().map(|(phase, _)| phase.allocated_bytes as f64).sum();
    let mut lines = vec![StripRow::heading("allocated by phase", "read once a second")];
    for (at, (phase, series)) in phases.into_iter().enumerate() {
        let name = phase_name(store, phase.phase);
        let allocated = phase.allocated_bytes as f64;
        let now = series.recent_rate_per_s(RATE_NS).map(|rate| format!("{}/s; ", bytes(rate))).unwrap_or_default();
        let text = format!(
            "{now}{} in {} calls, {}; freed {}; live at most {}",
            bytes(allocated),
            quantity(phase.allocated_count as f64),
            percent(allocated / all),
            bytes(phase.freed_bytes as f64),
            bytes(phase.peak_bytes as f64),
        );
        let letter = read.scene.phase_style(&name).map(|look| format!("{} ", look.letter)).unwrap_or_default();
        lines.push(StripRow::fact(&format!("{letter}{name}"), Ok(text)));
        if at < PHASE_CHARTS {
            lines.extend(StripRow::chart(ChartSource::Rate(series), Label::Top(bytes), None, 1));
        }
    }
    lines
}

fn faults<'a>(read: &Readings<'_, 'a>) -> Vec<StripRow<'a>> {
    let mut lines = vec![StripRow::heading("page faults", "minor: served at once; major: waited for a disk")];
    let store = read.scene.store;
    let selected = read.scene.app.window().cursor().filter(|cursor| store.steps().row(*cursor).is_some());
    let of_selected = |(usage, sharing): (_, Range<u64>)| match sharing.end - sharing.start {
        1 => (usage, "in the selected step", 1),
        steps => (usage, "per step around the selected one", steps),
    };
    let of_steps = match selected {
        Some(cursor) => store.steps().shared_usage(cursor).map(of_selected),
        None => store.statistics().usage().map(|usage| (*usage, "a step", store.statistics().steps())),
    };
    let say = |usage: gnntop_wire::ThreadUsage, of: &str, steps: u64| {
        let each = |n: u64| quantity(n as f64 / steps.max(1) as f64);
        format!("{} minor, {} major {of}", each(usage.minor_faults), each(usage.major_faults))
    };
    let value = of_steps.map(|(usage, of, steps)| say(usage, of, steps));
    lines.push(StripRow::fact("training thread", value.ok_or_else(|| "not reported by the program".to_owned())));
    for (about, faults) in [("minor", Quantity::ProcessFaultsMinor), ("major", Quantity::ProcessFaultsMajor)] {
        let faults = ShownMetric { about, metric: faults.into(), full: None, label: Label::Top(quantity), rows: 1 };
        lines.extend(read.lines(&faults, |rate| format!("{} a second, all threads", quantity(rate))));
    }
    lines
}

/// Memory of the program on each GPU.
fn on_gpus<'a>(read: &Readings<'_, 'a>) -> Vec<StripRow<'a>> {
    let gpus = read.scene.store.hardware().gpus();
    let of_gpu = |gpu: u32| {
        let total = read.value(Quantity::GpuMemoryTotal.with_instance(gpu)).ok();
        let of_total = total.map(|total| format!(" of {}", bytes(total))).unwrap_or_default();
        let mut lines = vec![StripRow::heading(&format!("gpu {gpu}"), "")];
        let uses = [("used by all", Quantity::GpuMemoryUsed), ("by this program", Quantity::GpuProcessMemory)];
        for (about, used) in uses {
            let used =
                ShownMetric { about, metric: used.with_instance(gpu), full: total, label: Label::Top(bytes), rows: 1 };
            lines.extend(read.lines(&used, |used| format!("{}{of_total}", bytes(used))));
        }
        lines
    };
    gpus.into_iter().flat_map(of_gpu).collect()
}

/// What is no longer kept at full resolution.
fn kept<'a>(store: &Store) -> Option<StripRow<'a>> {
    let memory = store.memory();
    let (kept, all) = (memory.allocations().len() as u64, memory.allocation_count());
    let reduced =
        memory.live_bytes().reduced_to_ns().map(|ns| format!("; before, mean and extremes of {}", duration(ns)));
    (all > kept).then(|| {
        StripRow::Text(format!(
            "{} of {} large allocations are kept{}",
            count(kept),
            count(all),
            reduced.unwrap_or_default()
        ))
    })
}
