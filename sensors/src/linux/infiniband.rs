//! What InfiniBand and RoCE adapters carry, which the network's own counters do not see: RDMA bypasses the kernel.
//! `/sys/class/infiniband/DEVICE/ports/N/counters` (Documentation/ABI/stable/sysfs-class-infiniband).

use std::fs;
use std::path::Path;

use gnntop_wire::Quantity;

use super::hot_file::HotFile;
use super::parse::decimal;
use crate::options::SensorOptions;
use crate::sensor::{Registry, Sensor, Sink};
use crate::signal::SignalIndex;

/// The counters are in units of four bytes, whatever the width of the link.
const UNIT_BYTES: i64 = 4;
/// The largest number of ports added up.
const MAX_PORTS: usize = 64;
const SOURCE: &str = "InfiniBand port counters";

/// Adds up the ports of a machine.
#[derive(Debug)]
pub(super) struct InfiniBand {
    received: (SignalIndex, Vec<HotFile>),
    sent: (SignalIndex, Vec<HotFile>),
}

impl InfiniBand {
    /// `None` on a machine without such an adapter.
    pub(super) fn open(options: &SensorOptions, registry: &mut Registry) -> Option<Self> {
        let class = options.sys_root.join("class/infiniband");
        let (received, sent) = (ports(&class, "port_rcv_data"), ports(&class, "port_xmit_data"));
        if received.is_empty() || sent.is_empty() {
            return None;
        }
        let mut counter = |quantity| registry.plain(quantity, SOURCE);
        Some(Self {
            received: (counter(Quantity::MachineInfinibandReceivedBytes), received),
            sent: (counter(Quantity::MachineInfinibandSentBytes), sent),
        })
    }
}

/// This counter of every port.
fn ports(class: &Path, counter: &str) -> Vec<HotFile> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let ports = entries(class).flat_map(|device| entries(&device.join("ports")).collect::<Vec<_>>());
    let files = ports.map(|port| port.join("counters").join(counter)).filter(|file| file.exists());
    files.take(MAX_PORTS).map(HotFile::new).collect()
}

impl Sensor for InfiniBand {
    fn name(&self) -> &'static str {
        "infiniband"
    }

    fn read(&mut self, sink: &mut Sink<'_>) {
        for (signal, files) in [&mut self.received, &mut self.sent] {
            let (mut sum, mut t_ns) = (Some(0_i64), 0);
            for file in files {
                let Some(snapshot) = file.read_for([*signal], sink) else { return };
                t_ns = snapshot.t_ns;
                let units = decimal(snapshot.bytes.trim_ascii());
                sum = sum.zip(units).map(|(sum, units)| sum.saturating_add(units.saturating_mul(UNIT_BYTES)));
            }
            match sum {
                Some(sum) => sink.value(*signal, t_ns, sum),
                None => sink.absent(*signal, t_ns, &"a counter is not a number"),
            }
        }
    }
}
