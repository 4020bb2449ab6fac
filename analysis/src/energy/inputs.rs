//! What a session tells about its energy, as plain figures: who has them fills this in, and nothing here asks where from.

use super::line::EnergyLine;
use super::model::Processor;
use super::profile::Profile;

/// Everything that the energy of a session by component is worked out from. Times are by the session's clock, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Inputs<'a> {
    /// The GPUs, or why there is none.
    pub gpus: Result<Vec<GpuInputs<'a>>, String>,
    /// The processors.
    pub processors: ProcessorInputs<'a>,
    /// The memory.
    pub memory: MemoryInputs<'a>,
    /// Processes of the run on this machine, of which each bears its part of the idle time; at least 1.
    pub processes: u32,
    /// Phases of the training thread over time.
    pub profile: Profile,
    /// How many phases there are beside the gap.
    pub phases: usize,
    /// Lengths of recent steps.
    pub steps_ns: Vec<u64>,
    /// The earliest and the newest time seen.
    pub times_ns: (u64, u64),
    /// Whether further readings may come.
    pub goes_on: bool,
}

/// One GPU.
#[derive(Clone, Debug)]
pub struct GpuInputs<'a> {
    /// Its number.
    pub gpu: u32,
    /// Its counter of energy.
    pub counted: Option<&'a EnergyLine>,
    /// Its momentary power, added up over time.
    pub instant_power: Option<&'a EnergyLine>,
    /// Its power as a mean over a second, added up over time.
    pub mean_power: Option<&'a EnergyLine>,
    /// Whose word these are.
    pub origin: CounterOrigin,
    /// Why there is no counter, in words.
    pub no_counter: String,
    /// The most it is allowed to draw.
    pub limit_watts: Option<f64>,
    /// Processes that use it, where that is known.
    pub processes: Option<f64>,
    /// Whether the session's process is known to be one of them.
    pub has_own_process: bool,
}

/// The processors.
#[derive(Clone, Debug)]
pub struct ProcessorInputs<'a> {
    /// Their counters, one for each package.
    pub counters: Vec<CounterInputs<'a>>,
    /// Why there is no counter, in words.
    pub no_counter: String,
    /// What they are.
    pub processor: Processor,
    /// CPU time of all processes, in nanoseconds in the place of microjoules.
    pub machine_busy: Option<&'a EnergyLine>,
    /// CPU time of the session's process, likewise.
    pub process_busy: Option<&'a EnergyLine>,
}

/// The memory.
#[derive(Clone, Debug)]
pub struct MemoryInputs<'a> {
    /// Its counters, one for each package.
    pub counters: Vec<CounterInputs<'a>>,
    /// Why there is no counter, in words.
    pub no_counter: String,
    /// Bytes installed; 0 where that is not known.
    pub bytes: f64,
    /// Modules, where they are counted.
    pub modules: Option<u64>,
    /// Bytes that the job may use.
    pub allotted_bytes: f64,
}

/// A counter of energy.
#[derive(Clone, Debug)]
pub struct CounterInputs<'a> {
    /// What it counts, such as `cpu 0`.
    pub name: String,
    /// Where it comes from, in words.
    pub source: String,
    /// Whose word it is.
    pub origin: CounterOrigin,
    /// What it counted.
    pub line: &'a EnergyLine,
}

/// Whose word a counter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterOrigin {
    /// A sensor's.
    Sensor,
    /// That of a table that was imported. It does not say how its numbers came about, and tools that write such tables mostly
    /// model them.
    Table,
}
