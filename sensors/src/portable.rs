//! The process and the machine on systems other than Linux, through sysinfo.
//!
//! Fewer signals than on Linux, and some are gauges where Linux has counters: sysinfo's values are recorded as they
//! are. Its CPU load is an average since the previous read, and it asks for 200 ms between two reads.

use std::time::Duration;

use gnntop_wire::Quantity;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, Pid, ProcessRefreshKind, ProcessesToUpdate, RefreshKind, System};

use crate::clock::stamped;
use crate::options::SensorOptions;
use crate::sensor::{Registry, Sensor, Sink};
use crate::signal::{SignalIndex, SignalInfo};

/// Reads through sysinfo.
pub(crate) struct Portable {
    system: Result<System, String>,
    pid: Pid,
    last_cpu_ns: Option<u64>,
    process: ProcessSignals,
    memory: MemorySignals,
    cpu_load: Vec<SignalIndex>,
}

struct ProcessSignals {
    cpu_time: SignalIndex,
    rss: SignalIndex,
    read: SignalIndex,
    written: SignalIndex,
}

struct MemorySignals {
    total: SignalIndex,
    available: SignalIndex,
    used: SignalIndex,
    swap_total: SignalIndex,
    swap_used: SignalIndex,
}

impl Portable {
    pub(crate) fn open(options: &SensorOptions, registry: &mut Registry) -> Self {
        let wanted = RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing().with_usage());
        let system =
            System::new_with_specifics(wanted).map_err(|error| format!("the system reports no figures: {error}"));
        let mut plain = |quantity| registry.plain(quantity, "sysinfo");
        let process = ProcessSignals {
            cpu_time: plain(Quantity::ProcessCpuTime),
            rss: plain(Quantity::ProcessRss),
            read: plain(Quantity::ProcessIoReadBytes),
            written: plain(Quantity::ProcessIoWriteBytes),
        };
        let memory = MemorySignals {
            total: plain(Quantity::MachineMemoryTotal),
            available: plain(Quantity::MachineMemoryAvailable),
            used: plain(Quantity::MachineMemoryUsed),
            swap_total: plain(Quantity::MachineSwapTotal),
            swap_used: plain(Quantity::MachineSwapUsed),
        };
        let cores = if options.per_core { system.as_ref().map_or(0, |system| system.cpus().len()) } else { 0 };
        let cpu_load = (0..cores).map(|core| register_core(registry, core)).collect();
        Self { system, pid: Pid::from_u32(options.pid), last_cpu_ns: None, process, memory, cpu_load }
    }

    fn every_signal(&self) -> impl Iterator<Item = SignalIndex> + '_ {
        let Self { process, memory, cpu_load, .. } = self;
        let of_process = [process.cpu_time, process.rss, process.read, process.written];
        let of_memory = [memory.total, memory.available, memory.used, memory.swap_total, memory.swap_used];
        of_process.into_iter().chain(of_memory).chain(cpu_load.iter().copied())
    }
}

fn register_core(registry: &mut Registry, core: usize) -> SignalIndex {
    let metric = Quantity::CoreLoad.with_instance(u32::try_from(core).unwrap_or(u32::MAX));
    registry.add(SignalInfo { metric, source: "sysinfo", device: Some(format!("cpu {core}")) })
}

impl ProcessSignals {
    fn read(&self, system: &mut System, pid: Pid, sink: &mut Sink<'_>) {
        let wanted = ProcessRefreshKind::nothing().with_cpu().with_memory().with_disk_usage();
        let (t_ns, _) = stamped(|| system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, wanted));
        let Some(process) = system.process(pid) else {
            for signal in [self.cpu_time, self.rss, self.read, self.written] {
                sink.absent(signal, t_ns, &format_args!("process {pid} has ended"));
            }
            return;
        };
        let disk = process.disk_usage();
        sink.value(self.cpu_time, t_ns, raw(process.accumulated_cpu_time().saturating_mul(1_000_000)));
        sink.value(self.rss, t_ns, raw(process.memory()));
        sink.value(self.read, t_ns, raw(disk.total_read_bytes));
        sink.value(self.written, t_ns, raw(disk.total_written_bytes));
    }
}

impl MemorySignals {
    fn read(&self, system: &mut System, sink: &mut Sink<'_>) {
        let (t_ns, ()) = stamped(|| system.refresh_memory_specifics(MemoryRefreshKind::everything()));
        let (total, available) = (system.total_memory(), system.available_memory());
        sink.value(self.total, t_ns, raw(total));
        sink.value(self.available, t_ns, raw(available));
        sink.value(self.used, t_ns, raw(total.saturating_sub(available)));
        sink.value(self.swap_total, t_ns, raw(system.total_swap()));
        sink.value(self.swap_used, t_ns, raw(system.used_swap()));
    }
}

impl Sensor for Portable {
    fn name(&self) -> &'static str {
        "sysinfo"
    }

    fn read(&mut self, sink: &mut Sink<'_>) {
        let system = match &mut self.system {
            Ok(system) => system,
            Err(reason) => {
                let (t_ns, reason) = (crate::clock::monotonic_ns(), reason.clone());
                return sink.all_absent(self.every_signal(), t_ns, &reason);
            }
        };
        self.process.read(system, self.pid, sink);
        self.memory.read(system, sink);
        let now_ns = crate::clock::monotonic_ns();
        let due = self
            .last_cpu_ns
            .is_none_or(|last_ns| now_ns.saturating_sub(last_ns) >= interval_ns(sysinfo::MINIMUM_CPU_UPDATE_INTERVAL));
        if due {
            let first = self.last_cpu_ns.replace(now_ns).is_none();
            system.refresh_cpu_usage();
            // The first refresh has nothing to compare with, and would read 0.
            for (signal, cpu) in self.cpu_load.iter().zip(system.cpus()).filter(|_| !first) {
                sink.value(*signal, now_ns, (f64::from(cpu.usage()) * 1000.0).round() as i64);
            }
        }
    }
}

fn interval_ns(interval: Duration) -> u64 {
    u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX)
}

/// A size or time as a raw value. No realistic one exceeds an `i64`.
fn raw(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::SensorSet;
    use crate::signal::Reading;

    #[test]
    fn this_process_and_machine_are_read() {
        let mut set = SensorSet::empty(&SensorOptions::default());
        let options = set.options().clone();
        set.add(|registry| Box::new(Portable::open(&options, registry)));
        let mut readings = Vec::new();
        set.read(&mut |reading| readings.push(reading));
        for quantity in
            [Quantity::ProcessCpuTime, Quantity::ProcessRss, Quantity::MachineMemoryTotal, Quantity::MachineMemoryUsed]
        {
            let signal = set.find(quantity).unwrap();
            let value = readings.iter().find_map(|reading| match reading {
                Reading::Value { signal: of, value, .. } if *of == signal => Some(*value),
                _ => None,
            });
            assert!(value.is_some_and(|value| value >= 0), "{quantity:?}: {value:?}");
        }
    }

    #[test]
    fn portable_missing_process_is_absent() {
        let options = SensorOptions { pid: u32::MAX / 2, ..SensorOptions::default() };
        let mut set = SensorSet::empty(&options);
        set.add(|registry| Box::new(Portable::open(&options, registry)));
        set.read(&mut |_| ());
        let signal = set.find(Quantity::ProcessRss).unwrap();
        assert_eq!(set.absence(signal), Some("process 2147483647 has ended"));
    }
}
