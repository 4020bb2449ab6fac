//! The machine's CPU time: busy, waiting for disks, and stolen by the host, in total and by core.

use gnntop_wire::Quantity;

use super::hot_file::HotFile;
use super::parse::{CpuLine, lines, ns_per_tick, number_list};
use crate::options::SensorOptions;
use crate::sensor::{Registry, Sensor, Sink};
use crate::signal::{SignalIndex, SignalInfo};

const SOURCE: &str = "/proc/stat";
/// Cores numbered this or higher get no signals. Linux itself stops at 8,192.
const CORE_LIMIT: usize = 8192;

/// Reads `/proc/stat`.
#[derive(Debug)]
pub(super) struct Cpu {
    stat: HotFile,
    ns_per_tick: i64,
    total: CpuSignals,
    /// By core number; `None` if the machine has no core with that number.
    cores: Vec<Option<CpuSignals>>,
}

#[derive(Clone, Copy, Debug)]
struct CpuSignals {
    busy: SignalIndex,
    iowait: SignalIndex,
    steal: SignalIndex,
    /// Whether this pass found its line.
    is_reported: bool,
}

impl Cpu {
    pub(super) fn open(options: &SensorOptions, registry: &mut Registry) -> Self {
        let mut stat = HotFile::new(options.proc_root.join("stat"));
        let total = CpuSignals::register_machine(registry);
        let mut cores = Vec::new();
        if options.per_core {
            for core in core_numbers(options, &mut stat) {
                let slot = core as usize;
                if cores.len() <= slot {
                    cores.resize(slot + 1, None);
                }
                cores[slot] = Some(CpuSignals::register_core(core, registry));
            }
        }
        Self { stat, ns_per_tick: ns_per_tick(), total, cores }
    }
}

/// The cores of the machine: those switched on, and those that the kernel lists as present but off.
fn core_numbers(options: &SensorOptions, stat: &mut HotFile) -> Vec<u32> {
    let mut numbers = match stat.read() {
        Ok(snapshot) => lines(snapshot.bytes).filter_map(CpuLine::parse).filter_map(|line| line.core).collect(),
        Err(_) => Vec::new(),
    };
    if let Ok(present) = std::fs::read(options.sys_root.join("devices/system/cpu/present")) {
        numbers.extend(number_list(&present, CORE_LIMIT));
    }
    numbers.retain(|number| (*number as usize) < CORE_LIMIT);
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

impl CpuSignals {
    fn register_machine(registry: &mut Registry) -> Self {
        let mut add = |quantity| registry.plain(quantity, SOURCE);
        let busy = add(Quantity::MachineCpuBusy);
        Self {
            busy,
            iowait: add(Quantity::MachineCpuIowait),
            steal: add(Quantity::MachineCpuSteal),
            is_reported: false,
        }
    }

    fn register_core(core: u32, registry: &mut Registry) -> Self {
        let device = Some(format!("cpu {core}"));
        let mut add = |quantity: Quantity| {
            registry.add(SignalInfo { metric: quantity.with_instance(core), source: SOURCE, device: device.clone() })
        };
        let busy = add(Quantity::CoreBusy);
        Self { busy, iowait: add(Quantity::CoreIowait), steal: add(Quantity::CoreSteal), is_reported: false }
    }

    fn all(&self) -> [SignalIndex; 3] {
        [self.busy, self.iowait, self.steal]
    }

    /// Reports the values of a line, unless there was already a line of the same core.
    fn report(&mut self, line: &CpuLine, t_ns: u64, ns_per_tick: i64, sink: &mut Sink<'_>) {
        if std::mem::replace(&mut self.is_reported, true) {
            return;
        }
        sink.value(self.busy, t_ns, line.busy_ticks.saturating_mul(ns_per_tick));
        sink.value(self.iowait, t_ns, line.iowait_ticks.saturating_mul(ns_per_tick));
        sink.value(self.steal, t_ns, line.steal_ticks.saturating_mul(ns_per_tick));
    }
}

impl Sensor for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn read(&mut self, sink: &mut Sink<'_>) {
        let Self { stat, ns_per_tick, total, cores } = self;
        let every = std::iter::once(&*total).chain(cores.iter().flatten()).flat_map(CpuSignals::all);
        let Some(snapshot) = stat.read_for(every, sink) else { return };
        // The `cpu` lines come first; after them are long lines of interrupt counts, not worth reading.
        for line in lines(snapshot.bytes).take_while(|line| line.starts_with(b"cpu")).filter_map(CpuLine::parse) {
            let signals = match line.core {
                None => Some(&mut *total),
                Some(core) => cores.get_mut(core as usize).and_then(Option::as_mut),
            };
            if let Some(signals) = signals {
                signals.report(&line, snapshot.t_ns, *ns_per_tick, sink);
            }
        }
        if !std::mem::take(&mut total.is_reported) {
            sink.all_absent(total.all(), snapshot.t_ns, &"no cpu line in /proc/stat");
        }
        for (core, signals) in cores.iter_mut().enumerate() {
            let Some(signals) = signals else { continue };
            if !std::mem::take(&mut signals.is_reported) {
                sink.all_absent(signals.all(), snapshot.t_ns, &format_args!("cpu {core} is offline"));
            }
        }
    }
}
