//! The file lock that distinguishes live sessions from dead ones. A forked child inherits it with the open file, and would
//! make a dead session look alive for as long as the child lives, so the child closes it at once.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicI32, Ordering};

use gnntop_wire::Stopped;

/// Sessions of one process whose locks a forked child closes; further ones stay open in the child.
const MAX_SESSIONS: usize = 256;
const NONE: RawFd = -1;

/// File descriptors of the locked files.
static LOCKED: [AtomicI32; MAX_SESSIONS] = [const { AtomicI32::new(NONE) }; MAX_SESSIONS];

/// A file, locked until this is dropped.
#[derive(Debug)]
pub(crate) struct LiveLock {
    /// Closed, and so unlocked, after its table entry was cleared: a child must not close a file that reuses the descriptor.
    file: File,
}

impl LiveLock {
    /// Locks a file that no one else has locked, and reserves room for its text.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        file.lock()?;
        file.write_all_at(&Stopped::lock_file(None), 0)?;
        let fd = file.as_raw_fd();
        let take = |place: &&AtomicI32| place.compare_exchange(NONE, fd, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        let _ = LOCKED.iter().find(take);
        Ok(Self { file })
    }
}

impl LiveLock {
    /// Writes whether the stream is being written, or since when it is not. Uses no more than the reserved room.
    pub(crate) fn say(&self, stopped: Option<&Stopped>) {
        // If even this cannot be written, there is nowhere left to report it.
        let _ = self.file.write_all_at(&Stopped::lock_file(stopped), 0);
    }
}

impl Drop for LiveLock {
    fn drop(&mut self) {
        let fd = self.file.as_raw_fd();
        if let Some(place) = LOCKED.iter().find(|place| place.load(Ordering::Relaxed) == fd) {
            place.store(NONE, Ordering::Relaxed);
        }
    }
}

/// In a forked child: closes every locked file, which leaves the parent's locks in place.
pub(crate) fn close_all() {
    for place in &LOCKED {
        let fd = place.swap(NONE, Ordering::Relaxed);
        if fd != NONE {
            // SAFETY: the file is open, since its `LiveLock` clears its entry before closing it. No thread of this process
            // owns the file: its owner was not forked.
            unsafe { libc::close(fd) };
        }
    }
}
