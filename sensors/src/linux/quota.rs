//! How often the kernel stopped the control group whose CPU quota bounds the process: `cpu.stat`, in both versions of control
//! groups. Without a quota there is nothing to read.

use gnntop_wire::Quantity;

use super::cgroup::tightest_quota;
use super::hot_file::HotFile;
use super::parse::{decimal, lines, words};
use crate::options::SensorOptions;
use crate::sensor::{Registry, Sensor, Sink};
use crate::signal::SignalIndex;

const KEYS: [&[u8]; 2] = [b"nr_periods", b"nr_throttled"];

/// Reads `cpu.stat` of one control group.
#[derive(Debug)]
pub(super) struct Quota {
    stat: HotFile,
    /// In the order of [`KEYS`].
    signals: [SignalIndex; 2],
}

impl Quota {
    /// `None` where no group above the process has a quota.
    pub(super) fn open(options: &SensorOptions, registry: &mut Registry) -> Option<Self> {
        let stat = HotFile::new(tightest_quota(options)?.join("cpu.stat"));
        let quantities = [Quantity::AllottedCpuPeriods, Quantity::AllottedCpuThrottledPeriods];
        Some(Self { stat, signals: quantities.map(|quantity| registry.plain(quantity, "cgroup cpu.stat")) })
    }
}

impl Sensor for Quota {
    fn name(&self) -> &'static str {
        "quota"
    }

    fn read(&mut self, sink: &mut Sink<'_>) {
        let Some(snapshot) = self.stat.read_for(self.signals, sink) else { return };
        for (signal, key) in self.signals.into_iter().zip(KEYS) {
            match count(snapshot.bytes, key) {
                Some(count) => sink.value(signal, snapshot.t_ns, count),
                None => sink.absent(signal, snapshot.t_ns, &"this figure is missing from the control group's cpu.stat"),
            }
        }
    }
}

/// The number in the line `key number`.
fn count(stat: &[u8], key: &[u8]) -> Option<i64> {
    let fields = |line| {
        let mut fields = words(line);
        (fields.next() == Some(key)).then(|| fields.next().and_then(decimal)).flatten()
    };
    lines(stat).find_map(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_found_by_their_whole_key() {
        let stat = b"usage_usec 9\nnr_periods_x 1\nnr_periods 40\nnr_throttled 12\nthrottled_usec x\n";
        assert_eq!(KEYS.map(|key| count(stat, key)), [Some(40), Some(12)]);
        assert_eq!(count(stat, b"throttled_usec"), None);
    }
}
