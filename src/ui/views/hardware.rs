//! Every sensor over time, on the columns of the step bars: processor by core with what the host took, GPUs, memory,
//! pressure, input and output, and the program's own counters. A missing value says why.
//!
//! ```text
//! ▌steps  1 step a column ──────────────────────────────── 24.9 steps/s
//! ─processor  1 step a column, 3.27 s ──────────────────────────────────
//!  machine         1.60 of 2 cores, steal 2.0 %     /proc/stat, 0.1 s old
//!  2 cores⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿
//!   0  87%⣤⣤⣤⣤⣤⣤⣤⣤⣶⣶⣶⣶⣤⣤⣤⣤⣤⣤⣤⣤⣶⣶⣶⣶⣶⣶⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣶⣶⣶⣶⣶⣶⣤⣤⣤⣤⣤⣤⣶⣶⣶⣶
//! ```

use super::quantities::{Readings, ShownMetric};
use crate::app::View;
use crate::ui::chart::time_axis::TimeAxis;
use crate::ui::panel::hardware;
use crate::ui::panel::strips::{self, ChartSource, Label, StripRow};
use crate::ui::scene::Scene;
use crate::ui::sheet::Sheet;
use gnntop_analysis::figures::{bytes, hundredths, percent, quantity};
use gnntop_analysis::store::Absence;
use gnntop_wire::{Fact, FactKey, Quantity, Reported};

/// One core's time in a second, in nanoseconds.
const CORE_NS: f64 = 1e9;
/// All of a share, or one core, in thousandths of a percent.
const ALL: f64 = 100_000.0;
/// Smaller shares get no separate row.
const WORTH_A_ROW: f64 = 0.01;
/// Bodies with this many rows have charts of two.
const TALL: u16 = 30;

/// What tasks wait for: its name, time in which some waited, and in which all did.
const PRESSURES: [(&str, Quantity, Quantity); 3] = [
    ("cpu", Quantity::PressureCpuSome, Quantity::PressureCpuFull),
    ("memory", Quantity::PressureMemorySome, Quantity::PressureMemoryFull),
    ("io", Quantity::PressureIoSome, Quantity::PressureIoFull),
];

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    if scene.store.signals().all().is_empty() && scene.store.counters().is_empty() {
        return hardware::draw_alone(body, scene);
    }
    let rows = if body.height() >= TALL { 2 } else { 1 };
    strips::draw(body, scene, scene.app.line(View::Hardware), |axis| lines(scene, axis, rows));
}

fn lines<'a>(scene: &Scene<'a>, axis: &TimeAxis, rows: u16) -> Vec<StripRow<'a>> {
    let read = Readings { scene, axis };
    let hint = scene.app.status().hint.as_ref().filter(|_| scene.is_hardware_only());
    let mut lines: Vec<StripRow<'a>> =
        hint.map(|hint| StripRow::fact("no steps", Ok(hint.clone()))).into_iter().collect();
    lines.push(StripRow::heading("processor", &axis.note(scene)));
    lines.extend(processor(&read, rows));
    lines.extend(gpus(&read, rows));
    lines.push(StripRow::heading("memory", "of the machine; the program's is in view 4"));
    lines.extend(memory(&read, rows));
    lines.extend(each_core(&read));
    lines.push(StripRow::heading("pressure", "time in which tasks waited for it"));
    lines.extend(PRESSURES.into_iter().flat_map(|(resource, some, full)| pressure(&read, resource, some, full)));
    lines.push(StripRow::heading("input and output", ""));
    lines.extend(input_and_output(&read));
    lines.extend(counters(&read));
    lines.extend(reduced(&read));
    lines.extend(program(scene));
    lines
}

/// What the program reports about itself: its framework, what is hooked in it, what is inferred and how.
fn program<'a>(scene: &Scene<'a>) -> Vec<StripRow<'a>> {
    let session = scene.store.session();
    if session.facts().is_empty() {
        return Vec::new();
    }
    let name = session.info().map(|info| info.name.as_str()).unwrap_or_default();
    let fact = |(key, fact): (&FactKey, &Fact)| match fact {
        Fact::Inferred { phase, how } => StripRow::fact(&format!("{phase}*"), Ok(format!("inferred, {how}"))),
        _ => StripRow::fact(key.title(), Ok(fact.text())),
    };
    std::iter::once(StripRow::heading("program", name)).chain(session.facts().iter().map(fact)).collect()
}

fn core_count(ns_per_s: f64) -> String {
    format!("{} cpu", quantity(ns_per_s / CORE_NS))
}

fn share_of_all(share: f64) -> String {
    percent(share / ALL)
}

fn watts(milliwatts: f64) -> String {
    format!("{:.0} W", milliwatts / 1e3)
}

