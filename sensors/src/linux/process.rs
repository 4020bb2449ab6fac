//! The observed process: CPU time, memory, page faults, threads, context switches, input and output.
//!
//! `/proc/PID/stat` is read first, since it shows whether the PID still means the same process: the start time must be
//! the one first seen. If it does not, every signal is absent, and no other process's numbers are recorded.

use std::fmt;

use gnntop_wire::Quantity;

use super::core_clock::CoreClock;
use super::descendants::Descendants;
use super::hot_file::{FileError, FileTrouble, HotFile, Snapshot};
use super::numa::MainThreadNode;
use super::parse::{ProcessStat, keyed, ns_per_tick, page_bytes};
use super::run_queue::RunQueue;
use crate::clock::monotonic_ns;
use crate::options::SensorOptions;
use crate::sensor::{Registry, Sensor, Sink};
use crate::signal::SignalIndex;

const STATUS_KEYS: [&[u8]; 5] =
    [b"VmHWM", b"VmSwap", b"voluntary_ctxt_switches", b"nonvoluntary_ctxt_switches", b"RssAnon"];
/// What is added to the last of these.
const SHARED_KEY: &[u8] = b"RssShmem";
const IO_KEYS: [&[u8]; 5] = [b"rchar", b"wchar", b"syscr", b"read_bytes", b"write_bytes"];

/// Reads `/proc/PID/stat`, `status` and `io`.
#[derive(Debug)]
pub(super) struct ProcessSensor {
    pid: u32,
    stat: HotFile,
    status: HotFile,
    io: HotFile,
    run_queue: RunQueue,
    core_clock: Option<CoreClock>,
    node: Option<MainThreadNode>,
    /// Start time of the process first seen under this PID.
    start_ticks: Option<i64>,
    /// The processes it has started, if they count as its own.
    descendants: Option<Descendants>,
    ns_per_tick: i64,
    page_bytes: i64,
    cpu_time: SignalIndex,
    cpu_time_user: SignalIndex,
    cpu_time_system: SignalIndex,
    rss: SignalIndex,
    minor_faults: SignalIndex,
    major_faults: SignalIndex,
    threads: SignalIndex,
    status_signals: [SignalIndex; 5],
    io_signals: [SignalIndex; 5],
}

impl ProcessSensor {
    pub(super) fn open(options: &SensorOptions, registry: &mut Registry) -> Self {
        let folder = options.proc_root.join(options.pid.to_string());
        let mut stat = |quantity| registry.plain(quantity, "/proc/PID/stat");
        let cpu_time = stat(Quantity::ProcessCpuTime);
        let cpu_time_user = stat(Quantity::ProcessCpuTimeUser);
        let cpu_time_system = stat(Quantity::ProcessCpuTimeSystem);
        let rss = stat(Quantity::ProcessRss);
        let minor_faults = stat(Quantity::ProcessFaultsMinor);
        let major_faults = stat(Quantity::ProcessFaultsMajor);
        let threads = stat(Quantity::ProcessThreads);
        Self {
            pid: options.pid,
            stat: HotFile::new(folder.join("stat")),
            status: HotFile::new(folder.join("status")),
            io: HotFile::new(folder.join("io")),
            start_ticks: None,
            descendants: options.descendants.then(|| Descendants::new(options.pid, &options.proc_root)),
            ns_per_tick: ns_per_tick(),
            page_bytes: page_bytes(),
            cpu_time,
            cpu_time_user,
            cpu_time_system,
            rss,
            minor_faults,
            major_faults,
            threads,
            status_signals: register_status(registry),
            io_signals: register_io(registry),
            run_queue: RunQueue::new(options, registry),
            core_clock: CoreClock::open(options, registry),
            node: MainThreadNode::open(options, registry),
        }
    }

    /// Reads `stat` and checks that it belongs to the process first seen.
    fn read_stat(&mut self) -> Result<(u64, ProcessStat), Gone> {
        let snapshot = self.stat.read().map_err(|error| match error {
            FileError::Missing if self.start_ticks.is_none() => Gone::Never,
            FileError::Missing => Gone::Ended,
            other => Gone::Unreadable(other),
        })?;
        let stat = ProcessStat::parse(snapshot.bytes).ok_or(Gone::Garbled)?;
        if stat.start_ticks != *self.start_ticks.get_or_insert(stat.start_ticks) {
            return Err(Gone::Reused);
        }
        if stat.has_ended() {
            return Err(Gone::Ended);
        }
        Ok((snapshot.t_ns, stat))
    }

    fn report_stat(&self, t_ns: u64, stat: &ProcessStat, sink: &mut Sink<'_>) {
        let user_ns = stat.user_ticks.saturating_mul(self.ns_per_tick);
        let system_ns = stat.system_ticks.saturating_mul(self.ns_per_tick);
        sink.value(self.cpu_time, t_ns, user_ns.saturating_add(system_ns));
        sink.value(self.cpu_time_user, t_ns, user_ns);
        sink.value(self.cpu_time_system, t_ns, system_ns);
        sink.value(self.rss, t_ns, stat.resident_pages.saturating_mul(self.page_bytes));
        sink.value(self.minor_faults, t_ns, stat.minor_faults);
        sink.value(self.major_faults, t_ns, stat.major_faults);
        sink.value(self.threads, t_ns, stat.threads);
    }

