//! What a program can die of.

use strum::IntoStaticStr;

/// Why a program died.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Cause {
    /// A signal that somebody sent through gnntop, or Ctrl-C.
    Asked,
    /// Slurm ended the job: time, preemption, or somebody's `scancel`.
    JobEnded,
    /// The kernel's out-of-memory killer.
    OutOfMemory,
    /// An allocation failed.
    MemoryRefused,
    /// A GPU's memory was full.
    GpuMemory,
    /// A call of CUDA, or of a library on it, failed.
    Cuda,
    /// A rank waited for the others longer than it may.
    CollectiveTimeout,
    /// A rank lost its connection to another one.
    PeerGone,
    /// A worker process of a data loader died.
    LoaderDied,
    /// Memory that processes share was full.
    SharedMemory,
    /// A disk was full.
    DiskFull,
    /// A file grew past the limit on the size of files.
    FileLimit,
    /// Threads, processes or open files ran out.
    TooMany,
    /// A module is not installed.
    NoModule,
    /// Any other exception in Python.
    Exception,
    /// A panic in Rust.
    Panic,
    /// Native code crashed.
    Crash,
    /// SIGKILL, by whomever.
    Killed,
    /// Another signal.
    Signal,
    /// It ended itself with an exit code, and said nothing that explains it.
    ExitCode,
}

impl Cause {
    /// A stable name for programs, such as `out-of-memory`.
    pub fn id(self) -> &'static str {
        self.into()
    }
}
