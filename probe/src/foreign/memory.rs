//! Memory that two processes see: a file without a name, which cannot be made smaller under the one that reads it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

/// Shared memory of a fixed size, zero at first.
#[derive(Debug)]
pub(super) struct Memory {
    start: NonNull<u8>,
    len: usize,
    file: File,
}

// SAFETY: the memory is reached through `start` alone, and what lies there is made of atomics (see `Shared` in `ring`).
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// New memory.
    pub(super) fn create(len: usize) -> io::Result<Self> {
        let file = unnamed_file()?;
        file.set_len(len as u64)?;
        seal(&file)?;
        Self::map(file, len)
    }

    /// The memory behind this path; one of another size is refused.
    pub(super) fn open(path: &str, len: usize) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        if file.metadata()?.len() != len as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a ring of this version of gnntop"));
        }
        Self::map(file, len)
    }

    fn map(file: File, len: usize) -> io::Result<Self> {
        let (access, fd) = (libc::PROT_READ | libc::PROT_WRITE, file.as_raw_fd());
        // SAFETY: a new mapping at an address of the system's choice touches no memory of ours; `fd` is open.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, access, libc::MAP_SHARED, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at nothing"))?;
        Ok(Self { start, len, file })
    }

    /// Where it begins, at a page's edge.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The number of its file in this process.
    pub(super) fn file_number(&self) -> i32 {
        self.file.as_raw_fd()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `map` mapped exactly these bytes, nobody else unmaps them, and references into them live no longer than `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(target_os = "linux")]
fn unnamed_file() -> io::Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};
    Ok(memfd_create("gnntop", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?.into())
}

/// From here on nobody can change its size: a reader beyond a shorter end would be killed.
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
