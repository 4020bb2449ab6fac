//! The lock on a file that tells the living sessions from the dead. A forked child inherits it with the open file, and would
//! make a dead session look alive for as long as the child lives: so a child closes it at once.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicI32, Ordering};

use gnntop_wire::Stopped;

/// Sessions of one process whose locks a forked child closes; those of more stay open there.
const MAX_SESSIONS: usize = 256;
const NONE: RawFd = -1;

/// The files that are locked now.
static LOCKED: [AtomicI32; MAX_SESSIONS] = [const { AtomicI32::new(NONE) }; MAX_SESSIONS];

/// A locked file, until this is dropped.
#[derive(Debug)]
pub(crate) struct LiveLock {
    /// Closed, and so unlocked, after its place in the table was cleared: a child must not close what has its number next.
    file: File,
}

impl LiveLock {
    /// Locks a file that nobody else has locked, and takes the room for what it may have to say later.
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
    /// Says whether the stream is written, and since when not. It takes no more room than there is.
    pub(crate) fn say(&self, stopped: Option<&Stopped>) {
        // Where not even that can be written there is nobody to tell.
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

/// In a forked child: closes every locked file, which leaves the parent's lock as it is.
pub(crate) fn close_all() {
    for place in &LOCKED {
        let fd = place.swap(NONE, Ordering::Relaxed);
        if fd != NONE {
            // SAFETY: the file is open, since its `LiveLock` clears its place first; and it has no owner in this process,
            // since that is a thread which was not forked.
            unsafe { libc::close(fd) };
        }
    }
}
