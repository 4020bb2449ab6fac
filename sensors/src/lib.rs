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
//!         Reading::Value { value, .. } => assert!(!signal.source.is_empty() && *value >= 0),
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
//! [`Quantity`](gnntop_wire::Quantity) lists everything that is measured, its unit and its source. Sensors read in every
//! pass, except for what a machine has and may use, which is read once, and some of a GPU's, read once a second.
//!
//! NVML's answer about PCIe may take 20 ms, so at most one of those calls is made per pass, for each GPU and direction in
//! turn: with many GPUs, each is made less than once a second. GPUs have NVML's numbers, not CUDA's; [`SignalInfo::device`] has the
//! UUID. Failed GPU calls are retried every 5 s. GPUs of AMD and discrete ones of Intel come after them, with what their drivers have
//! files for.
//!
//! Other systems than Linux have the process's CPU time, memory, input and output, the machine's memory and swap, and the
//! load of each core, through sysinfo.

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
mod syscall_filter;

pub use clock::monotonic_ns;
pub use doctor::{Diagnosis, DiagnosisState, diagnose};
pub use gpu_info::GpuInfo;
pub use limits::ProcessLimits;
pub use machine_info::MachineInfo;
pub use options::{POWERCAP_ROOT, SensorOptions, set_powercap_root};
pub use rivals::{Rival, Rivals};
pub use sensor::{Registry, Sensor, Sink};
pub use set::SensorSet;
pub use signal::{Reading, SignalIndex, SignalInfo};
pub use syscall_filter::has_syscall_filter;