fn word(text: &str) -> Label {
    Label::Word(text.to_owned())
}

/// How many cores are published, if any are.
fn cores(read: &Readings<'_, '_>) -> Option<usize> {
    Some(read.scene.store.hardware().cores().len()).filter(|cores| *cores > 0)
}

fn processor<'a>(read: &Readings<'_, 'a>, rows: u16) -> Vec<StripRow<'a>> {
    let cores = cores(read);
    let full = cores.map(|cores| cores as f64 * CORE_NS);
    let of_cores = cores.map(|cores| format!(" of {cores}")).unwrap_or_default();
    let mut lines = Vec::new();
    let metric = Quantity::ProcessCpuTime.into();
    let process = ShownMetric { about: "this program", metric, full, label: Label::Top(core_count), rows };
    let waits = read.value(Quantity::MainThreadCpuWait).ok().map(|ns| ns / CORE_NS);
    let waits = waits.filter(|share| *share >= WORTH_A_ROW);
    let waits = waits.map(|share| format!(", waits for a CPU {} of the time", percent(share))).unwrap_or_default();
    let clock = read.value(Quantity::MainThreadClock).ok();
    let clock = clock.map(|mhz| format!(" at {:.1} GHz", mhz / 1e3)).unwrap_or_default();
    lines.extend(read.lines(&process, |ns| format!("{}{of_cores} cores{clock}{waits}", hundredths(ns / CORE_NS))));
    lines.extend(quota(read));
    let machine = ShownMetric { about: "machine", metric: Quantity::MachineCpuBusy.into(), ..process.clone() };
    let share = |quantity: Quantity| {
        let ns = read.value(quantity).ok()?;
        Some(ns / CORE_NS / cores.unwrap_or(1) as f64)
    };
    let stolen = share(Quantity::MachineCpuSteal)
        .filter(|share| *share >= WORTH_A_ROW)
        .map(|share| format!(", the host takes {}", percent(share)))
        .unwrap_or_default();
    let waiting = share(Quantity::MachineCpuIowait)
        .filter(|share| *share >= WORTH_A_ROW)
        .map(|share| format!(", {} wait for disks", percent(share)))
        .unwrap_or_default();
    lines.extend(read.lines(&machine, |ns| format!("{}{of_cores} cores{stolen}{waiting}", hundredths(ns / CORE_NS))));
    for (quantity, label) in [(Quantity::MachineCpuSteal, "steal"), (Quantity::MachineCpuIowait, "iowait")] {
        if share(quantity).is_some_and(|share| share >= WORTH_A_ROW) {
            let metric = quantity.into();
            lines.extend(read.chart(&ShownMetric { about: "", metric, full: None, label: word(label), rows: 1 }));
        }
    }
    lines
}

/// How often the control group's CPU limit stops the program, where it has one.
fn quota<'a>(read: &Readings<'_, 'a>) -> Option<StripRow<'a>> {
    let limit = read.value(Quantity::AllottedCpuQuota).ok()?;
    let periods = read.value(Quantity::AllottedCpuPeriods).ok().filter(|periods| *periods > 0.0)?;
    let share = read.value(Quantity::AllottedCpuThrottledPeriods).ok()? / periods;
    let limit = limit / ALL;
    Some(StripRow::fact("CPU limit", Ok(format!("{limit:.2} cores, reached in {} of the periods", percent(share)))))
}

fn each_core<'a>(read: &Readings<'_, 'a>) -> Vec<StripRow<'a>> {
    let cores = read.scene.store.hardware().cores();
    let mut lines = Vec::new();
    if !cores.is_empty() {
        lines.push(StripRow::heading("cores", "busy, and below it time taken by the host"));
    }
    lines.extend(cores.into_iter().flat_map(|(core, _)| one_core(read, core)));
    lines
}

/// A core in a row: its number, its share and its chart; one more where the host takes time from it.
fn one_core<'a>(read: &Readings<'_, 'a>, core: u32) -> Vec<StripRow<'a>> {
    let row = |quantity: Quantity, sign: String, least: f64| {
        let metric = quantity.with_instance(core);
        let share = read.value(metric).map(|ns| ns / CORE_NS);
        match share {
            Ok(share) if share < least => Vec::new(),
            Ok(share) => {
                let label = Label::Word(format!("{sign}{:>3.0}%", share * 100.0));
                read.chart(&ShownMetric { about: "", metric, full: Some(CORE_NS), label, rows: 1 })
            }
            Err(reason) if least <= 0.0 => vec![StripRow::fact(&format!("core {core}"), Err(reason))],
            Err(_) => Vec::new(),
        }
    };
    let mut lines = row(Quantity::CoreBusy, format!("{core:<3}"), 0.0);
    lines.extend(row(Quantity::CoreSteal, "st ".to_owned(), WORTH_A_ROW));
    lines
}

