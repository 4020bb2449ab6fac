//! The device's memory: in tensors and reserved over time, at its peak by phase, and by use.

use super::super::quantities::Readings;
use crate::ui::panel::strips::{ChartSource, Label, StripRow};
use gnntop_analysis::figures::{bytes, percent, quantity};
use gnntop_analysis::store::{CounterSeries, DeviceMemory};

/// Lines of the device's memory; none if the program does not publish it.
pub fn lines<'a>(read: &Readings<'_, 'a>) -> Vec<StripRow<'a>> {
    let Some(memory) = read.scene.store.device_memory() else { return Vec::new() };
    let mut lines = vec![StripRow::heading("device memory", "read at the edges of phases, in some steps")];
    lines.extend(whole(read, &memory));
    lines.extend(by_phase(read, &memory));
    lines.extend(by_kind(read, &memory));
    lines
}

/// The value now, or at the selected step.
fn value(read: &Readings<'_, '_>, counter: &CounterSeries) -> Result<f64, String> {
    let last = counter.last();
    let there = || ChartSource::Counter(counter).at_cursor(read.axis, read.scene.store.now_ns());
    let value = if read.axis.cursor.is_some() { there() } else { last };
    value.ok_or_else(|| "not reported at the selected step".to_owned())
}

fn whole<'a>(read: &Readings<'_, 'a>, memory: &DeviceMemory<'a>) -> Vec<StripRow<'a>> {
    let total = memory.total.and_then(CounterSeries::last);
    let of_total = total.map(|total| format!(" of {}", bytes(total))).unwrap_or_default();
    let mut lines = Vec::new();
    let most = |counter: Option<&CounterSeries>| {
        counter.map(|peak| format!("; at most {}", bytes(peak.series.summary().max))).unwrap_or_default()
    };
    for (about, counter, peak) in
        [("in tensors", memory.used, memory.peak), ("reserved", memory.reserved, memory.reserved_peak)]
    {
        let Some(counter) = counter else { continue };
        let say = |now: f64| format!("{}{of_total}{}", bytes(now), most(peak));
        lines.push(StripRow::fact(about, value(read, counter).map(say)));
        lines.extend(StripRow::chart(ChartSource::Counter(peak.unwrap_or(counter)), Label::Top(bytes), total, 1));
    }
    if let Some(share) = memory.fragmentation() {
        let unused = format!("{} of the reserved memory is in no tensor: kept for reuse, or in holes", percent(share));
        lines.push(StripRow::fact("fragmentation", Ok(unused)));
    }
    if let Some(free) = memory.free {
        let least = free.series.summary().min;
        lines.push(StripRow::fact(
            "free",
            value(read, free).map(|now| format!("{}; at least {}", bytes(now), bytes(least))),
        ));
    }
    let allocations = memory.allocations.map_or(Err("not counted by the device's pool".to_owned()), |counter| {
        value(read, counter).map(|count| format!("{} per step", quantity(count)))
    });
    lines.push(StripRow::fact("allocations", allocations));
    lines
}

/// The most in tensors while each phase ran.
fn by_phase<'a>(read: &Readings<'_, 'a>, memory: &DeviceMemory<'a>) -> Vec<StripRow<'a>> {
    if memory.phases.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![StripRow::heading("device peak by phase", "the most in tensors while it ran")];
    for (phase, peak, reserved) in &memory.phases {
        let letter = read.scene.phase_style(phase).map(|look| format!("{} ", look.letter)).unwrap_or_default();
        let reserved = reserved.and_then(CounterSeries::last).map(|n| format!("; reserved {}", bytes(n)));
        let reserved = reserved.unwrap_or_default();
        let most = peak.series.summary().max;
        let say = |now: f64| format!("{}; at most {}{reserved}", bytes(now), bytes(most));
        lines.push(StripRow::fact(&format!("{letter}{phase}"), value(read, peak).map(say)));
        lines.extend(StripRow::chart(ChartSource::Counter(peak), Label::Top(bytes), None, 1));
    }
    lines
}

/// Memory by use, and where each figure comes from.
fn by_kind<'a>(read: &Readings<'_, 'a>, memory: &DeviceMemory<'a>) -> Vec<StripRow<'a>> {
    if memory.kinds.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![StripRow::heading("device memory by use", "in the last measured step")];
    for (kind, how, counter) in &memory.kinds {
        let value = value(read, counter).map(bytes);
        lines.push(StripRow::Fact { about: (*kind).to_owned(), value, right: (*how).to_owned() });
    }
    lines
}
