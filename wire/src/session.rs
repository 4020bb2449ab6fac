//! Facts about a session besides its events: its publisher, its place in a run, its clocks, its end.

use std::fmt;

/// The publisher. Opens every segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionInfo {
    /// Random id of the session.
    pub session_id: u128,
    /// The session's name, such as the workload's.
    pub name: String,
    /// The publishing process.
    pub pid: u32,
    /// Host name.
    pub host: String,
    /// The program's command line.
    pub command: String,
    /// What publishes, such as `gnntop-probe 0.1.0`, for people.
    pub publisher: String,
    /// What kind of publisher it is.
    pub origin: Origin,
    /// Identifies this boot of the machine: monotonic times can only be compared within one boot.
    pub boot_id: String,
    /// When the session started.
    pub start: Anchor,
    /// Number of this segment in the session, from 0.
    pub segment: u64,
    /// Its place in a run of several ranks; `None` if the session is the whole run.
    pub place: Option<Box<Place>>,
}

/// Where the events of a session come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Origin {
    /// A program that uses the probe.
    #[default]
    Probe = 0,
    /// A Python program, observed by the Python package.
    Python = 1,
    /// A table of steps, imported.
    Table = 2,
    /// A trace by another profiler, imported.
    Trace = 3,
    /// Readings of a process from outside: it has no steps.
    Outside = 4,
}

impl Origin {
    /// The origin with this number in the stream.
    pub fn from_code(code: u8) -> Self {
        match code {
            1 => Self::Python,
            2 => Self::Table,
            3 => Self::Trace,
            4 => Self::Outside,
            _ => Self::Probe,
        }
    }

    /// Whether the session was made from a file of another tool.
    pub fn is_import(self) -> bool {
        matches!(self, Self::Table | Self::Trace)
    }
}

/// What carries data between ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Engine {
    /// Not reported.
    #[default]
    Unknown,
    /// Memory that the ranks share.
    Threads,
    /// MPI.
    Mpi,
    /// NCCL, between devices.
    Nccl,
    /// Gloo.
    Gloo,
    /// Anything else, by its name.
    Other(String),
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "",
            Self::Threads => "threads",
            Self::Mpi => "MPI",
            Self::Nccl => "NCCL",
            Self::Gloo => "gloo",
            Self::Other(name) => name,
        })
    }
}

impl From<&str> for Engine {
    /// The engine that a launcher or framework calls so.
    fn from(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "" => Self::Unknown,
            "threads" => Self::Threads,
            "mpi" => Self::Mpi,
            "nccl" => Self::Nccl,
            "gloo" => Self::Gloo,
            _ => Self::Other(name.to_owned()),
        }
    }
}

/// What a rank of a run is on its machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RankKind {
    /// Its own process.
    #[default]
    Process = 0,
    /// A thread of a process shared with other ranks of that machine.
    Thread = 1,
}

/// A session's place among the sessions of its run: one rank, one session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The run's id, the same in all its sessions.
    pub run: String,
    /// This rank, from 0.
    pub rank: u32,
    /// Ranks in the run.
    pub ranks: u32,
    /// The stage of the pipeline that this rank computes, from 0.
    pub stage: u32,
    /// Stages of the pipeline; 1 without one.
    pub stages: u32,
    /// The copy of the model that this rank belongs to, from 0.
    pub copy: u32,
    /// Copies of the model that train together; 1 without data parallelism.
    pub copies: u32,
    /// What carries data between ranks.
    pub engine: Engine,
    /// What each rank is.
    pub kind: RankKind,
    /// Where this rank computes, such as `CPU` or `GPU 0`.
    pub device: String,
    /// Threads that this rank computes with.
    pub threads: u32,
    /// Ranks on this host.
    pub host_ranks: u32,
    /// CPU cores that the ranks on this host share.
    pub host_cores: u32,
    /// Offset from this session's clock to rank 0's, if measured.
    pub clock: Option<ClockOffset>,
    /// Which start of the run this is: a number that grows with each start, with gaps; `None` if starts are not counted.
    pub attempt: Option<u64>,
}

/// Bits for the restarts by one launcher in [`Place::attempt_number`].
const RESTART_BITS: u32 = 10;

impl Place {
    /// The number of a start, for [`Place::attempt`]: when a person started it, in milliseconds since 1970, or 0, and how
    /// often Slurm and torchrun have restarted it. Each restart count starts again when an earlier argument changes.
    pub fn attempt_number(started_ms: u64, slurm: u64, torchrun: u64) -> u64 {
        let most = (1 << RESTART_BITS) - 1;
        (started_ms << (2 * RESTART_BITS)) | (slurm.min(most) << RESTART_BITS) | torchrun.min(most)
    }

    /// Whether a person, rather than a launcher, named the run.
    pub fn is_named(&self) -> bool {
        self.attempt.is_some_and(|attempt| attempt >> (2 * RESTART_BITS) > 0)
    }
}

/// Offset from one monotonic clock to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockOffset {
    /// To be added to this clock's times to get the other's.
    pub offset_ns: i64,
    /// Error of the offset, in either direction.
    pub error_ns: u64,
}

/// One instant on three clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Anchor {
    /// `CLOCK_MONOTONIC`, the clock of all events.
    pub monotonic_ns: u64,
    /// Nanoseconds since 1970-01-01 UTC; may step.
    pub wall_ns: u64,
    /// `CLOCK_BOOTTIME`, which also runs while the machine is suspended.
    pub boot_ns: u64,
}

/// The session ended normally.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// When.
    pub t_ns: u64,
    /// Why it ended; empty for a normal end.
    pub reason: String,
}
