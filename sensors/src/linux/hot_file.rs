//! A small kernel file that is read repeatedly.
//!
//! The descriptor stays open and the buffer is kept, so a read is one `pread`. The kernel returns such a file in one
//! read if the buffer is large enough. When a read fails, because the process ended or the file disappeared, the path
//! is reopened once before the failure is reported; so it is when the program has closed the descriptor. A program that may
//! open only a few files has it closed after each read.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use gnntop_sessions::{HeldFile, has_few_numbers};
use rustix::io::Errno;

use crate::clock::{monotonic_ns, stamped};
use crate::sensor::Sink;
use crate::signal::SignalIndex;

const FIRST_BUFFER_BYTES: usize = 4096;
/// `/proc/stat` of a machine with 4,096 cores and as many interrupts stays below this.
const LARGEST_BUFFER_BYTES: usize = 4 << 20;

/// A file that is kept open and read from its start each time.
#[derive(Debug)]
pub(crate) struct HotFile {
    path: PathBuf,
    file: Option<HeldFile>,
    buffer: Vec<u8>,
}

/// The file's bytes at some time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Snapshot<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) t_ns: u64,
}

/// Why a file could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileError {
    Missing,
    Denied,
    Empty,
    TooLong,
    TurnedOff,
    Other(io::ErrorKind),
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        match (Errno::from_io_error(&error), error.kind()) {
            // Reading an open descriptor of an ended process gives ESRCH.
            (Some(Errno::SRCH | Errno::NODEV), _) | (_, io::ErrorKind::NotFound) => Self::Missing,
            (_, io::ErrorKind::PermissionDenied) => Self::Denied,
            (Some(Errno::OPNOTSUPP), _) => Self::TurnedOff,
            (_, kind) => Self::Other(kind),
        }
    }
}

/// A [`FileError`] with the path it happened to, for people.
pub(crate) struct FileTrouble<'a> {
    pub(crate) path: &'a Path,
    pub(crate) error: FileError,
}

impl fmt::Display for FileTrouble<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.error {
            FileError::Missing => write!(f, "{path} not found"),
            FileError::Denied => write!(f, "permission denied reading {path}"),
            FileError::Empty => write!(f, "{path} is empty"),
            FileError::TooLong => write!(f, "{path} is longer than {LARGEST_BUFFER_BYTES} bytes"),
            FileError::TurnedOff => write!(f, "{path} is turned off in this kernel"),
            FileError::Other(kind) => write!(f, "cannot read {path}: {kind}"),
        }
    }
}

