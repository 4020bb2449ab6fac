//! What the machine's disks read and write.
//!
//! Only whole devices that are hardware are added up: a partition's bytes are already in its disk, and those of a loop
//! device, a RAID or an encrypted volume in the disks below it. `/sys/block/NAME/device` distinguishes them.

use std::path::Path;

use gnntop_wire::Quantity;

use super::hot_file::HotFile;
use super::parse::{decimal, lines, words};
use crate::options::SensorOptions;
use crate::sensor::{Registry, Sensor, Sink};
use crate::signal::SignalIndex;

/// The kernel counts in sectors of this size, whatever the device's sector size.
const SECTOR_BYTES: i64 = 512;
/// The largest number of devices added up.
const MAX_DEVICES: usize = 1024;

/// Reads `/proc/diskstats`.
#[derive(Debug)]
pub(super) struct Disk {
    diskstats: HotFile,
    /// Names of the devices that are added up.
    devices: Vec<Box<[u8]>>,
    read_bytes: SignalIndex,
    write_bytes: SignalIndex,
}

impl Disk {
    pub(super) fn open(options: &SensorOptions, registry: &mut Registry) -> Self {
        let mut counter = |quantity| registry.plain(quantity, "/proc/diskstats");
        Self {
            diskstats: HotFile::new(options.proc_root.join("diskstats")),
            devices: devices(&options.sys_root.join("block")),
            read_bytes: counter(Quantity::MachineDiskReadBytes),
            write_bytes: counter(Quantity::MachineDiskWriteBytes),
        }
    }
}

/// The block devices that are hardware.
fn devices(folder: &Path) -> Vec<Box<[u8]>> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let hardware = entries.filter(|entry| entry.path().join("device").exists());
    hardware.map(|entry| entry.file_name().into_encoded_bytes().into_boxed_slice()).take(MAX_DEVICES).collect()
}

/// Sectors read and written of a line, if it is of one of these devices (Documentation/admin-guide/iostats.rst: fields 3 and
/// 7 after the name).
fn sectors(line: &[u8], devices: &[Box<[u8]>]) -> Option<(i64, i64)> {
    let mut fields = words(line).skip(2);
    let name = fields.next()?;
    devices.iter().find(|device| &***device == name)?;
    let read = decimal(fields.nth(2)?)?;
    let written = decimal(fields.nth(3)?)?;
    Some((read, written))
}

impl Sensor for Disk {
    fn name(&self) -> &'static str {
        "disk"
    }

    fn read(&mut self, sink: &mut Sink<'_>) {
        let signals = [self.read_bytes, self.write_bytes];
        let Some(snapshot) = self.diskstats.read_for(signals, sink) else { return };
        let all = lines(snapshot.bytes).filter_map(|line| sectors(line, &self.devices));
        let sum = all.reduce(|a, b| (a.0.saturating_add(b.0), a.1.saturating_add(b.1)));
        let Some((read, written)) = sum else {
            return sink.all_absent(signals, snapshot.t_ns, &"no physical disk is visible here");
        };
        sink.value(self.read_bytes, snapshot.t_ns, read.saturating_mul(SECTOR_BYTES));
        sink.value(self.write_bytes, snapshot.t_ns, written.saturating_mul(SECTOR_BYTES));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `/proc/diskstats` of a virtual machine, as captured.
    const STATS: &[u8] = b"   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n \
        254       0 vda 94294 23383 15405106 75797 337616 537731 268706728 1176358 0 122580 1312749 438535 1911 178580304 60519 1652 74\n \
        254       1 vda1 94000 23383 15400000 75797 337616 537731 268706728 1176358 0 122580 1312749 0 0 0 0 0 0\n";

    #[test]
    fn sectors_counts_devices_not_partitions() {
        let devices = [b"vda".to_vec().into_boxed_slice()];
        let found: Vec<_> = lines(STATS).filter_map(|line| sectors(line, &devices)).collect();
        assert_eq!(found, [(15_405_106, 268_706_728)]);
    }

    #[test]
    fn sectors_truncated_line_is_none() {
        let devices = [b"vda".to_vec().into_boxed_slice()];
        for line in ["", "254 0 vda", "254 0 vda 1 2 3", "254 0 vda 1 2 -3 4 5 6 7", "254 0 vda 1 2 3 4 5 6 x"] {
            assert_eq!(sectors(line.as_bytes(), &devices), None, "{line}");
        }
    }
}
