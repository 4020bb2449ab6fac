//! Power and energy by component, of the run, an epoch and a step, each with where it comes from. What no counter measures is
//! a dash with the reason and what would open it.
//!
//! ```text
//! ─energy  a column a step, 3.27 s ─────────────────────────────────────
//!  gpu 0           312 W                    measured, NVML, 0.1 s old
//!  700 W  ⣤⣤⣤⣤⣴⣶⣿⣿⣶⣶⣤⣤⣤⣤⣤⣤⣤⣤⣤⣶⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣶⣶⣶⣶⣤⣤⣤⣤⣤⣤
//!  cpu             — not measured: no energy zones under /sys/class/powercap
//! ─gpu 0 in all ────────────────────────────────────────────────────────
//!  a step          12.5 J                   measured, mean of 100 steps
//! ```

use super::reading::Readings;
use crate::app::View;
use crate::figures::{count, duration, quantity};
use crate::store::{Component, Joules, NoEnergy};
use crate::ui::Scene;
use crate::ui::sheet::Sheet;
use crate::ui::strips::{self, Label, Line, Source};
use crate::ui::time_axis::TimeAxis;

/// Joules in a watt-hour.
const WATT_HOUR: f64 = 3600.0;
/// Bodies with this many rows have charts of three.
const TALL: u16 = 30;

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let rows = if body.height() >= TALL { 3 } else { 2 };
    strips::draw(body, scene, scene.app.line(View::Energy), |axis| lines(scene, axis, rows));
}

fn lines<'a>(scene: &Scene<'a>, axis: &TimeAxis, rows: u16) -> Vec<Line<'a>> {
    let read = Readings { scene, axis };
    let components = scene.store.energy_components();
    let measured: Vec<&Component<'a>> = components.iter().filter(|component| component.total().is_ok()).collect();
    let mut lines = vec![Line::heading("power", &axis.note(scene))];
    lines.extend(measured.iter().flat_map(|component| power(&read, component, rows)));
    lines.extend(without_counter(&read, rows));
    lines.extend(absent(scene, &components));
    if measured.len() > 1 {
        lines.extend(together(&read, &measured));
    }
    for component in &measured {
        lines.push(Line::heading(&format!("energy of {}", component.name()), &component.signal.device));
        lines.extend(energy(&read, component));
    }
    lines.push(Line::heading("not counted", ""));
    lines.push(Line::Text("disks, network, fans and power supply have no counter that a program may read".to_owned()));
    let carbon = "needs the energy of the whole machine, which is not measured, and where its electricity comes from";
    lines.push(Line::fact("carbon", Err(carbon.to_owned())));
    lines
}

/// Power by an energy counter: its increase per second.
fn power<'a>(read: &Readings<'_, 'a>, component: &Component<'a>, rows: u16) -> Vec<Line<'a>> {
    let name = &component.signal.name;
    let watts = component.joules_per_unit();
    let limit = read.value(&name.replace(".energy", ".power.limit")).ok().map(|milliwatts| milliwatts / 1e3);
    let of_limit = limit.map(|limit| format!(" of {limit:.0} W")).unwrap_or_default();
    let mut lines = vec![Line::Fact {
        about: component.name(),
        value: read.value(name).map(|rate| format!("{:.1} W{of_limit}", rate * watts)),
        right: format!("measured, {}", read.provenance(name)),
    }];
    // Counters are in millijoules or microjoules.
    let top = if watts > 1e-4 { Label::Top(watts_of_milli) } else { Label::Top(|micro| watts_of_milli(micro / 1e3)) };
    lines.extend(Line::chart(Source::Signal(component.signal), top, limit.map(|limit| limit / watts), rows));
    lines
}

/// GPUs that tell their power but have no energy counter.
fn without_counter<'a>(read: &Readings<'_, 'a>, rows: u16) -> Vec<Line<'a>> {
    let is_counted =
        |gpu: u32| read.signal(&format!("gpu.{gpu}.energy")).is_some_and(|signal| signal.series.summary().count > 1);
    let gpus = read.scene.store.hardware().gpus().into_iter().filter(|gpu| !is_counted(*gpu));
    let power = |gpu: u32| {
        let name = ["power.instant", "power"].map(|quantity| format!("gpu.{gpu}.{quantity}"));
        let name = name.into_iter().find(|name| read.signal(name).is_some())?;
        let value =
            read.value(&name).map(|milliwatts| format!("{:.1} W; no energy counter, so no joules", milliwatts / 1e3));
        let right = format!("measured, {}", read.provenance(&name));
        let mut lines = vec![Line::Fact { about: format!("gpu {gpu}"), value, right }];
        lines.extend(
            read.signal(&name)
                .into_iter()
                .flat_map(|s| Line::chart(Source::Signal(s), Label::Top(watts_of_milli), None, rows)),
        );
        Some(lines)
    };
    gpus.filter_map(power).flatten().collect()
}

