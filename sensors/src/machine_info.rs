//! Describes this machine, for headers and the doctor: read once, through sysinfo and the opened sensors.

use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

use crate::gpu_info::GpuInfo;
use crate::limits::ProcessLimits;
use crate::set::SensorSet;

/// The machine a set of sensors was opened on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineInfo {
    /// The host's name, or `None` if the system does not report it.
    pub host_name: Option<String>,
    /// The operating system and its version, such as `Linux (Debian GNU/Linux 13) 6.12.0`.
    pub os: String,
    /// The processor architecture, such as `x86_64`.
    pub architecture: String,
    /// The processor's brand, such as `AMD EPYC 9474F 48-Core Processor`, or `None` if the system does not report it.
    pub cpu_model: Option<String>,
    /// Physical cores of all sockets, or `None` if the system does not report it.
    pub physical_cores: Option<u32>,
    /// Hardware threads that are switched on.
    pub logical_cores: u32,
    /// Installed memory in bytes, or `None` if the system does not report it.
    pub memory_bytes: Option<u64>,
    /// The share of the machine that the observed process may use.
    pub limits: ProcessLimits,
    /// The GPUs found when the sensors were opened.
    pub gpus: Vec<GpuInfo>,
}

impl MachineInfo {
    /// Describes the machine that `set` was opened on. Takes some milliseconds.
    pub fn from_sensors(set: &SensorSet) -> Self {
        let wanted = RefreshKind::nothing()
            .with_cpu(CpuRefreshKind::nothing())
            .with_memory(MemoryRefreshKind::nothing().with_ram());
        let system = System::new_with_specifics(wanted).ok();
        let cpus = system.as_ref().map(System::cpus).unwrap_or_default();
        Self {
            host_name: System::host_name().ok(),
            os: os(),
            architecture: System::cpu_arch(),
            cpu_model: cpus.first().map(|cpu| cpu.brand().trim().to_owned()).filter(|brand| !brand.is_empty()),
            physical_cores: System::physical_core_count().ok().and_then(|count| u32::try_from(count).ok()),
            logical_cores: logical_cores(cpus.len()),
            memory_bytes: system.map(|system| system.total_memory()).filter(|bytes| *bytes > 0),
            limits: limits(set),
            gpus: set.gpus().to_vec(),
        }
    }
}

fn os() -> String {
    let long = System::long_os_version().unwrap_or_else(|_| std::env::consts::OS.to_owned());
    match System::kernel_version() {
        Ok(kernel) if !long.contains(&kernel) => format!("{long}, kernel {kernel}"),
        _ => long,
    }
}

/// sysinfo's count of the machine's threads, or what this process may use if it found none.
fn logical_cores(found: usize) -> u32 {
    let allowed = || std::thread::available_parallelism().map_or(1, usize::from);
    let count = if found > 0 { found } else { allowed() };
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(target_os = "linux")]
fn limits(set: &SensorSet) -> ProcessLimits {
    crate::linux::cgroup::limits(set.options())
}

#[cfg(not(target_os = "linux"))]
fn limits(_set: &SensorSet) -> ProcessLimits {
    ProcessLimits::default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::SensorOptions;

    #[test]
    fn this_machine_has_a_core_and_memory() {
        let set = SensorSet::empty(&SensorOptions::default());
        let machine = MachineInfo::from_sensors(&set);
        assert!(machine.logical_cores >= 1);
        assert!(!machine.os.is_empty());
        assert!(machine.memory_bytes.is_some_and(|bytes| bytes > 1 << 20));
    }
}
