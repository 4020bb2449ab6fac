//! Energy of the processor packages and of their memory, by RAPL counters under `/sys/class/powercap`.
//!
//! The counters are passed on raw, in microjoules. They wrap at `max_energy_range_uj`; a reader sees that as a counter
//! that decreased, and loses the energy between two readings. Most systems let only root read them (CVE-2020-8694): the
//! reason then says how to open them. Energy of cores and graphics is inside that of the package and not read, nor are
//! the copies of zones that belong to other interfaces (`intel-rapl-mmio`).

use std::fmt;
use std::path::{Path, PathBuf};

use gnntop_wire::{Metric, Quantity};

use super::hot_file::{FileError, FileTrouble, HotFile};
use super::parse::decimal;
use super::perf::PerfCounter;
use crate::clock::{monotonic_ns, stamped};
use crate::options::SensorOptions;
use crate::sensor::{Registry, Sensor, Sink};
use crate::signal::{SignalIndex, SignalInfo};

const POWERCAP: &str = "RAPL powercap";
/// The largest number of zones read.
const MAX_ZONES: usize = 64;

/// Why the largest value of a counter is absent.
const NO_RANGE: &str = "max_energy_range_uj is unreadable: a decrease counts as a reset";

/// Reads the energy counters of packages and memory.
#[derive(Debug)]
pub(super) struct Rapl {
    zones: Vec<Zone>,
    /// The signal whose reason says why there are none.
    missing: Option<SignalIndex>,
}

#[derive(Debug)]
struct Zone {
    counter: Reader,
    signal: SignalIndex,
    /// The signal of the largest value, and that value; `None` for a counter that never wraps.
    range: Option<(SignalIndex, Option<i64>)>,
    last_uj: Option<i64>,
    mirrors: Mirrors,
}

/// How a counter is read.
#[derive(Debug)]
enum Reader {
    Powercap(HotFile),
    Perf(PerfCounter),
}

/// Whether a counter equals the previous zone's: some processors with several dies have one counter for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mirrors {
    No,
    /// It was equal once, with this value.
    Once(i64),
    Yes,
}

impl Rapl {
    pub(super) fn open(options: &SensorOptions, registry: &mut Registry) -> Self {
        let found = zones(&options.powercap());
        let is_open = found.iter().any(|found| std::fs::read(&found.energy_uj).is_ok());
        let through_perf = if is_open { Vec::new() } else { PerfCounter::open_all(&options.sys_root) };
        let mut zones = Vec::new();
        if through_perf.is_empty() {
            zones.extend(found.into_iter().map(|found| Zone::from_powercap(found, registry)));
        } else {
            zones.extend(through_perf.into_iter().map(|counter| Zone::from_perf(counter, registry)));
        }
        let missing = zones.is_empty().then(|| registry.plain(Quantity::CpuEnergy, POWERCAP));
        Self { zones, missing }
    }

    /// Leaves out a zone that twice had the same value as another one.
    fn find_mirrors(&mut self) {
        for index in 1..self.zones.len() {
            let (before, rest) = self.zones.split_at_mut(index);
            let zone = &mut rest[0];
            let same = |other: &Zone| other.mirrors == Mirrors::No && other.last_uj == zone.last_uj;
            let Some(uj) = zone.last_uj.filter(|uj| *uj > 0 && before.iter().any(same)) else { continue };
            zone.mirrors = match zone.mirrors {
                Mirrors::No => Mirrors::Once(uj),
                Mirrors::Once(before_uj) if before_uj != uj => Mirrors::Yes,
                known => known,
            };
        }
    }
}

impl Zone {
    fn from_powercap(found: PowercapZone, registry: &mut Registry) -> Self {
        let folder = found.energy_uj.parent().unwrap_or(Path::new("/"));
        let range_uj = std::fs::read(folder.join("max_energy_range_uj")).ok();
        let range_uj = range_uj.and_then(|text| decimal(text.trim_ascii())).filter(|range| *range > 0);
        Self {
            signal: registry.add(SignalInfo { metric: found.energy, source: POWERCAP, device: Some(found.device) }),
            range: Some((registry.add(SignalInfo { metric: found.range, source: POWERCAP, device: None }), range_uj)),
            counter: Reader::Powercap(HotFile::new(found.energy_uj)),
            last_uj: None,
            mirrors: Mirrors::No,
        }
    }

    fn from_perf(counter: PerfCounter, registry: &mut Registry) -> Self {
        let quantity = if counter.is_memory { Quantity::DramEnergy } else { Quantity::CpuEnergy };
        let (metric, device) = (quantity.with_instance(counter.package), Some(format!("package {}", counter.package)));
        Self {
            signal: registry.add(SignalInfo { metric, source: "RAPL perf", device }),
            range: None,
            counter: Reader::Perf(counter),
            last_uj: None,
            mirrors: Mirrors::No,
        }
    }

