//! The doctor: for each component, what can be read here, what cannot and why, and what would open it.
//!
//! The sensors themselves answer: a set is opened and read once, and the signals are grouped by component, so the
//! doctor always agrees with a recording. Limits, which no sensor reads, and energy counters, whose zones may be partly
//! open, are checked as files. Nothing is changed.

use gnntop_wire::{Metric, Quantity, Scope};

use super::diagnosis::{Diagnosis, DiagnosisState};
use super::energy;
use crate::limits::ProcessLimits;
use crate::machine_info::MachineInfo;
use crate::options::SensorOptions;
use crate::set::SensorSet;

/// A component and its signals.
struct Component {
    name: &'static str,
    /// Whether a quantity is one of this component. A process's own share of a GPU is not: most processes use none. Nor
    /// are facts that only the energy model uses.
    has: fn(Quantity) -> bool,
    remedy: &'static str,
}

impl Component {
    /// Counts its signals and quotes the reasons of the absent ones; `None` if this system has no such signals.
    fn diagnose(&self, set: &SensorSet) -> Option<Diagnosis> {
        let mut total = 0_usize;
        let mut absent: Vec<(Metric, &str)> = Vec::new();
        for signal in set.signals().iter().filter(|signal| (self.has)(signal.metric.quantity())) {
            total += 1;
            if let Some(reason) = set.find(signal.metric).and_then(|index| set.absence(index)) {
                absent.push((signal.metric, reason));
            }
        }
        if total == 0 {
            return None;
        }
        let state = match absent.len() {
            0 => DiagnosisState::Readable,
            count if count < total => DiagnosisState::Partial,
            _ if absent.iter().any(|(_, reason)| reason.contains("permission") || reason.contains("may not")) => {
                DiagnosisState::Refused
            }
            _ => DiagnosisState::Missing,
        };
        let mut detail = format!("{} of {total} signals", total - absent.len());
        if (self.has)(Quantity::GpuCount) {
            describe_gpus(set, &mut detail);
        }
        describe_absent(&absent, &mut detail);
        let remedy = (state != DiagnosisState::Readable).then(|| self.remedy.to_owned());
        Some(Diagnosis { component: self.name, state, detail, remedy })
    }
}

const COMPONENTS: [Component; 7] = [
    Component {
        name: "process",
        has: |quantity| quantity.scope() == Scope::Process && !is_io(quantity),
        remedy: "give the PID of a running process of this user; if /proc hides processes, remount it without hidepid",
    },
    Component {
        name: "process input and output",
        has: is_io,
        remedy: "run as the user who owns the process, or as root",
    },
    Component {
        name: "machine CPU",
        has: |quantity| {
            let is_total =
                matches!(quantity, Quantity::MachineCpuBusy | Quantity::MachineCpuIowait | Quantity::MachineCpuSteal);
            is_total || quantity.scope() == Scope::Core
        },
        remedy: "mount /proc in the container without masking /proc/stat; root can switch on offline cores under \
                 /sys/devices/system/cpu",
    },
    Component {
        name: "machine memory and load",
        has: |quantity| {
            matches!(
                quantity,
                Quantity::MachineMemoryTotal
                    | Quantity::MachineMemoryAvailable
                    | Quantity::MachineMemoryUsed
                    | Quantity::MachineSwapTotal
                    | Quantity::MachineSwapUsed
                    | Quantity::MachineLoad1m
                    | Quantity::MachineLoad5m
                    | Quantity::MachineLoad15m
            )
        },
        remedy: "mount /proc in the container without masking it",
    },
    Component {
        name: "pressure",
        has: |quantity| {
            matches!(
                quantity,
                Quantity::PressureCpuSome
                    | Quantity::PressureCpuFull
                    | Quantity::PressureMemorySome
                    | Quantity::PressureMemoryFull
                    | Quantity::PressureIoSome
                    | Quantity::PressureIoFull
            )
        },
        remedy: "boot Linux 4.20 or newer, built with CONFIG_PSI, with psi=1 on its command line",
    },
    Component {
        name: "disks and network",
        has: |quantity| {
            matches!(
                quantity,
                Quantity::MachineDiskReadBytes
                    | Quantity::MachineDiskWriteBytes
                    | Quantity::MachineNetworkReceivedBytes
                    | Quantity::MachineNetworkSentBytes
            )
        },
        remedy: "mount /proc and /sys in the container without masking /proc/diskstats and /sys/block",
    },
    Component {
        name: "NVIDIA GPU",
        has: |quantity| {
            let is_gpu = quantity.scope() == Scope::Gpu && quantity != Quantity::GpuProcessMemory;
            is_gpu || quantity == Quantity::GpuCount
        },
        remedy: if cfg!(target_feature = "crt-static") {
            "use the glibc build of gnntop"
        } else {
            "install the NVIDIA driver; in a container start it with the NVIDIA runtime (--gpus all) and the `utility` \
             capability"
        },
    },
];

