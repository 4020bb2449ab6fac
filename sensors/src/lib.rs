//! Hardware and process sensors: what the machine was doing while a step was slow.
//!
//! [`SensorSet::open`] opens every sensor the system may have, [`SensorSet::read`] takes one sample of all of them. The
//! crate starts no thread and prints nothing: the run itself, or a viewer, calls `read` about ten times a second.
//! [`Rivals`] finds other processes that use the processor. [`MachineInfo`] describes the machine for headers,
//! [`diagnose()`] reports what can be read, what cannot, and what would open it.
//!
//! ```
//! use gnntop_sensors::{Reading, SensorOptions, SensorSet};
//!
//! let mut set = SensorSet::open(&SensorOptions::default());
//! let mut lines = Vec::new();
//! set.read(&mut |reading| lines.push(reading));
//! for reading in &lines {
//!     let signal = &set.signals()[reading.signal().0 as usize];
//!     match reading {
//!         Reading::Value { value, .. } => assert!(!signal.name.is_empty() && *value >= 0),
//!         Reading::Absent { reason, .. } => assert!(!reason.is_empty()),
//!     }
//! }
//! ```
//!
//! # Rules
//! - A counter is recorded raw, in the smallest unit its source gives. One that decreases or starts again is passed on
//!   as it is: its meaning is for the reader to decide.
//! - A value is stamped with `CLOCK_MONOTONIC` halfway through the call that read it, not with the time of the pass.
//! - A signal that cannot be read is [absent](Reading::Absent), with a reason for people, reported once when it begins.
//!   It is never zero. Signals become absent independently, and report values again when they come back.
//! - Signals are registered when the set is opened, including those that cannot be read then, so that a missing sensor
//!   shows.
//!
//! # Signals
//! The names are stable. C is a counter, G a gauge; `N` is a number. "Pass" means in every pass.
//!
//! | name | kind | unit | source | read |
//! |---|---|---|---|---|
//! | `process.cpu_time` | C | ns | `/proc/PID/stat` utime + stime, all threads, steps of 10 ms | pass |
//! | `process.cpu_time.user`, `.system` | C | ns | the two apart | pass |
//! | `process.rss` | G | B | `/proc/PID/stat` rss, memory in RAM; the kernel's count is off by some pages a core | pass |
//! | `process.faults.minor`, `.major` | C | | `/proc/PID/stat` minflt, majflt, all threads | pass |
//! | `process.threads` | G | | `/proc/PID/stat` num_threads | pass |
//! | `process.rss.peak`, `process.swap` | G | B | `/proc/PID/status` VmHWM, VmSwap | pass |
//! | `process.main_thread.voluntary_switches`, `.involuntary_switches` | C | | `/proc/PID/status`, which counts the main thread only | pass |
//! | `process.main_thread.cpu_wait` | C | ns | `/proc/PID/schedstat`: ready to run, and no CPU free | pass |
//! | `process.io.rchar`, `.wchar` | C | B | `/proc/PID/io`: all reads and writes, cached ones too | pass |
//! | `process.io.read_bytes`, `.write_bytes` | C | B | `/proc/PID/io`: what reached the disks | pass |
//! | `machine.cpu.busy` | C | ns | `/proc/stat` user + nice + system + irq + softirq, sum of all cores | pass |
//! | `machine.cpu.iowait`, `.steal` | C | ns | `/proc/stat`; iowait may go back | pass |
//! | `machine.cpu.N.busy`, `.iowait`, `.steal` | C | ns | the same of core N, absent while it is offline | pass |
//! | `machine.memory.total`, `.available` | G | B | `/proc/meminfo` MemTotal, MemAvailable | pass |
//! | `machine.memory.used` | G | B | total less available | pass |
//! | `machine.swap.total`, `.used` | G | B | `/proc/meminfo` SwapTotal, and it less SwapFree | pass |
//! | `machine.pressure.cpu.some`, `.full` | C | ns | `/proc/pressure/cpu` total | pass |
//! | `machine.pressure.memory.some`, `.full` | C | ns | `/proc/pressure/memory` total | pass |
//! | `machine.pressure.io.some`, `.full` | C | ns | `/proc/pressure/io` total | pass |
//! | `machine.load.1m`, `.5m`, `.15m` | G | m% | `/proc/loadavg`; a load of 1.00 is 100 % | pass |
//! | `machine.disk.read_bytes`, `.write_bytes` | C | B | `/proc/diskstats`, all disks that are hardware | pass |
//! | `machine.network.received_bytes`, `.sent_bytes` | C | B | `/proc/PID/net/dev`, hardware where there is some, else all but the loopback | pass |
//! | `cpu.N.energy`, `dram.N.energy` | C | µJ | RAPL of package N and of its memory; begins again at the end of its range | pass |
//! | `cpu.N.energy.range`, `dram.N.energy.range` | G | µJ | the largest value of that counter; absent where it never begins again | pass |
//! | `machine.cpu.threads`, `.sockets` | G | | `/proc/cpuinfo`; the device is the processor's model | once |
//! | `machine.memory.modules` | G | | EDAC, modules that hold something | once |
//! | `allotted.cpu.threads` | G | | CPU mask of the process | once |
//! | `allotted.cpu.quota` | G | m% | control group, of one core | once |
//! | `allotted.memory` | G | B | control group | once |
//! | `gpu.count` | G | | NVML; absent without a driver, with the reason | pass |
//! | `gpu.N.energy` | C | mJ | NVML total energy since the driver was loaded | pass |
//! | `gpu.N.power.instant` | G | mW | NVML field 186 | pass |
//! | `gpu.N.power` | G | mW | NVML power usage: mean of the last second on most GPUs since Ampere | pass |
//! | `gpu.N.util`, `gpu.N.memory_util` | G | m% | NVML utilisation: share of time any kernel ran, memory was accessed | pass |
//! | `gpu.N.memory.total`, `.used` | G | B | NVML memory info, version 2 | pass |
//! | `gpu.N.clock.sm`, `.memory` | G | MHz | NVML clock info | pass |
//! | `gpu.N.temperature` | G | m°C | NVML temperature of the die | pass |
//! | `gpu.N.throttle` | G | bits | NVML clocks throttle reasons, numbered as in `nvml.h` | pass |
//! | `gpu.N.power.limit` | G | mW | NVML enforced power limit | 1 s |
//! | `gpu.N.processes` | G | | NVML compute processes | 1 s |
//! | `gpu.N.process.memory` | G | B | NVML memory of the observed process | 1 s |
//! | `gpu.N.pcie.tx`, `.rx` | G | B/s | NVML PCIe throughput over 20 ms | 1 s |
//!
//! `pcie` may block for 20 ms, so at most one of those calls is made per pass, for each GPU and direction in turn: with
//! many GPUs, each is made less than once a second. `N` is NVML's number, not CUDA's; [`SignalInfo::device`] has the
//! UUID. Failed GPU calls are retried every 5 s.
//!
//! Other systems than Linux have `process.cpu_time`, `.rss`, `.io.read_bytes`, `.io.write_bytes`, the memory and swap
//! signals, and `machine.cpu.N.load` (gauge, m%, the mean since the previous read), through sysinfo.

mod clock;
mod doctor;
mod gpu_info;
mod limits;
#[cfg(target_os = "linux")]
mod linux;
mod machine_info;
mod nvidia;
mod options;
// Also built for tests, so that it is tested on Linux, too.
#[cfg(any(test, not(target_os = "linux")))]
mod portable;
mod rivals;
mod sensor;
mod set;
mod signal;
mod sink;

pub use clock::monotonic_ns;
pub use doctor::{Diagnosis, DiagnosisState, diagnose};
pub use gpu_info::GpuInfo;
pub use limits::ProcessLimits;
pub use machine_info::MachineInfo;
pub use options::{POWERCAP_ROOT, SensorOptions, look_for_powercap_in};
pub use rivals::{Rival, Rivals};
pub use sensor::{Registry, Sensor};
pub use set::SensorSet;
pub use signal::{Reading, SignalIndex, SignalInfo};
pub use sink::Sink;
