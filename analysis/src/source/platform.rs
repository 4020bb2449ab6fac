//! What sources ask of the system, where systems differ: reading at a place in a file, processes, open files.

use std::fs::File;
use std::path::PathBuf;

#[cfg(unix)]
pub(super) use std::os::unix::fs::FileExt as ReadAt;

/// Reads at a place in a file. It leaves the file's own place anywhere.
#[cfg(windows)]
pub(super) trait ReadAt {
    /// Reads some bytes from there on.
    fn read_at(&self, bytes: &mut [u8], at: u64) -> std::io::Result<usize>;

    /// Reads all of these bytes from there on.
    fn read_exact_at(&self, mut bytes: &mut [u8], mut at: u64) -> std::io::Result<()> {
        while !bytes.is_empty() {
            match self.read_at(bytes, at)? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                len => (bytes, at) = (&mut bytes[len..], at + len as u64),
            }
        }
        Ok(())
    }
}

#[cfg(windows)]
impl ReadAt for File {
    fn read_at(&self, bytes: &mut [u8], at: u64) -> std::io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(self, bytes, at)
    }
}

/// Ticks of `/proc` in a second.
#[cfg(unix)]
pub(super) fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second()
}

/// There is no `/proc`.
#[cfg(windows)]
pub(super) fn ticks_per_second() -> u64 {
    1
}

/// Whether there is a process with this id; `false` if that cannot be said.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn has_process(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

/// Cannot be said.
#[cfg(windows)]
pub(super) fn has_process(_pid: u32) -> bool {
    false
}

/// A path by which an open file is opened again, also when its name is gone; `None` if the system has none.
#[cfg(unix)]
pub(super) fn path_of_open(file: &File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    File::open(&path).is_ok().then_some(path)
}

/// The system has none.
#[cfg(windows)]
pub(super) fn path_of_open(_file: &File) -> Option<PathBuf> {
    None
}
