//! The file lock that distinguishes live sessions from dead ones, and the text of the locked file, which says since when a
//! live publisher cannot write. The file gets its room when the session begins, so that it can still be written when the
//! disk is full.
//!
//! The lock lasts as long as its file is open, and a mapping keeps it open without a descriptor: neither can the program close
//! it with all the descriptors that it did not open, nor does a forked child, which does not get the mapping, make a dead
//! session look alive.

use std::ffi::c_void;
use std::fs::{File, TryLockError};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::ptr::{self, NonNull};

use gnntop_wire::text::clean;
use rustix::io::Errno;
use rustix::mm::{self, MapFlags, ProtFlags};

use crate::error::Error;
use crate::held_file::{Identity, device_and_inode};
use crate::layout;
use crate::private_dir::{NamedDir, PrivateDir};

/// Bytes of the lock file; always the same.
const LEN: usize = 256;
/// How the lock file begins while the stream is being written.
const PUBLISHING: &str = "publishing";
/// How it begins while the stream is not being written.
const STOPPED: &str = "stopped";

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

/// The stream can no longer be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Since when, in nanoseconds since 1970.
    pub wall_ns: u64,
    /// Why, as words to follow "published until 14:02:11, then".
    pub reason: String,
}

/// What a session's lock file shows about its publisher.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Publisher {
    /// Whether it lives.
    pub alive: bool,
    /// Since when it cannot write its stream, if it reports that. Safe to show.
    pub stopped: Option<Stopped>,
}

impl Publisher {
    /// Reads a session's lock file, and takes its lock from no one.
    pub(crate) fn read(lock: &File) -> Self {
        // A shared lock, so that two that look at the same time do not see each other. It is released when the file closes.
        let alive = matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock));
        let mut bytes = [0; LEN];
        let len = lock.read_at(&mut bytes, 0).unwrap_or(0);
        Self { alive, stopped: parse(&bytes[..len]) }
    }
}

/// The content of the lock file; `None` means that the stream is being written.
fn text(stopped: Option<&Stopped>) -> [u8; LEN] {
    let line = match stopped {
        None => PUBLISHING.to_owned(),
        Some(Stopped { wall_ns, reason }) => format!("{STOPPED} {wall_ns} {reason}"),
    };
    let mut bytes = [b' '; LEN];
    let len = line.floor_char_boundary(LEN - 1);
    bytes[..len].copy_from_slice(&line.as_bytes()[..len]);
    bytes[LEN - 1] = b'\n';
    bytes
}

/// Reads a lock file's content; `None` if it does not report a stop.
fn parse(bytes: &[u8]) -> Option<Stopped> {
    let text = String::from_utf8_lossy(bytes);
    let (wall_ns, reason) = text.strip_prefix(STOPPED)?.strip_prefix(' ')?.split_once(' ')?;
    Some(Stopped { wall_ns: wall_ns.parse().ok()?, reason: clean(reason.trim_end().as_bytes()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopped_round_trip() {
        let stopped = Stopped { wall_ns: 1_700_000_000_123_456_789, reason: "the disk was full".to_owned() };
        assert_eq!(parse(&text(Some(&stopped))), Some(stopped));
        assert_eq!(parse(&text(None)), None);
        let long = Stopped { wall_ns: u64::MAX, reason: "é".repeat(1000) };
        assert!(parse(&text(Some(&long))).unwrap().reason.starts_with("éé"));
    }

    #[test]
    fn parse_refuses_other_text_and_control_characters() {
        for bytes in [&b""[..], b"stopped", b"stopped x y", b"\xff\xff", &[b's'; 5000]] {
            assert_eq!(parse(bytes), None);
        }
        assert_eq!(parse(b"stopped 7 a\x1b[2Jb\n").unwrap().reason, "a\u{fffd}[2Jb");
    }
}
