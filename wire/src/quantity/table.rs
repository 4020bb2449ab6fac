//! The table of everything that is measured. A row is all that a new quantity needs to be published, recorded and named.

use super::Scope;
use crate::signal::{SignalKind, Unit};

/// Makes [`Quantity`] of rows `CODE Name "text" Kind Unit Scope`, each below what it is and where it comes from.
macro_rules! quantities {
    ($($(#[doc = $about:literal])+ $code:literal $name:ident $text:literal $kind:ident $unit:ident $scope:ident;)+) => {
        /// A measured quantity.
        ///
        /// Its text, unit, kind and number in the stream never change. `N` in a text stands for the
        /// [instance](super::Metric::instance). "PID" is the observed process.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        #[non_exhaustive]
        pub enum Quantity {
            $(
                #[doc = concat!("`", $text, "`, ", stringify!($kind), ", ", stringify!($unit), ".")]
                $(#[doc = $about])+
                $name = $code,
            )+
        }

        impl Quantity {
            /// Every quantity, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The stable text, such as `process.rss`; `N` stands for the instance in `gpu.N.power`.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }

            /// The unit of raw values.
            pub const fn unit(self) -> Unit {
                match self { $(Self::$name => Unit::$unit),+ }
            }

            /// Whether raw values count by themselves or only as differences.
            pub const fn kind(self) -> SignalKind {
                match self { $(Self::$name => SignalKind::$kind),+ }
            }

            /// What it is measured of.
            pub const fn scope(self) -> Scope {
                match self { $(Self::$name => Scope::$scope),+ }
            }

            /// The quantity with this number in the stream; `None` for those of newer versions.
            pub const fn from_code(code: u64) -> Option<Self> {
                match code { $($code => Some(Self::$name),)+ _ => None }
            }

            /// This quantity's number in the stream, from 1.
            pub const fn code(self) -> u64 {
                self as u64
            }
        }
    };
}

quantities! {
    /// `/proc/PID/stat` utime + stime, all threads, in steps of 10 ms.
    1 ProcessCpuTime "process.cpu_time" Counter Nanoseconds Process;
    /// `/proc/PID/stat` utime.
    2 ProcessCpuTimeUser "process.cpu_time.user" Counter Nanoseconds Process;
    /// `/proc/PID/stat` stime.
    3 ProcessCpuTimeSystem "process.cpu_time.system" Counter Nanoseconds Process;
    /// `/proc/PID/stat` rss: memory in RAM. The kernel's count is off by some pages a core.
    4 ProcessRss "process.rss" Gauge Bytes Process;
    /// `/proc/PID/status` RssAnon and RssShmem: without the pages of mapped files, which the system takes back when it needs them.
    80 ProcessRssOwn "process.rss.own" Gauge Bytes Process;
    /// `/proc/PID/status` VmHWM.
    5 ProcessRssPeak "process.rss.peak" Gauge Bytes Process;
    /// `/proc/PID/status` VmSwap.
    6 ProcessSwap "process.swap" Gauge Bytes Process;
    /// `/proc/PID/stat` minflt, all threads.
    7 ProcessFaultsMinor "process.faults.minor" Counter Count Process;
    /// `/proc/PID/stat` majflt, all threads.
    8 ProcessFaultsMajor "process.faults.major" Counter Count Process;
    /// `/proc/PID/stat` num_threads.
    9 ProcessThreads "process.threads" Gauge Count Process;
    /// `/proc/PID/status`, which counts the main thread only.
    10 MainThreadVoluntarySwitches "process.main_thread.voluntary_switches" Counter Count Process;
    /// `/proc/PID/status`, which counts the main thread only.
    11 MainThreadInvoluntarySwitches "process.main_thread.involuntary_switches" Counter Count Process;
    /// `/proc/PID/schedstat`: ready to run, and no CPU free.
    12 MainThreadCpuWait "process.main_thread.cpu_wait" Counter Nanoseconds Process;
    /// `scaling_cur_freq` of the core on which the main thread last ran, once a second; absent where the kernel does not manage
    /// clocks, as in most virtual machines.
    79 MainThreadClock "process.main_thread.clock" Gauge Megahertz Process;
    /// The NUMA node of the core on which the main thread last ran; only on machines with several.
    82 MainThreadNumaNode "process.main_thread.numa_node" Gauge Count Process;
    /// `/proc/PID/io`: all reads, cached ones too.
    13 ProcessIoRchar "process.io.rchar" Counter Bytes Process;
    /// `/proc/PID/io`: all writes, cached ones too.
    14 ProcessIoWchar "process.io.wchar" Counter Bytes Process;
    /// `/proc/PID/io`: what was read from disks.
    15 ProcessIoReadBytes "process.io.read_bytes" Counter Bytes Process;
    /// `/proc/PID/io`: what was written to disks.
    16 ProcessIoWriteBytes "process.io.write_bytes" Counter Bytes Process;
    /// `/proc/PID/io`: calls that read.
    72 ProcessIoReadCalls "process.io.read_calls" Counter Count Process;
    /// [`ProcessIoRchar`](Self::ProcessIoRchar) of the processes that it has started, such as loader workers; once a second.
    73 ChildrenIoRchar "children.io.rchar" Counter Bytes Process;
    /// [`ProcessIoReadCalls`](Self::ProcessIoReadCalls) of the processes that it has started.
    74 ChildrenIoReadCalls "children.io.read_calls" Counter Count Process;
    /// [`ProcessIoReadBytes`](Self::ProcessIoReadBytes) of the processes that it has started.
    75 ChildrenIoReadBytes "children.io.read_bytes" Counter Bytes Process;
    /// `/proc/PID/statm` of the processes that it has started, added up: their resident memory. What they share counts for each.
    78 ChildrenRss "children.rss" Gauge Bytes Process;
    /// [`ChildrenRss`](Self::ChildrenRss) without what `statm` calls shared: the pages of mapped files and shared memory.
    81 ChildrenRssOwn "children.rss.own" Gauge Bytes Process;

    /// `/proc/stat` user + nice + system + irq + softirq, the sum of all cores.
    17 MachineCpuBusy "machine.cpu.busy" Counter Nanoseconds Machine;
    /// `/proc/stat`; may go back.
    18 MachineCpuIowait "machine.cpu.iowait" Counter Nanoseconds Machine;
    /// `/proc/stat`: time taken by the host.
    19 MachineCpuSteal "machine.cpu.steal" Counter Nanoseconds Machine;
    /// [`MachineCpuBusy`](Self::MachineCpuBusy) of core N, absent while it is offline.
    20 CoreBusy "machine.cpu.N.busy" Counter Nanoseconds Core;
    /// [`MachineCpuIowait`](Self::MachineCpuIowait) of core N.
    21 CoreIowait "machine.cpu.N.iowait" Counter Nanoseconds Core;
    /// [`MachineCpuSteal`](Self::MachineCpuSteal) of core N.
    22 CoreSteal "machine.cpu.N.steal" Counter Nanoseconds Core;
    /// The mean load of core N since the previous read; on other systems than Linux.
    23 CoreLoad "machine.cpu.N.load" Gauge MilliPercent Core;
    /// `/proc/cpuinfo`, read once; the device is the processor's model.
    24 MachineCpuThreads "machine.cpu.threads" Gauge Count Machine;
    /// `/proc/cpuinfo`, read once.
    25 MachineCpuSockets "machine.cpu.sockets" Gauge Count Machine;

    /// `/proc/meminfo` MemTotal.
    26 MachineMemoryTotal "machine.memory.total" Gauge Bytes Machine;
    /// `/proc/meminfo` MemAvailable.
    27 MachineMemoryAvailable "machine.memory.available" Gauge Bytes Machine;
    /// Total less available.
    28 MachineMemoryUsed "machine.memory.used" Gauge Bytes Machine;
    /// EDAC, modules that hold something; read once.
    29 MachineMemoryModules "machine.memory.modules" Gauge Count Machine;
    /// `/proc/meminfo` SwapTotal.
    30 MachineSwapTotal "machine.swap.total" Gauge Bytes Machine;
    /// `/proc/meminfo` SwapTotal less SwapFree.
    31 MachineSwapUsed "machine.swap.used" Gauge Bytes Machine;

    /// `/proc/pressure/cpu`: time in which at least one task waited.
    32 PressureCpuSome "machine.pressure.cpu.some" Counter Nanoseconds Machine;
    /// `/proc/pressure/cpu`: time in which all tasks waited.
    33 PressureCpuFull "machine.pressure.cpu.full" Counter Nanoseconds Machine;
    /// `/proc/pressure/memory`: time in which at least one task waited.
    34 PressureMemorySome "machine.pressure.memory.some" Counter Nanoseconds Machine;
    /// `/proc/pressure/memory`: time in which all tasks waited.
    35 PressureMemoryFull "machine.pressure.memory.full" Counter Nanoseconds Machine;
    /// `/proc/pressure/io`: time in which at least one task waited.
    36 PressureIoSome "machine.pressure.io.some" Counter Nanoseconds Machine;
    /// `/proc/pressure/io`: time in which all tasks waited.
    37 PressureIoFull "machine.pressure.io.full" Counter Nanoseconds Machine;

    /// `/proc/loadavg` over 1 minute; a load of 1.00 is 100 %.
    38 MachineLoad1m "machine.load.1m" Gauge MilliPercent Machine;
    /// `/proc/loadavg` over 5 minutes.
    39 MachineLoad5m "machine.load.5m" Gauge MilliPercent Machine;
    /// `/proc/loadavg` over 15 minutes.
    40 MachineLoad15m "machine.load.15m" Gauge MilliPercent Machine;

    /// `/proc/diskstats`, all disks that are hardware.
    41 MachineDiskReadBytes "machine.disk.read_bytes" Counter Bytes Machine;
    /// `/proc/diskstats`, all disks that are hardware.
    42 MachineDiskWriteBytes "machine.disk.write_bytes" Counter Bytes Machine;
    /// `/proc/PID/net/dev`, hardware where there is some, else all but the loopback.
    43 MachineNetworkReceivedBytes "machine.network.received_bytes" Counter Bytes Machine;
    /// `/proc/PID/net/dev`, hardware where there is some, else all but the loopback.
    44 MachineNetworkSentBytes "machine.network.sent_bytes" Counter Bytes Machine;
    /// Port counters of InfiniBand and RoCE adapters, which the network's do not contain.
    76 MachineInfinibandReceivedBytes "machine.infiniband.received_bytes" Counter Bytes Machine;
    /// Port counters of InfiniBand and RoCE adapters, which the network's do not contain.
    77 MachineInfinibandSentBytes "machine.infiniband.sent_bytes" Counter Bytes Machine;

    /// RAPL of package N; begins again at the end of its range.
    45 CpuEnergy "cpu.N.energy" Counter Microjoules Package;
    /// The largest value of [`CpuEnergy`](Self::CpuEnergy); absent where it never begins again.
    46 CpuEnergyRange "cpu.N.energy.range" Gauge Microjoules Package;
    /// RAPL of the memory of package N; begins again at the end of its range.
    47 DramEnergy "dram.N.energy" Counter Microjoules Dram;
    /// The largest value of [`DramEnergy`](Self::DramEnergy); absent where it never begins again.
    48 DramEnergyRange "dram.N.energy.range" Gauge Microjoules Dram;

    /// CPU mask of the process, read once.
    49 AllottedCpuThreads "allotted.cpu.threads" Gauge Count Allotted;
    /// Control group, of one core; read once.
    50 AllottedCpuQuota "allotted.cpu.quota" Gauge MilliPercent Allotted;
    /// Control group, read once.
    51 AllottedMemory "allotted.memory" Gauge Bytes Allotted;

    /// NVML, and files of other drivers; absent without a driver, with the reason.
    52 GpuCount "gpu.count" Gauge Count Machine;
    /// NVML total energy since the driver was loaded; hwmon of amdgpu, i915 and xe.
    53 GpuEnergy "gpu.N.energy" Counter Millijoules Gpu;
    /// NVML field 186.
    54 GpuPowerNow "gpu.N.power.instant" Gauge Milliwatts Gpu;
    /// NVML power usage: the mean of the last second on most GPUs since Ampere; `power1_average` of amdgpu.
    55 GpuPower "gpu.N.power" Gauge Milliwatts Gpu;
    /// NVML enforced power limit, once a second.
    56 GpuPowerLimit "gpu.N.power.limit" Gauge Milliwatts Gpu;
    /// NVML utilisation: share of time in which any kernel ran; `gpu_busy_percent` of amdgpu.
    57 GpuUtil "gpu.N.util" Gauge MilliPercent Gpu;
    /// NVML utilisation: share of time in which memory was accessed.
    58 GpuMemoryUtil "gpu.N.memory_util" Gauge MilliPercent Gpu;
    /// NVML memory info, version 2.
    59 GpuMemoryTotal "gpu.N.memory.total" Gauge Bytes Gpu;
    /// NVML memory info, version 2.
    60 GpuMemoryUsed "gpu.N.memory.used" Gauge Bytes Gpu;
    /// NVML clock info.
    61 GpuClockSm "gpu.N.clock.sm" Gauge Megahertz Gpu;
    /// NVML clock info.
    62 GpuClockMemory "gpu.N.clock.memory" Gauge Megahertz Gpu;
    /// NVML temperature of the die.
    63 GpuTemperature "gpu.N.temperature" Gauge MilliCelsius Gpu;
    /// NVML clocks throttle reasons, numbered as in `nvml.h`.
    64 GpuThrottle "gpu.N.throttle" Gauge Bits Gpu;
    /// NVML compute processes, once a second.
    65 GpuProcesses "gpu.N.processes" Gauge Count Gpu;
    /// NVML memory of the observed process, once a second.
    66 GpuProcessMemory "gpu.N.process.memory" Gauge Bytes Gpu;
    /// NVML PCIe throughput from the GPU over 20 ms, once a second.
    67 GpuPcieTx "gpu.N.pcie.tx" Gauge BytesPerSecond Gpu;
    /// NVML PCIe throughput to the GPU over 20 ms, once a second.
    68 GpuPcieRx "gpu.N.pcie.rx" Gauge BytesPerSecond Gpu;

    /// The NUMA node that the GPU is attached to; only on machines with several.
    83 GpuNumaNode "gpu.N.numa_node" Gauge Count Gpu;

    /// `cpu.stat` of the control group with the smallest quota, nr_periods; absent without a quota.
    70 AllottedCpuPeriods "allotted.cpu.periods" Counter Count Allotted;
    /// Likewise, nr_throttled: periods in which it reached its quota and was stopped.
    71 AllottedCpuThrottledPeriods "allotted.cpu.throttled_periods" Counter Count Allotted;

    /// `CLOCK_THREAD_CPUTIME_ID` of the thread that reads the sensors.
    69 SensorsCpuTime "publisher.sensors.cpu_time" Counter Nanoseconds Publisher;
}
