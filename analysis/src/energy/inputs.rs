//! Inputs for a session's energy, as plain figures. The arithmetic does not depend on where they come from.

use super::component::NoEnergy;
use super::line::EnergyLine;
use super::model::Processor;
use super::profile::Profile;

/// All inputs for the energy of a session by component. Times are by the session's clock, in nanoseconds.
#[derive(Clone, Debug)]
pub struct EnergyInputs<'a> {
    /// The GPUs, or why there are none.
    pub gpus: Result<Vec<GpuInputs<'a>>, NoEnergy>,
    /// The processors.
    pub processors: ProcessorInputs<'a>,
    /// The memory.
    pub memory: MemoryInputs<'a>,
    /// Processes of the run on this machine, each charged its part of the idle time; at least 1.
    pub processes: u32,
    /// Phases of the training thread over time.
    pub profile: Profile,
    /// Number of phases besides the gap.
    pub phases: usize,
    /// Lengths of recent steps.
    pub steps_ns: Vec<u64>,
    /// The earliest and the newest time seen.
    pub times_ns: (u64, u64),
    /// Whether further readings may come.
    pub is_running: bool,
}

/// One GPU.
#[derive(Clone, Debug)]
pub struct GpuInputs<'a> {
    /// Its number.
    pub gpu: u32,
    /// Its energy counter.
    pub counted: Option<&'a EnergyLine>,
    /// Its instantaneous power, integrated over time.
    pub instant_power: Option<&'a EnergyLine>,
    /// Its power as a mean over a second, integrated over time.
    pub mean_power: Option<&'a EnergyLine>,
    /// The origin of these.
    pub origin: CounterOrigin,
    /// Why there is no counter, as text.
    pub no_counter: String,
    /// Its power limit.
    pub limit_watts: Option<f64>,
    /// Number of processes that use it, if known.
    pub processes: Option<f64>,
    /// Whether the session's process is known to be one of them.
    pub has_own_process: bool,
}

/// The processors.
#[derive(Clone, Debug)]
pub struct ProcessorInputs<'a> {
    /// Their counters, one for each package.
    pub counters: Vec<CounterInputs<'a>>,
    /// Why there is no counter, as text.
    pub no_counter: String,
    /// The kind of processor.
    pub processor: Processor,
    /// CPU time of all processes, in nanoseconds instead of microjoules.
    pub machine_busy: Option<&'a EnergyLine>,
    /// CPU time of the session's process, in nanoseconds instead of microjoules.
    pub process_busy: Option<&'a EnergyLine>,
}

/// The memory.
#[derive(Clone, Debug)]
pub struct MemoryInputs<'a> {
    /// Its counters, one for each package.
    pub counters: Vec<CounterInputs<'a>>,
    /// Why there is no counter, as text.
    pub no_counter: String,
    /// Bytes installed; 0 if unknown.
    pub bytes: f64,
    /// Number of modules, if known.
    pub modules: Option<u64>,
    /// Bytes that the job may use.
    pub allotted_bytes: f64,
    /// The most bytes that the process has used, if known.
    pub used_bytes: Option<f64>,
}

/// An energy counter.
#[derive(Clone, Debug)]
pub struct CounterInputs<'a> {
    /// What it counts, such as `cpu 0`.
    pub name: String,
    /// Its source, as text.
    pub source: String,
    /// Its origin.
    pub origin: CounterOrigin,
    /// Its readings.
    pub line: &'a EnergyLine,
}

/// The origin of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterOrigin {
    /// A sensor.
    Sensor,
    /// An imported table. It does not say how its numbers were found, and tools that write such tables mostly model them.
    Table,
}
