//! What a program can die of, and the exception that says so: its text, what that means, and the program's own line.

use strum::IntoStaticStr;

/// An exception that ended a process, or may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exception {
    /// Its last line, such as `ValueError: 3`.
    pub text: String,
    /// Where it was raised: the program's own line, such as `collate, data.py:81`, and the library's that it was inside of.
    pub place: Option<String>,
    /// The rank that printed it, where it says so.
    pub rank: Option<u32>,
    /// The thread that it ended, where it ended no more than that.
    pub thread: Option<String>,
}

/// Words of an exception's text, in lower case, and what they mean; the first that fits counts.
const MEANINGS: [(&[&str], Cause); 19] = [
    (
        &["cuda out of memory", "hip out of memory", "cuda error: out of memory", "cublas_status_alloc_failed"],
        GPU_MEMORY,
    ),
    (&["is killed by signal: killed", "exited unexpectedly", "killed by signal: bus error"], Cause::LoaderDied),
    (&["insufficient shared memory", "unable to open shared memory", "unable to mmap"], Cause::SharedMemory),
    (&["watchdog caught collective operation timeout", "timed out waiting", "distbackenderror: timeout"], TIMEOUT),
    (&["wait timeout", "collective operation timeout", "monitoredbarrier"], TIMEOUT),
    (
        &["cuda error", "cudnn error", "cublas error", "cuda driver error", "acceleratorerror", "nccl error"],
        Cause::Cuda,
    ),
    (&["no space left on device", "disk quota exceeded", "errno 28]", "errno 122]"], Cause::DiskFull),
    (&["file too large", "errno 27]"], Cause::FileLimit),
    (&["memoryerror", "arraymemoryerror", "unable to allocate"], Cause::MemoryRefused),
    (&["can't allocate memory", "cannot allocate memory", "errno 12]", "std::bad_alloc"], Cause::MemoryRefused),
    (&["can't start new thread", "resource temporarily unavailable"], Cause::TooMany),
    (&["too many open files", "errno 24]", "received 0 items of ancdata"], Cause::TooMany),
    (&["connection reset by peer", "connection closed by peer", "connection refused"], Cause::PeerGone),
    (&["broken pipe", "nccl communicator was aborted", "remote process exited"], Cause::PeerGone),
    (&["socket timeout", "store wait"], TIMEOUT),
    (&["eof when reading a line", "bdbquit", "inappropriate ioctl for device", "'/dev/tty'"], Cause::NoTerminal),
    (&["keyboardinterrupt"], Cause::Asked),
    (&["modulenotfounderror", "no module named"], Cause::NoModule),
    (&[""], Cause::Exception),
];
const GPU_MEMORY: Cause = Cause::GpuMemory;
const TIMEOUT: Cause = Cause::CollectiveTimeout;

/// Exceptions by which a launcher says that a process of its own has failed.
const OF_LAUNCHERS: [&str; 4] =
    ["ChildFailedError", "ProcessRaisedException", "ProcessExitedException", "CalledProcessError"];

impl Exception {
    /// What it means.
    pub fn cause(&self) -> Cause {
        classify(&self.text)
    }

    /// Whether it only says that another process has failed.
    pub fn is_from_launcher(&self) -> bool {
        let kind = self.text.split([':', ' ']).next().unwrap_or_default();
        OF_LAUNCHERS.iter().any(|of| kind.rsplit('.').next() == Some(of))
    }
}

/// What a line about an error means.
pub(super) fn classify(text: &str) -> Cause {
    let text = text.to_lowercase();
    let fits = |words: &[&str]| words.iter().any(|word| text.contains(word));
    MEANINGS.iter().find(|(words, _)| fits(words)).map_or(Cause::Exception, |(_, cause)| *cause)
}

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
    /// It wanted to read from a terminal, and has none.
    NoTerminal,
    /// A module is not installed.
    NoModule,
    /// Any other exception in Python.
    Exception,
    /// A panic in Rust.
    Panic,
    /// Native code crashed.
    Crash,
    /// The limit on CPU time.
    CpuLimit,
    /// A filter of system calls.
    SystemCallFilter,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exception_texts_are_classified() {
        for (text, cause) in [
            ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", Cause::GpuMemory),
            ("torch.AcceleratorError: CUDA error: device-side assert triggered", Cause::Cuda),
            ("RuntimeError: DataLoader worker (pid 71) is killed by signal: Killed.", Cause::LoaderDied),
            ("RuntimeError: [unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation", TIMEOUT),
            ("OSError: [Errno 28] No space left on device: 'model.pt'", Cause::DiskFull),
            ("MemoryError", Cause::MemoryRefused),
            ("RuntimeError: [enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory", {
                Cause::MemoryRefused
            }),
            ("RuntimeError: can't start new thread", Cause::TooMany),
            ("RuntimeError: Connection closed by peer [127.0.0.1]:2", Cause::PeerGone),
            ("ModuleNotFoundError: No module named 'dgl'", Cause::NoModule),
            ("EOFError: EOF when reading a line", Cause::NoTerminal),
            ("bdb.BdbQuit", Cause::NoTerminal),
            ("EOFError: Ran out of input", Cause::Exception),
            ("ValueError: thrown", Cause::Exception),
        ] {
            assert_eq!(classify(text), cause, "{text}");
        }
    }
}
