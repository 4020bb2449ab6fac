//! The content of one session's directory, and whether it proves to be a dead session of this user.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gnntop_wire::text::clean;
use gnntop_wire::{Item, SessionInfo, StreamReader, layout};
use rustix::fs::{AtFlags, Dir, FlockOperation, Stat};
use rustix::io::Errno;

use crate::doubt::Doubt;
use crate::place::{is_file, is_local, is_this_boot, open_dir, open_file, ours};

/// Bytes of a segment that are searched for its first frame.
const HEAD_LEN: u64 = 64 * 1024;
/// Bytes at the end of the last segment that are searched for the end of the stream, which takes a few dozen.
const TAIL_LEN: u64 = 4096;
/// A younger session without a segment may be about to be locked.
const SETTLED: Duration = Duration::from_secs(60);

/// A directory with only a session's files in it, whose lock this process holds.
pub(crate) struct Content {
    dir: OwnedFd,
    files: Vec<Known>,
    /// Locked until this is closed.
    lock: OwnedFd,
}

/// A file of a session.
struct Known {
    name: String,
    bytes: u64,
    written: SystemTime,
}

impl Content {
    /// Reads the directory of this name.
    pub(crate) fn open(sessions: &OwnedFd, name: &str) -> Result<Self, Doubt> {
        let dir = open_dir(sessions.as_fd(), name)?;
        ours(&rustix::fs::fstat(&dir)?)?;
        let lock = open_file(&dir, layout::LOCK_FILE).map_err(|doubt| match doubt {
            Doubt::System(error) if error.kind() == std::io::ErrorKind::NotFound => Doubt::NoLock,
            other => other,
        })?;
        // Shared, so that viewers that look at the same time do not mistake this for a live publisher.
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockShared) {
            Err(Errno::WOULDBLOCK) => Err(Doubt::Live),
            locked => Ok(locked?),
        }?;
        let mut files = Vec::new();
        for entry in Dir::read_from(&dir)? {
            let entry = entry?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                files.push(Known::find(&dir, entry.file_name())?);
            }
        }
        Ok(Self { dir, files, lock })
    }

    /// Total bytes of its files.
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
        let tail = self.read(&last.1.name, last.1.bytes.saturating_sub(TAIL_LEN), TAIL_LEN);
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
    pub(crate) fn prove(&self, name: &str, now: SystemTime) -> Result<(), Doubt> {
        let publisher = self.publisher()?;
        match &publisher {
            Some(info) if layout::session_dir_name(&info.name, info.pid, info.session_id) != name => {
                return Err(Doubt::Renamed);
            }
            None if now.duration_since(self.last_written()).is_ok_and(|age| age < SETTLED) => return Err(Doubt::Fresh),
            _ => (),
        }
        let was_here = publisher.is_some_and(|info| is_this_boot(&info.boot_id));
        if was_here || is_local(&self.lock) { Ok(()) } else { Err(Doubt::Elsewhere) }
    }

    /// Removes its files, then the directory.
    pub(crate) fn remove(self, sessions: &OwnedFd, name: &str) -> Result<(), Doubt> {
        for file in &self.files {
            rustix::fs::unlinkat(&self.dir, file.name.as_str(), AtFlags::empty())?;
        }
        Ok(rustix::fs::unlinkat(sessions, name, AtFlags::REMOVEDIR)?)
    }

    /// Its publisher, by its first segment; `None` if it died before there was one.
    fn publisher(&self) -> Result<Option<SessionInfo>, Doubt> {
        let Some((_, first)) = self.segments().min_by_key(|segment| segment.0) else { return Ok(None) };
        let mut reader = StreamReader::new();
        reader.fill(&self.read(&first.name, 0, HEAD_LEN)?);
        match reader.next() {
            Some(Item::Segment(info)) => Ok(Some(info)),
            _ => Err(Doubt::NoHead),
        }
    }

    /// The segments that are not empty, with their numbers.
    fn segments(&self) -> impl Iterator<Item = (u64, &Known)> {
        let filled = self.files.iter().filter(|file| file.bytes > 0);
        filled.filter_map(|file| Some((layout::segment_number(&file.name)?, file)))
    }

    fn read(&self, name: &str, from: u64, most: u64) -> Result<Vec<u8>, Doubt> {
        let mut file = File::from(open_file(&self.dir, name)?);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Known {
    fn find(dir: &OwnedFd, name: &std::ffi::CStr) -> Result<Self, Doubt> {
        let shown = clean(name.to_bytes());
        if !name.to_str().is_ok_and(layout::is_session_file) {
            return Err(Doubt::Stranger(shown));
        }
        let found = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        ours(&found)?;
        if !is_file(&found) {
            return Err(Doubt::NoFile(shown));
        }
        Ok(Self { name: shown, bytes: u64::try_from(found.st_size).unwrap_or(0), written: written(&found) })
    }
}

fn written(found: &Stat) -> SystemTime {
    let since = u64::try_from(found.st_mtime).unwrap_or(0);
    UNIX_EPOCH.checked_add(Duration::from_secs(since)).unwrap_or(UNIX_EPOCH)
}