/// What a process reads and writes, which `/proc` shows only to its owner.
fn is_io(quantity: Quantity) -> bool {
    matches!(
        quantity,
        Quantity::ProcessIoRchar
            | Quantity::ProcessIoWchar
            | Quantity::ProcessIoReadBytes
            | Quantity::ProcessIoWriteBytes
            | Quantity::ProcessIoReadCalls
            | Quantity::ChildrenIoRchar
            | Quantity::ChildrenIoReadCalls
            | Quantity::ChildrenIoReadBytes
    )
}

/// Diagnoses each component: what can be read, what cannot and why, and what would open it.
pub fn diagnose(options: &SensorOptions) -> Vec<Diagnosis> {
    let mut set = SensorSet::open(options);
    // Each pass makes one blocking call per GPU; there are two for each.
    for _ in 0..(2 * set.gpus().len()).max(1) {
        set.read(&mut |_| ());
    }
    let limits = MachineInfo::from_sensors(&set).limits;
    let mut diagnoses: Vec<Diagnosis> = COMPONENTS.iter().filter_map(|component| component.diagnose(&set)).collect();
    diagnoses.extend(energy::diagnose(options, &set));
    diagnoses.push(diagnose_limits(&limits));
    diagnoses
}

fn describe_gpus(set: &SensorSet, detail: &mut String) {
    for gpu in set.gpus() {
        let name = gpu.name.as_deref().unwrap_or("a GPU that does not open");
        detail.push_str(&format!("; {}: {name}", gpu.index));
    }
    if let Some(driver) = set.gpus().first().and_then(|gpu| gpu.driver.as_deref()) {
        detail.push_str(&format!("; driver {driver}"));
    }
}

/// Each reason once, with the first signal it applies to and the number of others.
fn describe_absent(absent: &[(Metric, &str)], detail: &mut String) {
    let mut told: Vec<&str> = Vec::new();
    for (name, reason) in absent {
        if told.contains(reason) {
            continue;
        }
        told.push(reason);
        let others = absent.iter().filter(|(_, other)| other == reason).count() - 1;
        match others {
            0 => detail.push_str(&format!("; {name}: {reason}")),
            _ => detail.push_str(&format!("; {name} and {others} more: {reason}")),
        }
    }
}

/// The share of the machine that the process may use: not a fault, but it explains figures.
fn diagnose_limits(limits: &ProcessLimits) -> Diagnosis {
    let cpus = limits.allowed_cpus.map_or_else(|| "any CPU".to_owned(), |count| format!("{count} CPUs (mask)"));
    let quota = match limits.cpu_millicores {
        Some(millicores) => format!("{}.{:02} cores (control group)", millicores / 1000, millicores % 1000 / 10),
        None => "no CPU quota".to_owned(),
    };
    let memory = match limits.memory_bytes {
        Some(bytes) => format!("{} MiB of memory", bytes >> 20),
        None => "no memory limit".to_owned(),
    };
    let remedy = limits.cpu_millicores.map(|_| {
        "compare CPU time with this quota, not with the machine's cores; raise cpu.max of the control group for more".to_owned()
    });
    Diagnosis {
        component: "limits of the process",
        state: DiagnosisState::Readable,
        detail: format!("{cpus}, {quota}, {memory}"),
        remedy,
    }
}
