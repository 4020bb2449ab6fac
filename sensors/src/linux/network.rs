//! Traffic on the network of the observed process.
//!
//! `/proc/PID/net/dev` belongs to the process's own network namespace, which in a container is not the machine's. The
//! loopback is left out; if some interface is hardware, so are those that are not, since bridges and tunnels carry the
//! same bytes again.

use gnntop_wire::Quantity;

use super::hot_file::HotFile;
use super::parse::{decimal, lines, words};
use crate::options::SensorOptions;
use crate::sensor::{Registry, Sensor, Sink};
use crate::signal::SignalIndex;

/// The largest number of hardware interfaces remembered.
const MAX_INTERFACES: usize = 1024;

/// Reads `/proc/PID/net/dev`.
#[derive(Debug)]
pub(super) struct Network {
    dev: HotFile,
    /// Names of the hardware interfaces.
    hardware: Vec<Box<[u8]>>,
    received_bytes: SignalIndex,
    sent_bytes: SignalIndex,
}

impl Network {
    pub(super) fn open(options: &SensorOptions, registry: &mut Registry) -> Self {
        let mut counter = |quantity| registry.plain(quantity, "/proc/PID/net/dev");
        let class = std::fs::read_dir(options.sys_root.join("class/net")).into_iter().flatten().flatten();
        let hardware = class.filter(|entry| entry.path().join("device").exists());
        let names = hardware.map(|entry| entry.file_name().into_encoded_bytes().into_boxed_slice());
        Self {
            dev: HotFile::new(options.proc_root.join(options.pid.to_string()).join("net/dev")),
            hardware: names.take(MAX_INTERFACES).collect(),
            received_bytes: counter(Quantity::MachineNetworkReceivedBytes),
            sent_bytes: counter(Quantity::MachineNetworkSentBytes),
        }
    }
}

/// Name, bytes received and bytes sent of an interface's line (`proc_pid_net(5)`); the two header lines have none.
fn traffic(line: &[u8]) -> Option<(&[u8], i64, i64)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let name = line[..colon].trim_ascii();
    let mut fields = words(&line[colon + 1..]);
    let received = decimal(fields.next()?)?;
    let sent = decimal(fields.nth(7)?)?;
    (name != b"lo").then_some((name, received, sent))
}

/// Bytes received and sent over all interfaces that count; `None` without any.
fn total(bytes: &[u8], hardware: &[Box<[u8]>]) -> Option<(i64, i64)> {
    let is_hardware = |name: &[u8]| hardware.iter().any(|known| &**known == name);
    let add = |a: (i64, i64), b: (i64, i64)| (a.0.saturating_add(b.0), a.1.saturating_add(b.1));
    let own = lines(bytes).filter_map(traffic).filter(|(name, ..)| is_hardware(name));
    let own = own.map(|(_, received, sent)| (received, sent)).reduce(add);
    own.or_else(|| lines(bytes).filter_map(traffic).map(|(_, received, sent)| (received, sent)).reduce(add))
}

impl Sensor for Network {
    fn name(&self) -> &'static str {
        "network"
    }

    fn read(&mut self, sink: &mut Sink<'_>) {
        let signals = [self.received_bytes, self.sent_bytes];
        let Some(snapshot) = self.dev.read_for(signals, sink) else { return };
        let Some((received, sent)) = total(snapshot.bytes, &self.hardware) else {
            return sink.all_absent(signals, snapshot.t_ns, &"no network interface except the loopback");
        };
        sink.value(self.received_bytes, snapshot.t_ns, received);
        sink.value(self.sent_bytes, snapshot.t_ns, sent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `/proc/net/dev` of a virtual machine, as captured, with a bridge added.
    const DEV: &[u8] =
        b"Inter-|   Receive                                                |  Transmit\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
        lo:    9579      87    0    0    0     0          0         0     9579      87    0    0    0     0       0          0\n  \
        br0: 100       1    0    0    0     0          0         0        7       1    0    0    0     0       0          0\n  \
        eth0:6946839992  178751    0    0    0     0          0         0  9162528  130678    0    0    0     0       0          0\n";

    #[test]
    fn total_counts_only_hardware_if_any() {
        let eth0 = [b"eth0".to_vec().into_boxed_slice()];
        assert_eq!(total(DEV, &eth0), Some((6_946_839_992, 9_162_528)));
        assert_eq!(total(DEV, &[]), Some((6_946_840_092, 9_162_535)));
        assert_eq!(total(&DEV[..400], &[]), None, "only the loopback");
    }

    #[test]
    fn traffic_malformed_line_is_none() {
        for line in ["", ":", "eth0:", "eth0: 1 2 3 4 5 6 7 8", "eth0: x 0 0 0 0 0 0 0 5", "eth0: 1 0 0 0 0 0 0 0 -5"] {
            assert_eq!(traffic(line.as_bytes()), None, "{line}");
        }
    }
}