impl HotFile {
    /// Remembers the path; the file is opened by the first read.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, file: None, buffer: vec![0; FIRST_BUFFER_BYTES] }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The whole file as it is now, with the time.
    pub(crate) fn read(&mut self) -> Result<Snapshot<'_>, FileError> {
        let (t_ns, length) = self.fill()?;
        Ok(Snapshot { bytes: &self.buffer[..length], t_ns })
    }

    /// The same for these signals, which are absent where the file cannot be read.
    pub(crate) fn read_for(
        &mut self,
        signals: impl IntoIterator<Item = SignalIndex>,
        sink: &mut Sink<'_>,
    ) -> Option<Snapshot<'_>> {
        match self.fill() {
            Ok((t_ns, length)) => Some(Snapshot { bytes: &self.buffer[..length], t_ns }),
            Err(error) => {
                sink.all_absent(signals, monotonic_ns(), &FileTrouble { path: &self.path, error });
                None
            }
        }
    }

    /// Reads the file into the buffer: the time, and how long it is.
    fn fill(&mut self) -> Result<(u64, usize), FileError> {
        let was_open = self.file.is_some();
        match self.read_once() {
            Err(_) if was_open => self.read_once(),
            other => other,
        }
    }

    /// One attempt. A failure closes the file, so that the next attempt opens the path again.
    fn read_once(&mut self) -> Result<(u64, usize), FileError> {
        let held = match self.file.take() {
            Some(held) if held.get().is_some() => held,
            _ => HeldFile::new(File::open(&self.path)?)?,
        };
        loop {
            let file = held.get().ok_or(FileError::Missing)?;
            let (t_ns, length) = stamped(|| file.read_at(&mut self.buffer, 0));
            match length {
                Ok(0) => return Err(FileError::Empty),
                Ok(length) if length < self.buffer.len() => {
                    self.file = (!has_few_numbers()).then_some(held);
                    return Ok((t_ns, length));
                }
                Ok(_) if self.buffer.len() >= LARGEST_BUFFER_BYTES => return Err(FileError::TooLong),
                Ok(_) => self.buffer.resize(self.buffer.len() * 2, 0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::fd::{AsRawFd, FromRawFd};

    #[test]
    fn hot_file_longer_than_buffer_is_read_completely() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stat");
        let content = vec![b'x'; 3 * FIRST_BUFFER_BYTES];
        fs::write(&path, &content).unwrap();
        let mut file = HotFile::new(path.clone());
        assert_eq!(file.read().unwrap().bytes, content);
        fs::write(&path, b"short").unwrap();
        assert_eq!(file.read().unwrap().bytes, b"short");
    }

    #[test]
    fn hot_file_is_reopened_after_removal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stat");
        let mut file = HotFile::new(path.clone());
        assert_eq!(file.read().unwrap_err(), FileError::Missing);
        fs::write(&path, b"one").unwrap();
        assert_eq!(file.read().unwrap().bytes, b"one");
        // The open descriptor of a removed regular file stays readable, unlike one of a kernel file, so empty it first.
        fs::write(&path, b"").unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(file.read().unwrap_err(), FileError::Missing);
        fs::write(&path, b"two").unwrap();
        assert_eq!(file.read().unwrap().bytes, b"two");
    }

    #[test]
    fn a_file_whose_number_the_program_has_taken_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let (path, theirs) = (folder.path().join("stat"), folder.path().join("theirs"));
        fs::write(&path, b"ours").unwrap();
        fs::write(&theirs, b"theirs").unwrap();
        let mut file = HotFile::new(path);
        file.read().unwrap();
        let number = file.file.as_ref().unwrap().get().unwrap().as_raw_fd();
        // SAFETY: the number is that of a held file, which must not mind; the result is its only other owner.
        let theirs = unsafe {
            assert_eq!(libc::dup2(File::open(&theirs).unwrap().as_raw_fd(), number), number);
            File::from_raw_fd(number)
        };
        assert_eq!(file.read().unwrap().bytes, b"ours");
        assert_eq!(theirs.metadata().unwrap().len(), 6, "it is still open");
    }

    #[test]
    #[ignore = "run by another test, as a program of its own under a limit"]
    fn child_reads_under_a_limit() {
        let mut file = HotFile::new(PathBuf::from("/proc/self/stat"));
        file.read().unwrap();
        assert!(file.read().is_ok() && file.file.is_none());
    }

    #[test]
    fn hot_file_is_closed_where_few_files_may_be_open() {
        let mut child = std::process::Command::new("sh");
        child.args(["-c", "ulimit -n 20; exec \"$0\" --ignored --exact \"$1\""]);
        child.arg(std::env::current_exe().unwrap()).arg("linux::hot_file::tests::child_reads_under_a_limit");
        let ran = child.output().unwrap();
        assert!(ran.status.success() && String::from_utf8_lossy(&ran.stdout).contains("1 passed"), "{ran:?}");
    }

    #[test]
    fn an_endless_file_is_refused() {
        let mut file = HotFile::new(PathBuf::from("/dev/zero"));
        assert_eq!(file.read().unwrap_err(), FileError::TooLong);
    }

    #[test]
    fn hot_file_refuses_folder() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = HotFile::new(folder.path().to_path_buf());
        assert!(matches!(file.read().unwrap_err(), FileError::Other(_)));
    }
}
