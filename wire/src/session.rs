//! Facts about a session besides its events: its publisher, its place in a run, its clocks, its end.

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
    /// What publishes, such as `gnntop-probe 0.1.0`.
    pub publisher: String,
    /// Identifies this boot of the machine: monotonic times can only be compared within one boot.
    pub boot_id: String,
    /// When the session started.
    pub start: Anchor,
    /// Number of this segment in the session, from 0.
    pub segment: u64,
    /// Its place in a run of several ranks; `None` if the session is the whole run.
    pub place: Option<Box<Place>>,
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
    /// What carries data between ranks, such as `threads`, `MPI` or `NCCL`.
    pub engine: String,
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

/// Key of the fact with the number of steps of the run before the checkpoint from which the program resumes.
pub const RESUMED: &str = "resumed after steps";

/// Bits for the restarts by one launcher in [`Place::numbered`].
const RESTART_BITS: u32 = 10;

impl Place {
    /// The number of a start, for [`Place::attempt`]: when a person started it, in milliseconds since 1970, or 0, and how
    /// often Slurm and torchrun have restarted it. Each restart count starts again when an earlier argument changes.
    pub fn numbered(started_ms: u64, slurm: u64, torchrun: u64) -> u64 {
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
