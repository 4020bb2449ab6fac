//! The hardware strip: processor, memory, GPU, power, and what the program counts itself, such as its loss and the depth
//! of its queues, each with its last seconds. A missing value is a dash and the reason, never a zero.
//!
//! ```text
//!  cpu      ▅▆▆▇▆ 1.92 cores               machine  ▆▇▇▇▇ 1.97 of 2 cores
//!  rss      ▃▃▃▃▃ 512 MiB                  memory   ▃▃▃▃▃ 7.12 of 23.4 GiB
//!  gpu      — no GPU: libnvidia-ml.so.1 …  power    — not measured
//!  loss     ▇▅▃▂▁ 0.0142                   queue    ▂▃▂▁▂ 3
//! ```

use crate::app::Panel;
use crate::ui::chart::spark::{self, Columns};
use crate::ui::headings::Title;
use crate::ui::panel::gauges::{self, Gauge};
use crate::ui::scene::Scene;
use crate::ui::sheet::Sheet;
use crate::wrap::wrapped;
use gnntop_analysis::figures::{bytes, duration, hundredths, percent, quantity};
use gnntop_analysis::store::{Absence, CounterSeries, HardwareValue, Signal};
use gnntop_wire::{Metric, Quantity, Reported};

/// Narrowest cell.
const CELL_LEAST: u16 = 30;
/// Program counters that are shown.
const COUNTERS_SHOWN: usize = 8;
/// Shares below this are not worth a word.
const WORTH_A_WORD: f64 = 0.01;

/// Rows that the panel takes at this width.
pub fn rows(scene: &Scene<'_>, width: u16) -> u16 {
    let gpus = scene.store.hardware().gpus().len().max(1);
    let told = gauges::live_memory(scene, 0).iter().chain(&gauges::loss(scene, 0)).count();
    let items = 5 + gpus + told + counters(scene).count();
    1 + items.div_ceil(usize::from(across(width))).min(12) as u16
}

/// Cells beside each other.
fn across(width: u16) -> u16 {
    (width / CELL_LEAST).clamp(1, if width < 150 { 2 } else { 4 })
}

/// Draws the panel. With one or two rows there is no title.
pub fn draw(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let titled = sheet.height() > 2;
    if titled {
        Title { panel: Panel::Hardware, name: "hardware", note: "the last seconds", right: "" }.draw(sheet, scene);
    }
    let mut sheet = sheet.rows(u16::from(titled), 0);
    let across = across(sheet.width());
    let cell = sheet.width() / across;
    let columns = gauges::series_width(cell);
    for (at, gauge) in (0..).zip(gauges(scene, columns)) {
        let (x, y) = (at % across * cell, at / across);
        if y >= sheet.height() {
            break;
        }
        gauge.draw(&mut sheet.part(x, y, cell, 1), scene);
    }
}

/// Draws the panel as all there is, with what to do to see more.
pub fn draw_alone(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let panel = rows(scene, sheet.width());
    draw(&mut sheet.part(0, 0, u16::MAX, panel), scene);
    let hint = scene.app.status().hint.as_deref().unwrap_or_default();
    let room = usize::from(sheet.width().saturating_sub(2)).max(1);
    for (y, line) in (panel.saturating_add(1)..).zip(wrapped(hint, room)) {
        sheet.text(1, y, &line, scene.theme.plain());
    }
}

/// All quantities in the order in which they are shown.
fn gauges(scene: &Scene<'_>, columns: u16) -> Vec<Gauge> {
    let mut gauges = vec![process_cpu(scene, columns), machine_cpu(scene, columns)];
    gauges.extend([process_memory(scene, columns), machine_memory(scene, columns)]);
    let gpus = scene.store.hardware().gpus();
    gauges.extend(gpus.iter().map(|gpu| gpu_gauge(scene, columns, *gpu, gpus.len())));
    if gpus.is_empty() {
        gauges.push(no_gpu(scene));
    }
    gauges.push(gauges::power(scene, columns));
    gauges.extend(gauges::live_memory(scene, columns));
    gauges.extend(gauges::loss(scene, columns));
    gauges.extend(counters(scene).map(|counter| counter_gauge(scene, columns, counter)));
    gauges
}

/// The program's counters that are shown, without its loss.
fn counters<'a>(scene: &Scene<'a>) -> impl Iterator<Item = &'a CounterSeries> {
    let loss = scene.store.loss().map(|loss| loss.counter.name);
    scene.store.program_counters().filter(move |counter| Some(counter.name) != loss).take(COUNTERS_SHOWN)
}

/// The series of a signal, empty where there is no such signal.
fn series(scene: &Scene<'_>, metric: impl Into<Metric>, columns: u16) -> Columns {
    let of = |signal: &Signal| spark::signal_columns(signal, scene.store.now_ns(), columns);
    scene.store.signals().find(metric).map(of).unwrap_or_default()
}

fn gauge_value<T>(reading: Result<T, Absence<'_>>, say: impl FnOnce(T) -> String) -> Result<String, String> {
    reading.map(say).map_err(|absence| absence.to_string())
}

/// How many cores the machine has, if each is published.
fn core_count(scene: &Scene<'_>) -> Option<usize> {
    Some(scene.store.hardware().cores().len()).filter(|cores| *cores > 0)
}

