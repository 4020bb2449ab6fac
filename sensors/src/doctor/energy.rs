//! The doctor's part about energy: what is measured for each component, what is only estimated and why, and the command
//! that would open its counter.

use std::fs;
use std::path::Path;

use gnntop_wire::{Metric, Quantity};

use super::diagnosis::{Diagnosis, DiagnosisState};
use crate::options::SensorOptions;
use crate::set::SensorSet;

/// Commands that open RAPL through powercap: now, and at each boot.
const OPEN_RAPL: &str = "as root: chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj; at each boot: printf 'z \
/sys/devices/virtual/powercap/intel-rapl/intel-rapl:*/energy_uj 0444 - - -\\nz \
/sys/devices/virtual/powercap/intel-rapl/intel-rapl:*/intel-rapl:*/energy_uj 0444 - - -\\n' > /etc/tmpfiles.d/rapl.conf. \
This opens a side channel to every user of the machine (CVE-2020-8694)";
/// Commands that open RAPL through perf.
const OPEN_PERF: &str = "as root: setcap cap_perfmon+ep PROGRAM (the program that publishes, such as the interpreter), or sysctl \
kernel.perf_event_paranoid=0; the second opens side channels to every user of the machine";

/// All diagnoses about energy.
pub(super) fn diagnose(options: &SensorOptions, set: &SensorSet) -> Vec<Diagnosis> {
    let pmu = options.sys_root.join("bus/event_source/devices/power");
    vec![diagnose_components(set), diagnose_rapl(&options.powercap()), diagnose_perf(&options.proc_root, &pmu)]
}

/// The source of each component's energy, with the reason if it is not a counter.
fn diagnose_components(set: &SensorSet) -> Diagnosis {
    let gpu = source(set, Quantity::GpuEnergy).or_else(|reason| match measured(set, Quantity::GpuPower) {
        Some(_) => Ok("power added up over time".to_owned()),
        None => Err(reason),
    });
    let parts = [
        ("GPU", gpu, "unknown"),
        ("CPU", source(set, Quantity::CpuEnergy), "estimated from load, to within a factor of 2 to 3"),
        ("memory", source(set, Quantity::DramEnergy), "estimated from modules, to within a factor of 3"),
    ];
    let measured = parts.iter().filter(|(_, source, _)| source.is_ok()).count();
    let state = match measured {
        0 => DiagnosisState::Missing,
        3 => DiagnosisState::Readable,
        _ => DiagnosisState::Partial,
    };
    let told = parts.into_iter().map(|(name, source, otherwise)| match source {
        Ok(source) => format!("{name}: {source}"),
        Err(reason) => format!("{name}: {otherwise} ({reason})"),
    });
    let detail = told.collect::<Vec<_>>().join("; ");
    let remedy = (state != DiagnosisState::Readable).then(|| {
        "see the lines on RAPL, perf and GPUs for how to open a counter; without one, describe the machine to gnntop \
         report with --tdp, --cpu-watts or --ram-watts"
            .to_owned()
    });
    Diagnosis { component: "energy", state, detail, remedy }
}

/// The counters of this energy, or why there is none.
fn source(set: &SensorSet, energy: Quantity) -> Result<String, String> {
    if let Some((count, source)) = measured(set, energy) {
        return Ok(format!("{source}, {count} counter{}", if count == 1 { "" } else { "s" }));
    }
    let mut absent = set.signals().iter().map(|signal| signal.metric).filter(|metric| metric.quantity() == energy);
    // Without a driver no GPU is known.
    let no_gpu = (energy == Quantity::GpuEnergy).then_some(Quantity::GpuCount.into());
    let reason = absent.next().or(no_gpu).and_then(|metric| set.absence(set.find(metric)?));
    Err(reason.unwrap_or("no counter on this machine").to_owned())
}

/// How many signals of a quantity have a value, and their source.
fn measured(set: &SensorSet, quantity: Quantity) -> Option<(usize, &'static str)> {
    let has_value = |metric: Metric| set.find(metric).is_some_and(|index| set.absence(index).is_none());
    let signals = set.signals().iter().filter(|signal| signal.metric.quantity() == quantity);
    let mut all = signals.filter(|signal| has_value(signal.metric));
    let source = all.next()?.source;
    Some((all.count() + 1, source))
}

