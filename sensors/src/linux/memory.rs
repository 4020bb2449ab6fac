//! The machine's memory and swap.

use gnntop_wire::Quantity;

use super::hot_file::{HotFile, Snapshot};
use super::parse::keyed;
use crate::options::SensorOptions;
use crate::sensor::{Registry, Sensor, Sink};
use crate::signal::SignalIndex;

const KEYS: [&[u8]; 4] = [b"MemTotal", b"MemAvailable", b"SwapTotal", b"SwapFree"];

/// Reads `/proc/meminfo`.
#[derive(Debug)]
pub(super) struct Memory {
    meminfo: HotFile,
    total: SignalIndex,
    available: SignalIndex,
    used: SignalIndex,
    swap_total: SignalIndex,
    swap_used: SignalIndex,
}

impl Memory {
    pub(super) fn open(options: &SensorOptions, registry: &mut Registry) -> Self {
        let mut gauge = |quantity| registry.plain(quantity, "/proc/meminfo");
        Self {
            meminfo: HotFile::new(options.proc_root.join("meminfo")),
            total: gauge(Quantity::MachineMemoryTotal),
            available: gauge(Quantity::MachineMemoryAvailable),
            used: gauge(Quantity::MachineMemoryUsed),
            swap_total: gauge(Quantity::MachineSwapTotal),
            swap_used: gauge(Quantity::MachineSwapUsed),
        }
    }
}

impl Sensor for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn read(&mut self, sink: &mut Sink<'_>) {
        let signals = [self.total, self.available, self.used, self.swap_total, self.swap_used];
        let Some(Snapshot { bytes, t_ns }) = self.meminfo.read_for(signals, sink) else { return };
        let [total, available, swap_total, swap_free] = keyed(bytes, &KEYS).map(|size| size?.checked_mul(1024));
        let less = |whole: Option<i64>, part: Option<i64>| whole.zip(part).map(|(whole, part)| (whole - part).max(0));
        let bytes = [total, available, less(total, available), swap_total, less(swap_total, swap_free)];
        for (signal, bytes) in signals.into_iter().zip(bytes) {
            match bytes {
                Some(bytes) => sink.value(signal, t_ns, bytes),
                None => sink.absent(signal, t_ns, &"this figure is missing from /proc/meminfo"),
            }
        }
    }
}
