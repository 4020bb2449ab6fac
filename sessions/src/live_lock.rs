//! The file lock that distinguishes live sessions from dead ones, as its publisher holds it. The file gets its room when the
//! session begins, so that it can still be written when the disk is full.
//!
//! The lock lasts as long as its file is open, and a mapping keeps it open without a descriptor: neither can the program close
//! it with all the descriptors that it did not open, nor does a forked child, which does not get the mapping, make a dead
//! session look alive.

use std::ffi::c_void;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::ptr::{self, NonNull};

use rustix::io::Errno;
use rustix::mm::{self, MapFlags, ProtFlags};

use crate::error::Error;
use crate::held_file::{Identity, NamedDir};
use crate::layout;
use crate::platform::device_and_inode;
use crate::private_dir::PrivateDir;
use crate::publisher::{LEN, Stopped, text};

/// The lock of a live session, held until this is dropped.
#[derive(Debug)]
pub struct LiveLock {
    session: NamedDir,
    identity: Identity,
    /// Keeps the locked file open; nothing is read or written through it.
    mapping: NonNull<c_void>,
}

impl LiveLock {
    /// Creates the lock file of a new session, reserves room for its text, and locks it.
    ///
    /// # Errors
    /// If it exists, cannot be written or cannot be mapped. None is left behind that was not there before.
    pub fn create(session: &PrivateDir) -> Result<Self, Error> {
        let file = session.create_file(layout::LOCK_FILE)?;
        let locked = file.write_all_at(&text(None), 0).map_err(Error::from).and_then(|()| Self::lock(&file, session));
        if locked.is_err() {
            let _ = session.remove(layout::LOCK_FILE);
        }
        locked
    }

    fn lock(file: &File, session: &PrivateDir) -> Result<Self, Error> {
        let identity = device_and_inode(file.as_fd()).ok_or(Errno::BADF)?;
        // SAFETY: a new mapping at an address that the system chooses touches no memory of ours.
        let start = unsafe { mm::mmap(ptr::null_mut(), LEN, ProtFlags::empty(), MapFlags::PRIVATE, file, 0)? };
        let mapping = NonNull::new(start).ok_or(Errno::NOMEM)?;
        let lock = Self { session: session.named()?, identity, mapping };
        #[cfg(target_os = "linux")]
        // SAFETY: the range is exactly the mapping, and only says what a forked child gets.
        unsafe {
            mm::madvise(start, LEN, mm::Advice::LinuxDontFork)?;
        }
        file.lock()?;
        Ok(lock)
    }

    /// Writes whether the stream is being written, or since when it is not. Uses no more than the reserved room.
    pub fn report(&self, stopped: Option<&Stopped>) {
        let file = self.session.open().and_then(|session| session.overwrite(layout::LOCK_FILE));
        if let Ok(file) = file
            && device_and_inode(file.as_fd()) == Some(self.identity)
        {
            // If even this cannot be written, there is nowhere left to report it.
            let _ = file.write_all_at(&text(stopped), 0);
        }
    }
}

impl Drop for LiveLock {
    fn drop(&mut self) {
        // SAFETY: the mapping is this lock's own, and nothing refers to its memory.
        let _ = unsafe { mm::munmap(self.mapping.as_ptr(), LEN) };
    }
}
