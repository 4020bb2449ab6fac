//! What the machine has, and the share of it that the process may use: the basis of the power model if there is no
//! counter.
//!
//! Read once when the set is opened and reported in every pass, so that each piece of a recording has it.

use std::path::Path;

use gnntop_wire::Quantity;

use super::cgroup;
use crate::clock::monotonic_ns;
use crate::options::SensorOptions;
use crate::sensor::{Registry, Sensor, Sink};
use crate::signal::{SignalIndex, SignalInfo};

/// Limits on the memory controllers that are read, and the modules of each.
const MAX_MODULES: usize = 1024;

/// Reports constants: what does not exist, such as a quota, has no signal.
#[derive(Debug)]
pub(super) struct Shape {
    constants: Vec<(SignalIndex, i64)>,
}

impl Shape {
    pub(super) fn open(options: &SensorOptions, registry: &mut Registry) -> Self {
        let processors = Processors::parse(&std::fs::read(options.proc_root.join("cpuinfo")).unwrap_or_default());
        let limits = cgroup::limits(options);
        let mut constants = Vec::new();
        let mut add = |quantity: Quantity, source, device: Option<String>, value: Option<i64>| {
            let signal = SignalInfo { metric: quantity.into(), source, device };
            constants.extend(value.map(|value| (registry.add(signal), value)));
        };
        let counted = |count: i64| Some(count).filter(|count| *count > 0);
        let cpuinfo = "/proc/cpuinfo";
        add(Quantity::MachineCpuThreads, cpuinfo, processors.model, counted(processors.threads));
        add(Quantity::MachineCpuSockets, cpuinfo, None, counted(processors.packages.len() as i64));
        let modules = modules(&options.sys_root.join("devices/system/edac/mc"));
        add(Quantity::MachineMemoryModules, "/sys/devices/system/edac/mc", None, modules);
        add(Quantity::AllottedCpuThreads, "/proc/PID/status", None, limits.allowed_cpus.map(i64::from));
        // A thousandth of a core is 100 thousandths of a percent of one.
        let quota = limits.cpu_millicores.map(|millicores| millicores.saturating_mul(100));
        add(Quantity::AllottedCpuQuota, "cgroup cpu.max", None, quota);
        add(Quantity::AllottedMemory, "cgroup memory.max", None, limits.memory_bytes);
        Self { constants }
    }
}

impl Sensor for Shape {
    fn name(&self) -> &'static str {
        "shape"
    }

    fn read(&mut self, sink: &mut Sink<'_>) {
        let t_ns = monotonic_ns();
        self.constants.iter().for_each(|(signal, value)| sink.value(*signal, t_ns, *value));
    }
}

/// The contents of `/proc/cpuinfo`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Processors {
    model: Option<String>,
    threads: i64,
    packages: Vec<u32>,
}

impl Processors {
    fn parse(cpuinfo: &[u8]) -> Self {
        let mut all = Self::default();
        for line in String::from_utf8_lossy(cpuinfo).lines() {
            let Some((key, value)) = line.split_once(':') else { continue };
            match (key.trim(), value.trim()) {
                ("processor", _) => all.threads += 1,
                ("model name", value) if all.model.is_none() => all.model = Some(value.to_owned()),
                ("physical id", value) => {
                    let new = value.parse().ok().filter(|id| !all.packages.contains(id));
                    all.packages.extend(new);
                }
                _ => {}
            }
        }
        all
    }
}

/// Occupied memory modules; `None` if no controller reports them.
fn modules(controllers: &Path) -> Option<i64> {
    let folders = |path: &Path, prefix: &'static str| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let paths = entries.filter(move |entry| entry.file_name().to_string_lossy().starts_with(prefix));
        paths.map(|entry| entry.path()).take(MAX_MODULES)
    };
    let has_memory = |module: &std::path::PathBuf| {
        let size = std::fs::read_to_string(module.join("size")).unwrap_or_default();
        size.trim().parse::<u64>().is_ok_and(|mebibytes| mebibytes > 0)
    };
    let modules = folders(controllers, "mc").flat_map(|mc| folders(&mc, "dimm").collect::<Vec<_>>());
    i64::try_from(modules.filter(has_memory).count()).ok().filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_parses_cpuinfo() {
        let text = b"processor\t: 0\nmodel name\t: AMD EPYC 7763 64-Core Processor\nphysical id\t: 0\n\n\
                     processor\t: 1\nmodel name\t: AMD EPYC 7763 64-Core Processor\nphysical id\t: 1\n\n";
        let found = Processors::parse(text);
        assert_eq!(found.model.as_deref(), Some("AMD EPYC 7763 64-Core Processor"));
        assert_eq!((found.threads, found.packages), (2, vec![0, 1]));
        assert_eq!(Processors::parse(b"\xff:\nprocessor"), Processors::default());
    }

    #[test]
    fn modules_counts_only_populated_slots() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(modules(root.path()), None);
        for (module, size) in [("mc0/dimm0", "32768\n"), ("mc0/dimm1", "0\n"), ("mc1/dimm0", "32768"), ("mc1/x", "9")] {
            std::fs::create_dir_all(root.path().join(module)).unwrap();
            std::fs::write(root.path().join(module).join("size"), size).unwrap();
        }
        assert_eq!(modules(root.path()), Some(2));
    }
}
