//! Memory shared by two processes: an unnamed file that cannot be truncated under its reader.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};

use gnntop_sessions::HeldFile;

/// Shared memory of a fixed size, initially zero.
#[derive(Debug)]
pub(super) struct Memory {
    start: NonNull<u8>,
    len: usize,
    /// By which the other process finds it, until it has.
    file: Mutex<Option<HeldFile>>,
    file_number: i32,
}

// SAFETY: the memory is only reached through `start`, and holds nothing but atomics (see `Shared` in `ring`).
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Creates shared memory of `len` bytes.
    pub(super) fn create(len: usize) -> io::Result<Self> {
        let file = unnamed_file()?;
        file.set_len(len as u64)?;
        seal(&file)?;
        let mut memory = Self::map(&file, len)?;
        let file = HeldFile::new(file)?;
        memory.file_number = file.get().map_or(-1, AsRawFd::as_raw_fd);
        memory.file = Mutex::new(Some(file));
        Ok(memory)
    }

    /// Maps the memory at this path; rejects it if its size differs.
    pub(super) fn open(path: &str, len: usize) -> io::Result<Self> {
        // Whatever has the number by now: neither wait for it nor let it become this program's terminal.
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = File::options().read(true).write(true).custom_flags(flags).open(path)?;
        if file.metadata()?.len() != len as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a ring of this version of gnntop"));
        }
        Self::map(&file, len)
    }

    fn map(file: &File, len: usize) -> io::Result<Self> {
        let (access, fd) = (libc::PROT_READ | libc::PROT_WRITE, file.as_raw_fd());
        // SAFETY: a new mapping at an address that the system chooses touches no memory of ours; `fd` is open.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, access, libc::MAP_SHARED, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at nothing"))?;
        Ok(Self { start, len, file: Mutex::default(), file_number: -1 })
    }

    /// Start of the memory, at a page boundary.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The memory's file descriptor in this process.
    pub(super) fn file_number(&self) -> i32 {
        self.file_number
    }

    /// Closes that descriptor. The memory stays.
    pub(super) fn close_file(&self) {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `map` mapped exactly these bytes, only this unmaps them, and no reference into them outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(target_os = "linux")]
fn unnamed_file() -> io::Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};
    Ok(memfd_create("gnntop", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?.into())
}

/// Seals the file's size: a reader past a shortened end would be killed.
#[cfg(target_os = "linux")]
fn seal(file: &File) -> io::Result<()> {
    use rustix::fs::{SealFlags, fcntl_add_seals};
    Ok(fcntl_add_seals(file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?)
}

#[cfg(not(target_os = "linux"))]
fn unnamed_file() -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn seal(_: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
