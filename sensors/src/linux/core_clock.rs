//! The clock of the core on which the process's main thread last ran: heat and limits on power lower it. Part of
//! [`super::process`], which knows that core.

use std::path::PathBuf;

use gnntop_wire::Quantity;

use super::parse::decimal;
use crate::clock::{monotonic_ns, stamped};
use crate::options::SensorOptions;
use crate::sensor::{Registry, Sink};
use crate::signal::SignalIndex;

/// Some kernels measure a clock when asked, for 10 ms.
const INTERVAL_NS: u64 = 1_000_000_000;

/// Reads `scaling_cur_freq` of a core, in kHz.
#[derive(Debug)]
pub(super) struct CoreClock {
    /// `/sys/devices/system/cpu`
    cores: PathBuf,
    signal: SignalIndex,
    next_ns: u64,
}

impl CoreClock {
    /// `None` where the kernel does not manage clocks.
    pub(super) fn open(options: &SensorOptions, registry: &mut Registry) -> Option<Self> {
        let cores = options.sys_root.join("devices/system/cpu");
        file(&cores, 0).exists().then(|| Self {
            signal: registry.plain(Quantity::MainThreadClock, "scaling_cur_freq"),
            cores,
            next_ns: 0,
        })
    }

    /// The signal that it reads.
    pub(super) fn signal(&self) -> SignalIndex {
        self.signal
    }

    /// Reads the clock of this core, once a second.
    pub(super) fn read(&mut self, core: Option<i64>, sink: &mut Sink<'_>) {
        if monotonic_ns() < self.next_ns {
            return;
        }
        let Some(core) = core else { return sink.absent(self.signal, monotonic_ns(), &"no core in /proc/PID/stat") };
        // Of another core each time, so the file is not kept open.
        let (t_ns, text) = stamped(|| std::fs::read(file(&self.cores, core)));
        self.next_ns = t_ns.saturating_add(INTERVAL_NS);
        match text.ok().and_then(|text| decimal(text.trim_ascii_end())) {
            Some(khz) => sink.value(self.signal, t_ns, khz / 1000),
            None => sink.absent(self.signal, t_ns, &format_args!("core {core} has no readable scaling_cur_freq")),
        }
    }
}

fn file(cores: &std::path::Path, core: i64) -> PathBuf {
    cores.join(format!("cpu{core}/cpufreq/scaling_cur_freq"))
}
