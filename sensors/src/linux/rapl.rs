//! Energy of the processor packages and of their memory, by RAPL counters under `/sys/class/powercap`.
//!
//! The counters are passed on raw, in microjoules. They begin again at `max_energy_range_uj`; a reader sees that as a counter
//! that went back, and loses what lies between two readings. Most systems let only root read them (CVE-2020-8694): the
//! reason then says what would open them. Energy of cores and graphics is inside that of the package and not read, nor
//! are the copies of zones that belong to other interfaces (`intel-rapl-mmio`).

use std::fmt;
use std::path::{Path, PathBuf};

use gnntop_wire::{SignalKind, Unit};

use super::hot_file::{FileError, FileTrouble, HotFile};
use super::parse::decimal;
use crate::clock::monotonic_ns;
use crate::set::{Registry, Sensor, SensorOptions, Sink};
use crate::signal::{SignalIndex, SignalInfo};

/// Zones that are read at most.
const MOST_ZONES: usize = 64;

/// Reads the energy counters of packages and memory.
#[derive(Debug)]
pub(super) struct Rapl {
    zones: Vec<Zone>,
    /// The signal that says why there are none.
    missing: Option<SignalIndex>,
}

#[derive(Debug)]
struct Zone {
    energy_uj: HotFile,
    signal: SignalIndex,
}

impl Rapl {
    pub(super) fn open(options: &SensorOptions, registry: &mut Registry) -> Self {
        let found = zones(&options.sys_root.join("class/powercap"));
        let mut register = |name: String, device: Option<String>| {
            let (unit, kind, source) = (Unit::Microjoules, SignalKind::Counter, "RAPL powercap");
            registry.add(SignalInfo { name, unit, kind, source, device })
        };
        let zones: Vec<Zone> = found
            .into_iter()
            .map(|found| Zone {
                signal: register(format!("{}.energy", found.name), Some(found.device)),
                energy_uj: HotFile::new(found.energy_uj),
            })
            .collect();
        let missing = zones.is_empty().then(|| register("cpu.0.energy".to_owned(), None));
        Self { zones, missing }
    }
}

/// A zone that counts energy of its own.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    /// `cpu.N` for a package and `dram.N` for its memory.
    name: String,
    /// What the zone is called, such as `intel-rapl:0 package-0`.
    device: String,
    energy_uj: PathBuf,
}

/// Packages and their memory, by zone name. Those of `intel-rapl` alone: the same counters come through others again.
fn zones(powercap: &Path) -> Vec<Found> {
    let entries = std::fs::read_dir(powercap).into_iter().flatten().flatten();
    let mut folders: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    folders.sort_unstable();
    folders.iter().filter_map(|folder| zone(powercap, folder)).take(MOST_ZONES).collect()
}

/// `intel-rapl:N` is a package, `intel-rapl:N:M` a part of it.
fn zone(powercap: &Path, folder: &str) -> Option<Found> {
    let mut numbers = folder.strip_prefix("intel-rapl:")?.split(':');
    let package: u32 = numbers.next()?.parse().ok()?;
    let is_part = numbers.next().is_some();
    let label = std::fs::read_to_string(powercap.join(folder).join("name")).unwrap_or_default();
    let name = match label.trim() {
        "dram" if is_part => format!("dram.{package}"),
        label if !is_part && label.starts_with("package") => format!("cpu.{package}"),
        _ => return None,
    };
    let energy_uj = powercap.join(folder).join("energy_uj");
    energy_uj.exists().then(|| Found { name, device: format!("{folder} {}", label.trim()), energy_uj })
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
            match zone.energy_uj.read() {
                Ok(snapshot) => match decimal(snapshot.bytes.trim_ascii()) {
                    Some(energy_uj) => sink.value(zone.signal, snapshot.t_ns, energy_uj),
                    None => sink.absent(zone.signal, snapshot.t_ns, &"the counter holds no number"),
                },
                Err(error) => {
                    let trouble = NoEnergy { path: zone.energy_uj.path(), error };
                    sink.absent(zone.signal, monotonic_ns(), &trouble);
                }
            }
        }
    }
}

/// Why a counter cannot be read, and what would open it.
struct NoEnergy<'a> {
    path: &'a Path,
    error: FileError,
}

impl fmt::Display for NoEnergy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.error {
            FileError::Denied => {
                write!(f, "only root may read {}: chmod o+r opens it, and a side channel", self.path.display())
            }
            error => write!(f, "{}", FileTrouble { path: self.path, error }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_and_their_memory_are_found_once() {
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
        let found: Vec<String> = zones(root.path()).into_iter().map(|zone| zone.name).collect();
        assert_eq!(found, ["cpu.0", "dram.0", "cpu.1"]);
        std::fs::remove_file(root.path().join("intel-rapl:0/energy_uj")).unwrap();
        assert_eq!(zones(root.path()).len(), 2);
        assert!(zones(&root.path().join("none")).is_empty());
    }
}
