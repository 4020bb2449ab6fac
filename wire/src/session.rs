//! Facts about the session around its events: who publishes, where it stands in its run, its clocks, its end.

/// Who publishes. Opens every segment.
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
    /// Identifies this boot of the machine: monotonic times compare only within one.
    pub boot_id: String,
    /// When the session started.
    pub start: Anchor,
    /// Number of this segment in the session, from 0.
    pub segment: u64,
    /// Its place in a run of several ranks; `None` for a run that is this session alone.
    pub place: Option<Box<Place>>,
}

/// Where a session stands among the sessions of its run: one rank, one session.
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
    /// Stages of the pipeline, 1 without one.
    pub stages: u32,
    /// The copy of the model that this rank belongs to, from 0.
    pub copy: u32,
    /// Copies of the model that train together, 1 without data parallelism.
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
    /// How this session's clock lies to rank 0's, where that was measured.
    pub clock: Option<ClockOffset>,
    /// Which start of the run this is: a number that grows from one to the next, with gaps; `None` where nobody counts them.
    pub attempt: Option<u64>,
}

/// Key of the fact that says how many steps of the run were done when the checkpoint was written that the program goes on from.
pub const RESUMED: &str = "resumed after steps";

/// Restarts by one launcher that [`Place::numbered`] tells apart.
const RESTART_BITS: u32 = 10;

impl Place {
    /// The number of a start, for [`Place::attempt`]: when a person started it, in milliseconds since 1970, or 0, and how often
    /// Slurm and torchrun had restarted it. Each counts within those before it.
    pub fn numbered(started_ms: u64, slurm: u64, torchrun: u64) -> u64 {
        let most = (1 << RESTART_BITS) - 1;
        (started_ms << (2 * RESTART_BITS)) | (slurm.min(most) << RESTART_BITS) | torchrun.min(most)
    }

    /// Whether a person has named the run, and not a launcher.
    pub fn is_named(&self) -> bool {
        self.attempt.is_some_and(|attempt| attempt >> (2 * RESTART_BITS) > 0)
    }
}

/// How one monotonic clock lies to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockOffset {
    /// What to add to this clock's times to get the other's.
    pub offset_ns: i64,
    /// How far the offset may be off, either way.
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

/// The session ended in good order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// When.
    pub t_ns: u64,
    /// A word on why, empty for a normal end.
    pub reason: String,
}