    fn read(&mut self, sink: &mut Sink<'_>) {
        if self.mirrors == Mirrors::Yes {
            let reason = "another package has the same counter: shared by all dies, counted once";
            return sink.absent(self.signal, monotonic_ns(), &reason);
        }
        self.last_uj = None;
        let (t_ns, value) = match &mut self.counter {
            Reader::Powercap(file) => match file.read() {
                Ok(snapshot) => (snapshot.t_ns, decimal(snapshot.bytes.trim_ascii())),
                Err(error) => {
                    let trouble = NoEnergy { path: file.path(), error };
                    return sink.absent(self.signal, monotonic_ns(), &trouble);
                }
            },
            Reader::Perf(counter) => {
                let (t_ns, value) = stamped(|| counter.read_uj());
                (t_ns, value.ok())
            }
        };
        self.last_uj = value.filter(|uj| *uj >= 0);
        match self.last_uj {
            Some(energy_uj) => sink.value(self.signal, t_ns, energy_uj),
            None => sink.absent(self.signal, t_ns, &"the counter is not a number"),
        }
    }
}

/// A zone with its own energy counter.
#[derive(Debug, PartialEq, Eq)]
struct PowercapZone {
    /// Energy of a package or of its memory.
    energy: Metric,
    /// The largest value of that counter.
    range: Metric,
    /// The zone's name, such as `intel-rapl:0 package-0`.
    device: String,
    energy_uj: PathBuf,
}

/// Packages and their memory, by zone name. Only those of `intel-rapl`: other interfaces repeat the same counters.
fn zones(powercap: &Path) -> Vec<PowercapZone> {
    let entries = std::fs::read_dir(powercap).into_iter().flatten().flatten();
    let mut folders: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    folders.sort_unstable();
    folders.iter().filter_map(|folder| zone(powercap, folder)).take(MAX_ZONES).collect()
}

/// `intel-rapl:N` is a package, `intel-rapl:N:M` a part of it.
fn zone(powercap: &Path, folder: &str) -> Option<PowercapZone> {
    let mut numbers = folder.strip_prefix("intel-rapl:")?.split(':');
    let package: u32 = numbers.next()?.parse().ok()?;
    let is_part = numbers.next().is_some();
    let label = std::fs::read_to_string(powercap.join(folder).join("name")).unwrap_or_default();
    let (energy, range) = match label.trim() {
        "dram" if is_part => (Quantity::DramEnergy, Quantity::DramEnergyRange),
        label if !is_part && label.starts_with("package") => (Quantity::CpuEnergy, Quantity::CpuEnergyRange),
        _ => return None,
    };
    let (energy, range) = (energy.with_instance(package), range.with_instance(package));
    let energy_uj = powercap.join(folder).join("energy_uj");
    energy_uj.exists().then(|| PowercapZone { energy, range, device: format!("{folder} {}", label.trim()), energy_uj })
}

impl Sensor for Rapl {
    fn name(&self) -> &'static str {
        "rapl"
    }

    fn read(&mut self, sink: &mut Sink<'_>) {
        if let Some(missing) = self.missing {
            let reason = "no RAPL counters: a virtual machine or container, or a processor without them";
            return sink.absent(missing, monotonic_ns(), &reason);
        }
        for zone in &mut self.zones {
            match zone.range {
                Some((range, Some(range_uj))) => sink.value(range, monotonic_ns(), range_uj),
                Some((range, None)) => sink.absent(range, monotonic_ns(), &NO_RANGE),
                None => {}
            }
        }
        self.read_energy(sink);
    }

    fn read_energy(&mut self, sink: &mut Sink<'_>) {
        self.zones.iter_mut().for_each(|zone| zone.read(sink));
        self.find_mirrors();
    }
}

/// Why a counter cannot be read, and how to open it.
struct NoEnergy<'a> {
    path: &'a Path,
    error: FileError,
}

impl fmt::Display for NoEnergy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.error {
            FileError::Denied => {
                write!(f, "only root may read {}: chmod o+r opens it, but also a side channel", self.path.display())
            }
            error => write!(f, "{}", FileTrouble { path: self.path, error }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_lists_packages_and_memory_once() {
        let root = tempfile::tempdir().unwrap();
        for (folder, name) in [
            ("intel-rapl:0", "package-0\n"),
            ("intel-rapl:0:0", "core\n"),
            ("intel-rapl:0:1", "dram\n"),
            ("intel-rapl:1", "package-1\n"),
            ("intel-rapl:2", "psys\n"),
            ("intel-rapl-mmio:0", "package-0\n"),
            ("dtpm", ""),
        ] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
            std::fs::write(root.path().join(folder).join("name"), name).unwrap();
            std::fs::write(root.path().join(folder).join("energy_uj"), "12\n").unwrap();
        }
        let found: Vec<Metric> = zones(root.path()).into_iter().map(|zone| zone.energy).collect();
        assert_eq!(
            found,
            [
                Quantity::CpuEnergy.with_instance(0),
                Quantity::DramEnergy.with_instance(0),
                Quantity::CpuEnergy.with_instance(1)
            ]
        );
        std::fs::remove_file(root.path().join("intel-rapl:0/energy_uj")).unwrap();
        assert_eq!(zones(root.path()).len(), 2);
        assert!(zones(&root.path().join("none")).is_empty());
    }
}
