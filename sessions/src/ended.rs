//! The content of one session's directory, and whether it proves to be a dead session of this user.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gnntop_wire::text::clean;
use gnntop_wire::{Item, SessionInfo, StreamReader};

use crate::discover::first_frame;
use crate::error::Error;
use crate::heartbeat::Heartbeat;
use crate::layout;
use crate::platform::is_local;
use crate::private_dir::PrivateDir;
use crate::publisher::is_copied;
use crate::session_dir::read_tail;

/// Bytes at the end of the last segment that are searched for the end of the stream, which takes a few dozen.
const TAIL_LEN: u64 = 4096;
/// A younger session without a segment may be about to be locked.
const SETTLED: Duration = Duration::from_secs(60);

/// A directory with only a session's files in it, whose lock this process holds.
pub(crate) struct Content {
    dir: PrivateDir,
    files: Vec<SessionFile>,
    /// Locked until this is closed.
    lock: File,
}

/// What stands in place of the lock in a copy whose program has not been heard of for long.
fn gone_copy(dir: &PrivateDir) -> Result<File, Error> {
    let heartbeat = Heartbeat::read(dir.directory()).ok_or(Error::NoLock)?;
    let publisher = heartbeat.publisher(SystemTime::now());
    let silent = publisher.copy.and_then(|copy| copy.silent).unwrap_or_default();
    match publisher.alive {
        true => Err(Error::Live),
        false if silent < FORGOTTEN => Err(Error::Elsewhere),
        false => dir.read(layout::ALIVE_FILE),
    }
}

/// A copy whose program has not been heard of for this long may be removed: its machine may have been cut off for a night.
const FORGOTTEN: Duration = Duration::from_secs(24 * 3600);

/// A file of a session.
struct SessionFile {
    name: String,
    is_empty: bool,
    /// What it takes on the disk.
    bytes: u64,
    written: SystemTime,
}

impl Content {
    /// Reads the directory of this name.
    pub(crate) fn open(sessions: &PrivateDir, name: &str) -> Result<Self, Error> {
        let dir = sessions.dir(name)?;
        let lock = match dir.read(layout::LOCK_FILE) {
            Err(error) if error.is_not_found() => gone_copy(&dir)?,
            lock => lock.map_err(|error| error.inside(layout::LOCK_FILE))?,
        };
        // Shared, so that viewers that look at the same time do not mistake this for a live publisher.
        lock.try_lock_shared().map_err(|error| match error {
            TryLockError::WouldBlock => Error::Live,
            TryLockError::Error(error) => error.into(),
        })?;
        let mut files = Vec::new();
        for name in dir.names()? {
            files.push(SessionFile::find(&dir, &name)?);
        }
        Ok(Self { dir, files, lock })
    }

    /// Bytes that its files take.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add)
    }

    /// Time of the last write to it.
    pub(crate) fn last_written(&self) -> SystemTime {
        self.files.iter().map(|file| file.written).max().unwrap_or(UNIX_EPOCH)
    }

    /// Whether its publisher ended the stream and nothing follows. A killed publisher did not, and after a failed
    /// program the parent adds the reason.
    pub(crate) fn ended_well(&self) -> bool {
        let Some(last) = self.segments().max_by_key(|segment| segment.0) else { return false };
        let tail = self.tail(last.1, TAIL_LEN);
        let mut reader = StreamReader::new();
        reader.fill(&tail.unwrap_or_default());
        reader.finish();
        let mut is_last = false;
        while let Some(item) = reader.next() {
            is_last = matches!(item, Item::End(_));
        }
        is_last
    }

    /// Whether its whole content proves it to be the dead session of this name.
    pub(crate) fn check_dead(&self, name: &str, now: SystemTime) -> Result<(), Error> {
        let publisher = self.publisher()?;
        match &publisher {
            Some(info) if layout::session_dir_name(&info.name, info.pid, info.session_id) != name => {
                return Err(Error::Renamed);
            }
            None if now.duration_since(self.last_written()).is_ok_and(|age| age < SETTLED) => {
                return Err(Error::Starting);
            }
            _ => (),
        }
        let was_here = publisher.is_some_and(|info| is_this_boot(&info.boot_id));
        if was_here || self.is_copy() || is_local(&self.lock) { Ok(()) } else { Err(Error::Elsewhere) }
    }

    /// Removes its files, then the directory.
    pub(crate) fn remove(self, sessions: &PrivateDir, name: &str) -> Result<(), Error> {
        for file in &self.files {
            self.dir.remove(&file.name)?;
        }
        sessions.remove_dir(name)
    }

    /// Whether it is the copy of a session that has ended or is gone, which nobody ever locks.
    fn is_copy(&self) -> bool {
        let has_lock = self.files.iter().any(|file| file.name == layout::LOCK_FILE);
        !has_lock
            || self
                .dir
                .read(layout::LOCK_FILE)
                .and_then(|lock| read_tail(lock, TAIL_LEN))
                .is_ok_and(|text| is_copied(&text))
    }

    /// Its publisher, by its first segment; `None` if it died before there was one.
    fn publisher(&self) -> Result<Option<SessionInfo>, Error> {
        let Some((_, first)) = self.segments().min_by_key(|segment| segment.0) else { return Ok(None) };
        first_frame(self.open_file(&first.name)?).map(Some)
    }

    /// The segments that are not empty, with their numbers.
    fn segments(&self) -> impl Iterator<Item = (u64, &SessionFile)> {
        let filled = self.files.iter().filter(|file| !file.is_empty);
        filled.filter_map(|file| Some((layout::segment_number(&file.name)?, file)))
    }

    /// The end of a file, at most this many bytes.
    fn tail(&self, file: &SessionFile, most: u64) -> Result<Vec<u8>, Error> {
        read_tail(self.open_file(&file.name)?, most)
    }

    fn open_file(&self, name: &str) -> Result<File, Error> {
        self.dir.read(name).map_err(|error| error.inside(name))
    }
}

impl SessionFile {
    fn find(dir: &PrivateDir, name: &OsStr) -> Result<Self, Error> {
        let Some(name) = name.to_str().filter(|name| layout::is_session_file(name)) else {
            return Err(Error::Unknown { name: clean(name.as_encoded_bytes()) });
        };
        let found = dir.file(name).map_err(|error| error.inside(name))?;
        Ok(Self { name: name.to_owned(), is_empty: found.len == 0, bytes: found.disk_bytes, written: found.modified })
    }
}

/// Whether this machine's current boot has this boot id.
fn is_this_boot(boot_id: &str) -> bool {
    let this = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    !boot_id.is_empty() && this.trim() == boot_id
}
