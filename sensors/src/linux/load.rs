//! The load averages of the machine: tasks running or waiting for a disk, over 1, 5 and 15 minutes.

use gnntop_wire::Quantity;

use super::hot_file::HotFile;
use super::parse::{thousandths, words};
use crate::options::SensorOptions;
use crate::sensor::{Registry, Sensor, Sink};
use crate::signal::SignalIndex;

/// Reads `/proc/loadavg`.
#[derive(Debug)]
pub(super) struct Load {
    loadavg: HotFile,
    signals: [SignalIndex; 3],
}

impl Load {
    pub(super) fn open(options: &SensorOptions, registry: &mut Registry) -> Self {
        let quantities = [Quantity::MachineLoad1m, Quantity::MachineLoad5m, Quantity::MachineLoad15m];
        Self {
            loadavg: HotFile::new(options.proc_root.join("loadavg")),
            signals: quantities.map(|quantity| registry.plain(quantity, "/proc/loadavg")),
        }
    }
}

impl Sensor for Load {
    fn name(&self) -> &'static str {
        "load"
    }

    fn read(&mut self, sink: &mut Sink<'_>) {
        let Some(snapshot) = self.loadavg.read_for(self.signals, sink) else { return };
        let mut fields = words(snapshot.bytes.trim_ascii_end());
        for signal in self.signals {
            // One task is one whole core, 100 %; a thousandth of a task is 100 thousandths of a percent.
            match fields.next().and_then(thousandths).and_then(|load| load.checked_mul(100)) {
                Some(load) => sink.value(signal, snapshot.t_ns, load),
                None => sink.absent(signal, snapshot.t_ns, &"this figure is missing from /proc/loadavg"),
            }
        }
    }
}