/// Components that cannot be read, each with the reason.
fn absent<'a>(scene: &Scene<'a>, components: &[Component<'a>]) -> Vec<Line<'a>> {
    let hardware = scene.store.hardware();
    let mut lines = Vec::new();
    let has = |prefix: &str| components.iter().any(|component| component.signal.name.starts_with(prefix));
    for component in components.iter().filter(|component| component.total().is_err()) {
        let reason = hardware
            .of(component.signal)
            .map_or_else(|absence| absence.to_string(), |_| "not read twice yet".to_owned());
        lines.push(Line::fact(&component.name(), Err(reason)));
    }
    if !has("gpu.") && hardware.gpus().is_empty() {
        let reason = hardware.reading("gpu.count").map_or_else(|absence| absence.to_string(), |_| "no GPU".to_owned());
        lines.push(Line::fact("gpu", Err(reason)));
    }
    let open = "not published by this program; `gnntop doctor` says what can be read here and what would open it";
    let missing = [("cpu.", "cpu"), ("dram.", "memory")].into_iter().filter(|(prefix, _)| !has(prefix));
    lines.extend(missing.map(|(_, about)| Line::fact(about, Err(open.to_owned()))));
    lines
}

/// What all measured components take together; nothing of it where one of them was not read.
fn together<'a>(read: &Readings<'_, 'a>, measured: &[&Component<'a>]) -> Vec<Line<'a>> {
    let watts =
        |component: &&Component<'a>| read.value(&component.signal.name).map(|rate| rate * component.joules_per_unit());
    let power: Result<Vec<f64>, String> = measured.iter().map(watts).collect();
    let run: Result<Vec<Joules>, NoEnergy> = measured.iter().map(|component| component.total()).collect();
    let names: Vec<String> = measured.iter().map(|component| component.name()).collect();
    let run = run.map(|all| {
        let (sum, longest_ns) = (all.iter().map(|one| one.joules).sum(), all.iter().map(|one| one.ns).max());
        (format!("{} in {}", joules(sum), duration(longest_ns.unwrap_or(0))), String::new())
    });
    vec![
        Line::heading("all that is measured", &names.join(" + ")),
        fact("power", power.map(|all| (format!("{:.1} W", all.iter().sum::<f64>()), String::new()))),
        fact("the run", run.map_err(reason)),
    ]
}

/// Energy of the run, of the newest whole epoch and of a step.
fn energy<'a>(read: &Readings<'_, 'a>, component: &Component<'a>) -> Vec<Line<'a>> {
    let store = read.scene.store;
    let total = component.total();
    let run = total.map(|all| Ok((format!("{} in {}", joules(all.joules), duration(all.ns)), String::new())));
    let mut lines = vec![fact("the run", run.unwrap_or_else(|why| Err(reason(why))))];
    let epoch = match store.last_whole_epoch() {
        Some((number, range)) => component
            .within(range)
            .map(|all| {
                (format!("{} in {}", joules(all.joules), duration(all.ns)), format!(", epoch {}", count(number)))
            })
            .map_err(reason),
        None => Err("no whole epoch is kept".to_owned()),
    };
    lines.push(fact("an epoch", epoch));
    let statistics = store.statistics();
    let mean = |all: Joules| {
        let mean_ns = statistics.tiled_ns().checked_div(statistics.steps())?;
        Some(joules(all.watts()? * mean_ns as f64 / 1e9))
    };
    let a_step = total.ok().and_then(mean).map(|text| (text, format!(", mean of {} steps", count(statistics.steps()))));
    lines.push(fact("a step", a_step.ok_or_else(|| "there are no steps".to_owned())));
    if let Some(row) = read.scene.app.window().cursor().and_then(|cursor| store.steps().row(cursor)) {
        let selected = component.within(row.period_start_ns()..row.end_ns());
        let told = selected.map(|all| (joules(all.joules), String::new())).map_err(reason);
        lines.push(fact(&format!("step {}", count(row.step().0)), told));
    }
    lines
}

fn fact<'a>(about: &str, told: Result<(String, String), String>) -> Line<'a> {
    let (value, right) = match told {
        Ok((value, note)) => (Ok(value), format!("measured{note}")),
        Err(reason) => (Err(reason), String::new()),
    };
    Line::Fact { about: about.to_owned(), value, right }
}

fn reason(why: NoEnergy) -> String {
    match why {
        NoEnergy::NotRead => "not read in that time".to_owned(),
        NoEnergy::TooShort(ns) => format!("shorter than what a counter read every {} resolves", duration(ns)),
        NoEnergy::Gaps => "the counter was away for a part of that time".to_owned(),
    }
}

/// Power such as `312 W`, from milliwatts.
fn watts_of_milli(milliwatts: f64) -> String {
    format!("{} W", quantity((milliwatts / 1e3).round()))
}

/// Energy such as `12.5 J`, and in watt-hours too where that is what people pay for.
fn joules(joules: f64) -> String {
    let figure = quantity(joules);
    let unit = if figure.ends_with(|c: char| c.is_ascii_alphabetic()) { "J" } else { " J" };
    match joules {
        _ if joules >= WATT_HOUR => format!("{figure}{unit} ({} Wh)", quantity(joules / WATT_HOUR)),
        _ => format!("{figure}{unit}"),
    }
}