    fn report_status(&mut self, sink: &mut Sink<'_>) {
        const KIB: i64 = 1024;
        let Some(Snapshot { bytes, t_ns }) = self.status.read_for(self.status_signals, sink) else { return };
        let [peak, swap, voluntary, involuntary, anonymous] = keyed(bytes, &STATUS_KEYS);
        let [shared] = keyed(bytes, &[SHARED_KEY]);
        let own = anonymous.zip(shared).and_then(|(anonymous, shared)| anonymous.checked_add(shared));
        let [peak, swap, own] = [peak, swap, own].map(|kib| kib.and_then(|kib| kib.checked_mul(KIB)));
        let values = [peak, swap, voluntary, involuntary, own];
        report_values(&self.status, (&STATUS_KEYS, values), t_ns, self.status_signals, sink);
    }

    /// Every signal of the process is absent, for one reason.
    fn report_gone(&self, gone: Gone, sink: &mut Sink<'_>) {
        let t_ns = monotonic_ns();
        let reason = GoneReason { process: self, gone };
        let of_stat = [
            self.cpu_time,
            self.cpu_time_user,
            self.cpu_time_system,
            self.rss,
            self.minor_faults,
            self.major_faults,
            self.threads,
            self.run_queue.signal(),
        ];
        let of_core = [self.core_clock.as_ref().map(CoreClock::signal), self.node.as_ref().map(MainThreadNode::signal)];
        for signal in
            of_stat.into_iter().chain(of_core.into_iter().flatten()).chain(self.status_signals).chain(self.io_signals)
        {
            sink.absent(signal, t_ns, &reason);
        }
    }
}

fn register_status(registry: &mut Registry) -> [SignalIndex; 5] {
    let mut status = |quantity| registry.plain(quantity, "/proc/PID/status");
    [
        status(Quantity::ProcessRssPeak),
        status(Quantity::ProcessSwap),
        status(Quantity::MainThreadVoluntarySwitches),
        status(Quantity::MainThreadInvoluntarySwitches),
        status(Quantity::ProcessRssOwn),
    ]
}

fn register_io(registry: &mut Registry) -> [SignalIndex; 5] {
    let mut io = |quantity| registry.plain(quantity, "/proc/PID/io");
    [
        io(Quantity::ProcessIoRchar),
        io(Quantity::ProcessIoWchar),
        io(Quantity::ProcessIoReadCalls),
        io(Quantity::ProcessIoReadBytes),
        io(Quantity::ProcessIoWriteBytes),
    ]
}

impl Sensor for ProcessSensor {
    fn name(&self) -> &'static str {
        "process"
    }

    fn read(&mut self, sink: &mut Sink<'_>) {
        match self.read_stat() {
            Ok((t_ns, mut stat)) => {
                if let Some(descendants) = &mut self.descendants {
                    descendants.add_to(&mut stat);
                }
                self.report_stat(t_ns, &stat, sink);
                if let Some(clock) = &mut self.core_clock {
                    clock.read(stat.core, sink);
                }
                if let Some(node) = &self.node {
                    node.read(stat.core, sink);
                }
            }
            Err(gone) => return self.report_gone(gone, sink),
        }
        self.report_status(sink);
        report_keyed(&mut self.io, &IO_KEYS, self.io_signals, sink);
        self.run_queue.read(sink);
    }
}

/// Reads a file of `key: number` lines and gives each signal its number, or its absence.
fn report_keyed<const N: usize>(file: &mut HotFile, keys: &[&[u8]; N], signals: [SignalIndex; N], sink: &mut Sink<'_>) {
    let Some(Snapshot { bytes, t_ns }) = file.read_for(signals, sink) else { return };
    let values = keyed(bytes, keys);
    report_values(file, (keys, values), t_ns, signals, sink);
}

/// Gives each signal its value, or the reason for its absence.
fn report_values<const N: usize>(
    file: &HotFile,
    (keys, values): (&[&[u8]; N], [Option<i64>; N]),
    t_ns: u64,
    signals: [SignalIndex; N],
    sink: &mut Sink<'_>,
) {
    for (slot, signal) in signals.into_iter().enumerate() {
        match values[slot] {
            Some(value) => sink.value(signal, t_ns, value),
            None => sink.absent(signal, t_ns, &MissingKey { file, key: keys[slot] }),
        }
    }
}

/// A file that has no usable line of this key.
struct MissingKey<'a> {
    file: &'a HotFile,
    key: &'a [u8],
}

impl fmt::Display for MissingKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no {} in {}", self.key.escape_ascii(), self.file.path().display())
    }
}

/// Why nothing is known about the process.
#[derive(Clone, Copy)]
enum Gone {
    Never,
    Ended,
    Reused,
    Garbled,
    Unreadable(FileError),
}

struct GoneReason<'a> {
    process: &'a ProcessSensor,
    gone: Gone,
}

impl fmt::Display for GoneReason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pid, path) = (self.process.pid, self.process.stat.path());
        match self.gone {
            Gone::Never => write!(f, "there is no process {pid}, or it is hidden from this user"),
            Gone::Ended => write!(f, "process {pid} has ended"),
            Gone::Reused => write!(f, "process {pid} has ended (its PID now belongs to another process)"),
            Gone::Garbled => write!(f, "cannot parse {}", path.display()),
            Gone::Unreadable(error) => write!(f, "{}", FileTrouble { path, error }),
        }
    }
}