fn gpus<'a>(read: &Readings<'_, 'a>, rows: u16) -> Vec<StripRow<'a>> {
    let hardware = read.scene.store.hardware();
    let gpus = hardware.gpus();
    if gpus.is_empty() {
        let reason = match hardware.reading(Quantity::GpuCount) {
            Err(Absence::Reason(reason)) => reason.to_owned(),
            Err(absence) => absence.to_string(),
            Ok(_) => "no GPU in this machine".to_owned(),
        };
        return vec![StripRow::fact("gpu", Err(reason))];
    }
    gpus.into_iter().flat_map(|gpu| one_gpu(read, gpu, rows)).collect()
}

fn one_gpu<'a>(read: &Readings<'_, 'a>, gpu: u32, rows: u16) -> Vec<StripRow<'a>> {
    let device =
        read.signal(Quantity::GpuUtil.with_instance(gpu)).map(|signal| signal.device.as_str()).unwrap_or_default();
    let mut lines = vec![StripRow::heading(&format!("gpu {gpu}"), device)];
    let total = read.value(Quantity::GpuMemoryTotal.with_instance(gpu)).ok();
    let of_total = total.map(|total| format!(" of {}", bytes(total))).unwrap_or_default();
    let milli = |value: f64| value / 1e3;
    type Add<'f> = (&'f str, Quantity, Option<f64>, fn(f64) -> String);
    let mut add = |(about, quantity, full, top): Add<'_>, say: &dyn Fn(f64) -> String| {
        let shown = ShownMetric { about, metric: quantity.with_instance(gpu), full, label: Label::Top(top), rows };
        let is_main = quantity == Quantity::GpuUtil;
        lines.extend(if is_main { read.lines(&shown, say) } else { read.optional(&shown, say) });
    };
    add(("any kernel ran", Quantity::GpuUtil, Some(ALL), share_of_all), &|share| {
        format!("{} of the time", percent(share / ALL))
    });
    add(("memory used", Quantity::GpuMemoryUsed, total, bytes), &|used| format!("{}{of_total}", bytes(used)));
    let limit = read.value(Quantity::GpuPowerLimit.with_instance(gpu)).ok();
    let of_limit = limit.map(|limit| format!(" of {:.0} W", milli(limit))).unwrap_or_default();
    let is_instant = read.signal(Quantity::GpuPowerNow.with_instance(gpu)).is_some();
    let power = if is_instant { Quantity::GpuPowerNow } else { Quantity::GpuPower };
    add(("power", power, limit, watts), &|milliwatts| format!("{:.1} W{of_limit}", milli(milliwatts)));
    add(("memory access", Quantity::GpuMemoryUtil, Some(ALL), share_of_all), &|share| {
        format!("{} of the time", percent(share / ALL))
    });
    add(("PCIe sent", Quantity::GpuPcieTx, None, bytes), &|rate| format!("{}/s", bytes(rate)));
    add(("PCIe received", Quantity::GpuPcieRx, None, bytes), &|rate| format!("{}/s", bytes(rate)));
    let value = |quantity: Quantity| read.value(quantity.with_instance(gpu)).ok();
    let facts = [
        value(Quantity::GpuTemperature).map(|value| format!("{:.0} °C", milli(value))),
        value(Quantity::GpuClockSm).map(|mhz| format!("SM {mhz:.0} MHz")),
        value(Quantity::GpuClockMemory).map(|mhz| format!("memory {mhz:.0} MHz")),
        value(Quantity::GpuThrottle).map(throttled),
        value(Quantity::GpuProcesses).map(|count| format!("{count:.0} processes compute on it")),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    if !facts.is_empty() {
        lines.push(StripRow::fact("state", Ok(facts.join(", "))));
    }
    lines
}

/// Why a GPU's clocks are held down, numbered as in `nvml.h`.
fn throttled(bits: f64) -> String {
    const REASONS: [(u64, &str); 8] = [
        (0x2, "application clocks"),
        (0x4, "power cap"),
        (0x8, "hardware slowdown"),
        (0x10, "sync boost"),
        (0x20, "software thermal"),
        (0x40, "hardware thermal"),
        (0x80, "power brake"),
        (0x100, "display clocks"),
    ];
    let bits = bits as u64;
    let held: Vec<&str> = REASONS.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, word)| *word).collect();
    match held.is_empty() {
        true if bits & 1 != 0 => "clocks down: idle".to_owned(),
        true => "clocks free".to_owned(),
        false => format!("clocks held by {}", held.join(" and ")),
    }
}