/// The CPU's energy counters (RAPL) under powercap: which zones there are, and whether they open.
fn diagnose_rapl(powercap: &Path) -> Diagnosis {
    let component = "CPU energy (RAPL)";
    let zones: Vec<(String, bool)> = fs::read_dir(powercap).into_iter().flatten().flatten().filter_map(zone).collect();
    if zones.is_empty() {
        let detail =
            format!("no energy zones under {}: a virtual machine, or a processor without RAPL", powercap.display());
        let remedy = Some("on a real Intel or AMD machine load the module intel_rapl_msr; a container needs -v /sys/class/powercap:/sys/class/powercap:ro and -v /sys/devices/virtual/powercap:/sys/devices/virtual/powercap:ro".to_owned());
        return Diagnosis { component, state: DiagnosisState::Missing, detail, remedy };
    }
    let names = |open: bool| {
        let mut names: Vec<&str> = zones.iter().filter(|zone| zone.1 == open).map(|zone| zone.0.as_str()).collect();
        names.sort_unstable();
        names.join(", ")
    };
    let (open, closed) = (names(true), names(false));
    let state = match (open.is_empty(), closed.is_empty()) {
        (_, true) => DiagnosisState::Readable,
        (true, false) => DiagnosisState::Refused,
        (false, false) => DiagnosisState::Partial,
    };
    let detail = match state {
        DiagnosisState::Readable => format!("zones {open}"),
        DiagnosisState::Partial => format!("zones {open}; root only: {closed}"),
        _ => format!("zones {closed}: root only"),
    };
    let remedy = (state != DiagnosisState::Readable).then(|| OPEN_RAPL.to_owned());
    Diagnosis { component, state, detail, remedy }
}

/// A powercap zone's name, such as `intel-rapl:0 (package-0)`, and whether its counter opens.
fn zone(entry: fs::DirEntry) -> Option<(String, bool)> {
    let folder = entry.path();
    let zone = entry.file_name().to_string_lossy().into_owned();
    if !folder.join("energy_uj").exists() {
        return None;
    }
    let name = fs::read_to_string(folder.join("name")).unwrap_or_default();
    let opens = fs::read(folder.join("energy_uj")).is_ok();
    Some((format!("{zone} ({})", name.trim()), opens))
}

/// Whether this user may open perf counters of the whole machine, another source of the CPU's energy.
fn diagnose_perf(proc_root: &Path, pmu: &Path) -> Diagnosis {
    let component = "perf events";
    let paranoid = proc_root.join("sys/kernel/perf_event_paranoid");
    let level = fs::read_to_string(&paranoid).ok().and_then(|text| text.trim().parse::<i32>().ok());
    let (state, detail) = match level {
        None => (DiagnosisState::Missing, format!("{} not readable: kernel without perf events", paranoid.display())),
        Some(level) if level <= 0 => (DiagnosisState::Readable, format!("perf_event_paranoid is {level}")),
        Some(level) if may_use_perf(proc_root) => {
            (DiagnosisState::Readable, format!("perf_event_paranoid is {level}, and this program has CAP_PERFMON"))
        }
        Some(level) => (
            DiagnosisState::Refused,
            format!("perf_event_paranoid is {level}: counters of the whole machine need CAP_PERFMON"),
        ),
    };
    let energy = if pmu.is_dir() { "energy can be counted through perf" } else { "no PMU of energy (power)" };
    let detail = format!("{detail}; {energy}");
    // Opening side channels is not a remedy if nothing would be gained.
    let remedy = (state == DiagnosisState::Refused && pmu.is_dir()).then(|| OPEN_PERF.to_owned());
    Diagnosis { component, state, detail, remedy }
}

/// Whether this program holds CAP_PERFMON (38), or CAP_SYS_ADMIN (21) which contains it.
fn may_use_perf(proc_root: &Path) -> bool {
    let status = fs::read_to_string(proc_root.join("self/status")).unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = effective.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0);
    set & (1 << 38 | 1 << 21) != 0
}
