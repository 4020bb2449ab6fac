//! How long the process's main thread was ready to run and had no CPU: contention, measured. Part of [`super::process`], which knows
//! whether the PID still means the same process.

use gnntop_wire::Quantity;

use super::hot_file::HotFile;
use super::parse::{decimal, words};
use crate::options::SensorOptions;
use crate::sensor::{Registry, Sink};
use crate::signal::SignalIndex;

/// Reads `/proc/PID/schedstat`: nanoseconds on a CPU, nanoseconds waiting for one, and turns.
#[derive(Debug)]
pub(super) struct RunQueue {
    schedstat: HotFile,
    wait: SignalIndex,
}

impl RunQueue {
    pub(super) fn new(options: &SensorOptions, registry: &mut Registry) -> Self {
        Self {
            schedstat: HotFile::new(options.proc_root.join(options.pid.to_string()).join("schedstat")),
            wait: registry.plain(Quantity::MainThreadCpuWait, "/proc/PID/schedstat"),
        }
    }
}

impl RunQueue {
    /// The signal that it reads.
    pub(super) fn signal(&self) -> SignalIndex {
        self.wait
    }

    pub(super) fn read(&mut self, sink: &mut Sink<'_>) {
        let Some(snapshot) = self.schedstat.read_for([self.wait], sink) else { return };
        let mut fields = words(snapshot.bytes.trim_ascii_end()).map(decimal);
        match (fields.next().flatten(), fields.next().flatten()) {
            // A thread that was never on a CPU could not have run this code: this kernel does not count.
            (Some(0), _) => sink.absent(self.wait, snapshot.t_ns, &"this kernel keeps no scheduler statistics"),
            (Some(_), Some(wait_ns)) => sink.value(self.wait, snapshot.t_ns, wait_ns),
            _ => sink.absent(self.wait, snapshot.t_ns, &"cannot parse /proc/PID/schedstat"),
        }
    }
}