fn memory<'a>(read: &Readings<'_, 'a>, rows: u16) -> Vec<StripRow<'a>> {
    let of = |total: Quantity| read.value(total).ok();
    let say = |total: Option<f64>| {
        move |used: f64| total.map_or_else(|| bytes(used), |total| format!("{} of {}", bytes(used), bytes(total)))
    };
    let total = of(Quantity::MachineMemoryTotal);
    let metric = Quantity::MachineMemoryUsed.into();
    let used = ShownMetric { about: "used", metric, full: total, label: Label::Top(bytes), rows };
    let mut lines = read.lines(&used, say(total));
    let total = of(Quantity::MachineSwapTotal);
    let metric = Quantity::MachineSwapUsed.into();
    let swap = ShownMetric { about: "swap", metric, full: total, label: Label::Top(bytes), rows: 1 };
    lines.extend(match total {
        Some(0.0) => vec![StripRow::fact("swap", Err("this machine has none".to_owned()))],
        _ => read.lines(&swap, say(total)),
    });
    lines
}

/// One resource: how long some and all tasks waited for it, and a row each.
fn pressure<'a>(read: &Readings<'_, 'a>, resource: &str, some: Quantity, full: Quantity) -> Vec<StripRow<'a>> {
    let all = read.value(full).map_or_else(|_| String::new(), |ns| format!(", all {}", percent(ns / CORE_NS)));
    let some = ShownMetric { about: resource, metric: some.into(), full: Some(CORE_NS), label: word("some"), rows: 1 };
    let mut lines = read.lines(&some, |ns| format!("some {} of the time{all}", percent(ns / CORE_NS)));
    if read.value(full).is_ok_and(|ns| ns > 0.0) {
        lines.extend(read.chart(&ShownMetric { metric: full.into(), label: word("all"), ..some }));
    }
    lines
}

fn input_and_output<'a>(read: &Readings<'_, 'a>) -> Vec<StripRow<'a>> {
    const WAYS: [(&str, Quantity); 8] = [
        ("program reads", Quantity::ProcessIoReadBytes),
        ("program writes", Quantity::ProcessIoWriteBytes),
        ("disks read", Quantity::MachineDiskReadBytes),
        ("disks written", Quantity::MachineDiskWriteBytes),
        ("network in", Quantity::MachineNetworkReceivedBytes),
        ("network out", Quantity::MachineNetworkSentBytes),
        ("InfiniBand in", Quantity::MachineInfinibandReceivedBytes),
        ("InfiniBand out", Quantity::MachineInfinibandSentBytes),
    ];
    let is_rare =
        |quantity| matches!(quantity, Quantity::MachineInfinibandReceivedBytes | Quantity::MachineInfinibandSentBytes);
    // Few machines have such an adapter, and the others need not say so.
    let ways = WAYS.into_iter().filter(|(_, quantity)| !is_rare(*quantity) || read.value(*quantity).is_ok());
    let way = |(about, quantity): (&str, Quantity)| {
        let shown = ShownMetric { about, metric: quantity.into(), full: None, label: Label::Top(bytes), rows: 1 };
        read.lines(&shown, |rate| format!("{}/s", bytes(rate)))
    };
    ways.flat_map(way).collect()
}

fn counters<'a>(read: &Readings<'_, 'a>) -> Vec<StripRow<'a>> {
    let store = read.scene.store;
    let mut lines = Vec::new();
    for counter in store.program_counters() {
        if lines.is_empty() {
            lines.push(StripRow::heading("counters", "the program's own"));
        }
        let name = store.name(counter.name);
        let at_cursor = ChartSource::Counter(counter).at_cursor(read.axis, store.now_ns());
        let last = counter.series.last().and_then(|point| point.value());
        let value = if read.axis.cursor.is_some() { at_cursor } else { last };
        let name = if store.reported(counter.name) == Some(Reported::Samples) { "samples a batch" } else { name };
        lines.push(StripRow::fact(name, value.map(quantity).ok_or_else(|| "not counted".to_owned())));
        lines.extend(StripRow::chart(ChartSource::Counter(counter), Label::Top(quantity), None, 1));
    }
    lines
}

/// What is no longer kept at full resolution.
fn reduced<'a>(read: &Readings<'_, 'a>) -> Option<StripRow<'a>> {
    let signals = read.scene.store.signals().all();
    let widest = signals.iter().filter_map(|signal| signal.series.reduced_to_ns()).max()?;
    let kept: usize = signals.iter().map(|signal| signal.series.len()).min_by_key(|len| usize::MAX - len)?;
    let time = gnntop_analysis::figures::duration(widest);
    Some(StripRow::Text(format!("the newest {kept} readings are kept each, older ones as mean and extremes of {time}")))
}