fn process_cpu(scene: &Scene<'_>, columns: u16) -> Gauge {
    let value = gauge_value(scene.store.hardware().process_cores(), |cores| format!("{} cores", hundredths(cores)));
    let full = core_count(scene).map(|cores| cores as f64 * 1e9);
    Gauge { name: "cpu".to_owned(), series: series(scene, Quantity::ProcessCpuTime, columns), full, value }
}

fn machine_cpu(scene: &Scene<'_>, columns: u16) -> Gauge {
    let cpu = scene.store.hardware().machine_cpu();
    let cores = core_count(scene);
    let say = |busy: f64| {
        let mut text = match cores {
            Some(cores) => format!("{} of {cores} cores", hundredths(busy)),
            None => format!("{} cores", hundredths(busy)),
        };
        for (share, word) in [(cpu.steal, "steal"), (cpu.iowait, "iowait")] {
            let share = share.unwrap_or(0.0) / cores.unwrap_or(1) as f64;
            if share >= WORTH_A_WORD {
                text.push_str(&format!(", {word} {}", percent(share)));
            }
        }
        text
    };
    let full = cores.map(|cores| cores as f64 * 1e9);
    let value = gauge_value(cpu.busy, say);
    Gauge { name: "machine".to_owned(), series: series(scene, Quantity::MachineCpuBusy, columns), full, value }
}

fn process_memory(scene: &Scene<'_>, columns: u16) -> Gauge {
    let value = gauge_value(scene.store.hardware().process_rss_bytes(), bytes);
    Gauge { name: "rss".to_owned(), series: series(scene, Quantity::ProcessRss, columns), full: None, value }
}

fn machine_memory(scene: &Scene<'_>, columns: u16) -> Gauge {
    let hardware = scene.store.hardware();
    let total = hardware.machine_memory_total_bytes().ok();
    let value = gauge_value(hardware.machine_memory_used_bytes(), |used| format_used(used, total));
    Gauge { name: "memory".to_owned(), series: series(scene, Quantity::MachineMemoryUsed, columns), full: total, value }
}

fn format_used(used: f64, total: Option<f64>) -> String {
    total.map_or_else(|| bytes(used), |total| format!("{} of {}", bytes(used), bytes(total)))
}

fn gpu_gauge(scene: &Scene<'_>, columns: u16, gpu: u32, gpus: usize) -> Gauge {
    let read = |quantity: Quantity| scene.store.hardware().reading(quantity.with_instance(gpu));
    let is_throttled = scene.store.hardware().is_throttled(gpu);
    let value = gauge_value(read(Quantity::GpuUtil), |util| gpu_words(util, is_throttled, read));
    let name = if gpus == 1 { "gpu".to_owned() } else { format!("gpu {gpu}") };
    Gauge { name, series: series(scene, Quantity::GpuUtil.with_instance(gpu), columns), full: Some(100_000.0), value }
}

/// What of a GPU can be read: utilisation, whether it is slowed down, memory, power and temperature.
fn gpu_words<'r>(util: f64, is_throttled: bool, read: impl Fn(Quantity) -> HardwareValue<'r>) -> String {
    let mut text = percent(util / 100_000.0);
    if is_throttled {
        text.push_str(" throttled");
    }
    if let Ok(used) = read(Quantity::GpuMemoryUsed) {
        text.push_str(&format!(" {}", bytes(used)));
    }
    if let Ok(milliwatts) = read(Quantity::GpuPowerNow).or_else(|_| read(Quantity::GpuPower)) {
        text.push_str(&format!(" {:.0} W", milliwatts / 1e3));
    }
    if let Ok(millidegrees) = read(Quantity::GpuTemperature) {
        text.push_str(&format!(" {:.0} °C", millidegrees / 1e3));
    }
    text
}

fn no_gpu(scene: &Scene<'_>) -> Gauge {
    let reason = match scene.store.hardware().reading(Quantity::GpuCount) {
        Err(absence) => format!("no GPU: {absence}"),
        Ok(_) => "no GPU".to_owned(),
    };
    Gauge { name: "gpu".to_owned(), series: Vec::new(), full: None, value: Err(reason) }
}

fn counter_gauge(scene: &Scene<'_>, columns: u16, counter: &CounterSeries) -> Gauge {
    let reported = scene.store.reported(counter.name);
    // A bare number beside a name that is cut says nothing.
    let text = |value: f64| match reported {
        Some(Reported::Samples) => format!("{} in the newest batch", quantity(value)),
        Some(Reported::DeviceWaits) => format!("{} for the device, in a step", quantity(value)),
        Some(Reported::DeviceWaitTime) => format!("{} for the device, in a step", duration(value as u64)),
        _ => quantity(value),
    };
    let name = match reported {
        Some(Reported::DeviceWaits) => "waits",
        Some(Reported::DeviceWaitTime) => "waited",
        _ => scene.store.name(counter.name),
    };
    let value = counter.series.last().and_then(|point| point.value()).map(text);
    let series = spark::counter_columns(counter, scene.store.now_ns(), columns);
    Gauge { name: name.to_owned(), series, full: None, value: value.ok_or_else(|| "not counted yet".to_owned()) }
}
