//! What a program can die of, and the Python traceback that says so: its exception, what that means, and the program's own line.

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
}

/// Words of an exception's text, in lower case, and what they mean; the first that fits counts.
const MEANINGS: [(&[&str], Cause); 18] = [
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

/// Reads tracebacks line by line.
#[derive(Debug, Default)]
pub(super) struct Tracebacks {
    /// Those that are complete, in the order of their ends, with the number of their last line.
    pub(super) done: Vec<(usize, Exception)>,
    open: Vec<OpenTraceback>,
}

/// A traceback whose exception is still missing.
#[derive(Debug)]
struct OpenTraceback {
    rank: Option<u32>,
    place: CodePlace,
}

impl Tracebacks {
    /// Takes a line of this rank, with its number.
    pub(super) fn push_line(&mut self, number: usize, rank: Option<u32>, line: &str) {
        if line.trim_end() == "Traceback (most recent call last):" {
            self.open.retain(|open| open.rank != rank);
            return self.open.push(OpenTraceback { rank, place: CodePlace::default() });
        }
        let Some(at) = self.open.iter().position(|open| open.rank == rank) else { return };
        if !self.open[at].place.take_inner(line) && !line.starts_with([' ', '\t']) && !line.trim().is_empty() {
            let OpenTraceback { rank, place } = self.open.swap_remove(at);
            self.done.push((number, Exception { text: shortened(line.trim()), place: place.text(), rank }));
        }
    }
}

/// A message that becomes part of a paragraph.
fn shortened(text: &str) -> String {
    const MOST: usize = 200;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
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

/// Folders that libraries and Python itself are in.
const LIBRARIES: [&str; 3] = ["/site-packages/", "/dist-packages/", "/lib/python3"];

/// What is known of a stack while its frames are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CodePlace {
    /// The innermost frame of the program itself.
    own: Option<String>,
    innermost: Option<String>,
}

impl CodePlace {
    /// Takes the next line of a traceback, whose innermost frame comes last. Returns whether it is a frame.
    pub(super) fn take_inner(&mut self, line: &str) -> bool {
        let Some((text, is_own)) = frame(line) else { return false };
        if is_own {
            self.own = Some(text.clone());
        }
        self.innermost = Some(text);
        true
    }

    /// Takes the next line of a stack whose innermost frame comes first. Returns whether it is a frame.
    pub(super) fn take_outer(&mut self, line: &str) -> bool {
        let Some((text, is_own)) = frame(line) else { return false };
        self.innermost.get_or_insert_with(|| text.clone());
        if is_own {
            self.own.get_or_insert(text);
        }
        true
    }

    /// `collate, data.py:81`, or `main, train.py:9 (inside forward, linear.py:134)`; `None` before the first frame.
    pub(super) fn text(&self) -> Option<String> {
        match (&self.own, &self.innermost) {
            (Some(own), Some(innermost)) if own != innermost => Some(format!("{own} (inside {innermost})")),
            (_, innermost) => innermost.clone(),
        }
    }
}

/// `collate, data.py:81` of `  File "/home/me/data.py", line 81, in collate`, and whether the file is the program's own.
fn frame(line: &str) -> Option<(String, bool)> {
    let (file, rest) = line.trim_start().strip_prefix("File \"")?.split_once("\", line ")?;
    let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let is_own = !file.starts_with('<') && !LIBRARIES.iter().any(|folder| file.contains(folder));
    let file = file.rsplit('/').next().unwrap_or(file);
    let text = match rest.split_once(" in ") {
        Some((_, function)) if function != "<module>" => format!("{}, {file}:{number}", function.trim()),
        _ => format!("{file}:{number}"),
    };
    Some((text, is_own))
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
            ("ValueError: thrown", Cause::Exception),
        ] {
            assert_eq!(classify(text), cause, "{text}");
        }
    }

    #[test]
    fn interleaved_tracebacks_of_two_ranks_are_separated() {
        let mut read = Tracebacks::default();
        let lines = [
            (1, "Traceback (most recent call last):"),
            (0, "Traceback (most recent call last):"),
            (1, "  File \"/a/train.py\", line 9, in <module>"),
            (0, "  File \"/a/train.py\", line 12, in main"),
            (1, "    step()"),
            (1, "  File \"/a/data.py\", line 81, in collate"),
            (1, "ValueError: 3"),
            (0, "KeyError: 'x'"),
        ];
        lines.iter().enumerate().for_each(|(at, (rank, line))| read.push_line(at, Some(*rank), line));
        let said: Vec<_> = read.done.iter().map(|(_, e)| (e.rank, e.text.as_str(), e.place.as_deref())).collect();
        let expected = [
            (Some(1), "ValueError: 3", Some("collate, data.py:81")),
            (Some(0), "KeyError: 'x'", Some("main, train.py:12")),
        ];
        assert_eq!(said, expected);
    }

    const OWN: &str = "  File \"/w/train.py\", line 9, in main";
    const LIBRARY: &str = "  File \"/env/lib/python3.11/site-packages/torch/nn/linear.py\", line 134, in forward";

    #[test]
    fn own_line_precedes_library_line() {
        let place = |lines: &[&str], take: fn(&mut CodePlace, &str) -> bool| {
            let mut place = CodePlace::default();
            lines.iter().for_each(|line| _ = take(&mut place, line));
            place.text()
        };
        let both = Some("main, train.py:9 (inside forward, linear.py:134)".to_owned());
        assert_eq!(place(&[OWN, "    step()", LIBRARY], CodePlace::take_inner), both);
        assert_eq!(place(&[LIBRARY, OWN, "  File \"/w/a.py\", line 1 in <module>"], CodePlace::take_outer), both);
        assert_eq!(place(&[OWN], CodePlace::take_inner).as_deref(), Some("main, train.py:9"));
        assert_eq!(place(&[LIBRARY], CodePlace::take_outer).as_deref(), Some("forward, linear.py:134"));
        assert_eq!(place(&["no frame"], CodePlace::take_outer), None);
    }
}
