//! Old sessions go when a new one begins, so that the directory of all sessions does not grow without end.
//!
//! What is removed must be proved to be a dead session of this user: its name is the one that its first segment gives
//! it, everything in it is a segment or the lock, all of it belongs to this user, and nobody holds the lock, on a file
//! system on which this machine would see that. Whatever falls short of that stays, such as a copy that a person made.
//!
//! Every name is looked up inside a directory that is open already, and never through a link, so that nothing outside it
//! can be reached whatever others do to it meanwhile.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gnntop_wire::{Item, SessionInfo, StreamReader, layout};
use rustix::fs::{AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, Stat};

use crate::{directory, host};

/// Sessions of dead processes are kept this long, so that what killed them can still be looked at.
const KEEP: Duration = Duration::from_secs(24 * 3600);
/// Ended sessions together take at most this much; the oldest go first.
const KEEP_BYTES: u64 = 1 << 30;
/// A session that was written to a moment ago may be about to be locked.
const SETTLED: Duration = Duration::from_secs(60);
/// Bytes of a segment that are searched for its first frame.
const HEAD_LEN: u64 = 64 * 1024;

/// Removes sessions of dead processes that are too old or too many. Whatever cannot be read or removed stays.
pub(crate) fn remove_old(sessions: &Path, now: SystemTime) {
    // Nothing to be done for who cannot open it: the session that begins says so.
    let _ = prune(sessions, now, KEEP_BYTES);
}

fn prune(sessions: &Path, now: SystemTime, keep_bytes: u64) -> io::Result<()> {
    let sessions = open_dir(CWD, sessions)?;
    let mut idle: Vec<Idle> = Vec::new();
    for entry in Dir::read_from(&sessions)? {
        let entry = entry?;
        if matches!(entry.file_type(), FileType::Directory | FileType::Unknown)
            && has_name_of_session(entry.file_name())
        {
            idle.extend(Idle::find(&sessions, entry.file_name().to_owned()));
        }
    }
    idle.sort_by_key(|session| std::cmp::Reverse(session.last_written_s));
    let now_s = i64::try_from(now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()).unwrap_or(i64::MAX);
    let mut bytes = 0_u64;
    for session in idle {
        bytes = bytes.saturating_add(session.bytes);
        let age = Duration::from_secs(u64::try_from(now_s.saturating_sub(session.last_written_s)).unwrap_or(0));
        if age > KEEP || bytes > keep_bytes && age > SETTLED {
            let _ = remove(&sessions, &session.name);
        }
    }
    Ok(())
}

/// A session that nobody was seen to publish.
struct Idle {
    name: CString,
    bytes: u64,
    last_written_s: i64,
}

impl Idle {
    /// The session of this name, where nobody holds its lock and all in it looks like a session of this user.
    fn find(sessions: &OwnedFd, name: CString) -> Option<Self> {
        let found = Found::open(sessions, &name).ok()?;
        let bytes = found.files.iter().map(|file| file.bytes).sum();
        let last_written_s = found.files.iter().map(|file| file.written_s).max()?;
        Some(Self { name, bytes, last_written_s })
    }
}

/// A directory with nothing but a session's files in it, whose lock is held by this process.
struct Found {
    dir: OwnedFd,
    files: Vec<Known>,
    /// Locked until this is closed.
    lock: OwnedFd,
}

/// A file of a session.
struct Known {
    name: CString,
    bytes: u64,
    written_s: i64,
}

impl Found {
    fn open(sessions: &OwnedFd, name: &CString) -> io::Result<Self> {
        let dir = open_dir(sessions.as_fd(), name)?;
        ours(&rustix::fs::fstat(&dir)?)?;
        let mut files = Vec::new();
        for entry in Dir::read_from(&dir)? {
            let name = entry?.file_name().to_owned();
            if matches!(name.as_bytes(), b"." | b"..") {
                continue;
            }
            let text = name.to_str().unwrap_or_default();
            if !layout::is_session_file(text) {
                return Err(refusal("something else lies in it"));
            }
            let found = rustix::fs::statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW)?;
            ours(&found)?;
            if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
                return Err(refusal("not everything in it is a file"));
            }
            // How wide these are differs between systems.
            #[allow(clippy::useless_conversion)]
            let written_s = i64::from(found.st_mtime);
            files.push(Known { name, bytes: u64::try_from(found.st_size).unwrap_or(0), written_s });
        }
        let lock = open_file(&dir, layout::LOCK_FILE)?;
        // Shared, so that viewers that look at the same time do not take this for a living publisher.
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockShared)?;
        Ok(Self { dir, files, lock })
    }

    /// Who published it, by its first segment; `None` where it died before there was one.
    fn publisher(&self) -> io::Result<Option<SessionInfo>> {
        let is_segment = |file: &&Known| file.name.to_str().is_ok_and(|name| layout::segment_number(name).is_some());
        let segments = self.files.iter().filter(is_segment);
        let Some(first) = segments.min_by(|a, b| a.name.cmp(&b.name)) else { return Ok(None) };
        if first.bytes == 0 {
            return Ok(None);
        }
        let mut head = Vec::new();
        File::from(open_file(&self.dir, &first.name)?).take(HEAD_LEN).read_to_end(&mut head)?;
        let mut reader = StreamReader::new();
        reader.fill(&head);
        match reader.next() {
            Some(Item::Segment(info)) => Ok(Some(info)),
            _ => Err(refusal("its first segment does not say whose it is")),
        }
    }
}

/// Removes a session, if it is proved to be a dead one of ours: its files, then the directory.
fn remove(sessions: &OwnedFd, name: &CString) -> io::Result<()> {
    let found = Found::open(sessions, name)?;
    let publisher = found.publisher()?;
    if let Some(info) = &publisher {
        let its_name = layout::session_dir_name(&info.name, info.pid, info.session_id);
        if its_name.as_bytes() != name.as_bytes() {
            return Err(refusal("it does not have the name that its publisher gave it"));
        }
    }
    let boot_id = host::boot_id();
    let was_here = publisher.is_some_and(|info| !boot_id.is_empty() && info.boot_id == boot_id);
    if !was_here && !is_local(found.lock.as_fd()) {
        return Err(refusal("another machine may hold a lock on it that is not seen here"));
    }
    for file in &found.files {
        rustix::fs::unlinkat(&found.dir, &file.name, AtFlags::empty())?;
    }
    Ok(rustix::fs::unlinkat(sessions, name, AtFlags::REMOVEDIR)?)
}

/// Whether a directory's name is of the form that sessions have: name, process id, start of the session's id.
fn has_name_of_session(name: &std::ffi::CStr) -> bool {
    let Ok(name) = name.to_str() else { return false };
    let mut parts = name.rsplitn(3, '-');
    let (id, pid, rest) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default(), parts.next());
    let is_id = id.len() == 8 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_id && pid.parse::<u32>().is_ok() && rest.is_some_and(|name| !name.is_empty())
}

/// Whether the file lies on a file system that no other machine writes to, so that every lock on it is seen here.
#[cfg(target_os = "linux")]
fn is_local(file: BorrowedFd<'_>) -> bool {
    /// From `linux/magic.h`, and ZFS's own: ext2 to ext4, xfs, btrfs, tmpfs, ramfs, overlayfs, f2fs, zfs.
    const LOCAL: [u64; 8] =
        [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0x8584_58F6, 0x794C_7630, 0xF2F5_2010, 0x2FC1_2FC1];
    // The kernel's numbers have 32 bits; how they are widened differs between systems.
    rustix::fs::fstatfs(file).is_ok_and(|found| LOCAL.contains(&(found.f_type as u64 & 0xFFFF_FFFF)))
}

#[cfg(not(target_os = "linux"))]
fn is_local(_file: BorrowedFd<'_>) -> bool {
    false
}

/// Opens a directory that is no link.
fn open_dir(inside: BorrowedFd<'_>, name: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(inside, name, flags, Mode::empty())?)
}

/// Opens a regular file of this user. A link or a pipe in its place is refused, and cannot make the call wait.
fn open_file(dir: &OwnedFd, name: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    let found = rustix::fs::fstat(&file)?;
    ours(&found)?;
    if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile { Ok(file) } else { Err(refusal("no file")) }
}

fn ours(found: &Stat) -> io::Result<()> {
    if found.st_uid == directory::user_id() { Ok(()) } else { Err(refusal("it belongs to another user")) }
}

fn refusal(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    use gnntop_wire::put_segment;

    use super::*;

    const LATER: Duration = Duration::from_secs(48 * 3600);

    /// A session of `pid` that was never locked, with this much in its segment beside its head.
    fn session(sessions: &Path, pid: u32, bytes: usize) -> PathBuf {
        let info = SessionInfo { name: "pna".into(), pid, boot_id: host::boot_id(), ..SessionInfo::default() };
        let dir = sessions.join(layout::session_dir_name(&info.name, pid, info.session_id));
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join(layout::LOCK_FILE), "").unwrap();
        let mut segment = Vec::new();
        put_segment(&mut segment, &info);
        segment.resize(segment.len() + bytes, 0);
        fs::write(dir.join(layout::segment_file_name(0)), segment).unwrap();
        dir
    }

    #[test]
    fn old_and_oversized_ended_sessions_go_and_live_ones_stay() {
        let temp = tempfile::tempdir().unwrap();
        let live = session(temp.path(), 1, 100_000);
        let lock = File::open(live.join(layout::LOCK_FILE)).unwrap();
        lock.lock().unwrap();
        let ended = [session(temp.path(), 2, 10_000), session(temp.path(), 3, 10_000)];
        let left = || ended.iter().filter(|dir| dir.exists()).count();
        prune(temp.path(), SystemTime::now(), 0).unwrap();
        assert_eq!(left(), 2, "what was written a moment ago may be about to be locked");
        prune(temp.path(), SystemTime::now() + SETTLED * 2, 12_000).unwrap();
        assert_eq!(left(), 1, "12,000 bytes are one session");
        prune(temp.path(), SystemTime::now() + LATER, KEEP_BYTES).unwrap();
        assert!(left() == 0 && live.exists());
        drop(lock);
        prune(temp.path(), SystemTime::now() + LATER, KEEP_BYTES).unwrap();
        assert!(!live.exists(), "its lock is gone, and with it the last doubt");
    }

    #[test]
    fn what_is_not_proved_to_be_a_dead_session_of_ours_stays() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        let copied = at("pna-4711-best");
        fs::rename(session(temp.path(), 4711, 1), &copied).unwrap();
        let renamed = at("best-4711-00000000");
        fs::rename(session(temp.path(), 4711, 1), &renamed).unwrap();
        let with_notes = session(temp.path(), 1, 1);
        fs::write(with_notes.join("notes.txt"), "why it was slow").unwrap();
        let with_recording = session(temp.path(), 2, 1);
        fs::write(with_recording.join("mine.gnntop"), "").unwrap();
        let garbage = session(temp.path(), 3, 1);
        fs::write(garbage.join(layout::segment_file_name(0)), "a person's file of this name").unwrap();
        let without_lock = session(temp.path(), 4, 1);
        fs::remove_file(without_lock.join(layout::LOCK_FILE)).unwrap();
        let all = [copied, renamed, with_notes, with_recording, garbage, without_lock];
        prune(temp.path(), SystemTime::now() + LATER, 0).unwrap();
        for kept in all {
            assert!(kept.exists(), "{}", kept.display());
        }
    }

    #[test]
    fn one_that_died_before_its_first_segment_goes() {
        let temp = tempfile::tempdir().unwrap();
        let dir = session(temp.path(), 1, 0);
        fs::write(dir.join(layout::segment_file_name(0)), "").unwrap();
        prune(temp.path(), SystemTime::now() + LATER, 0).unwrap();
        assert!(!dir.exists());
    }

    #[test]
    fn a_pipe_or_a_link_in_the_place_of_the_lock_is_left_alone_at_once() {
        let temp = tempfile::tempdir().unwrap();
        let (pipe, link) = (session(temp.path(), 1, 1), session(temp.path(), 2, 1));
        for dir in [&pipe, &link] {
            fs::remove_file(dir.join(layout::LOCK_FILE)).unwrap();
        }
        rustix::fs::mknodat(CWD, pipe.join(layout::LOCK_FILE), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let precious = temp.path().join("precious");
        fs::write(&precious, "").unwrap();
        symlink(&precious, link.join(layout::LOCK_FILE)).unwrap();
        let linked = temp.path().join("pna-3-00000000");
        symlink(temp.path(), &linked).unwrap();
        // Opened as any file is, the pipe would keep this waiting for ever.
        prune(temp.path(), SystemTime::now() + LATER, 0).unwrap();
        assert!(pipe.exists() && link.exists() && precious.exists() && linked.exists());
    }

    #[test]
    fn another_users_session_stays() {
        if directory::user_id() != 0 {
            println!("skipped: only root can give files away");
            return;
        }
        let temp = tempfile::tempdir().unwrap();
        fs::set_permissions(temp.path(), Permissions::from_mode(0o777)).unwrap();
        let (theirs, their_segment) = (session(temp.path(), 1, 1), session(temp.path(), 2, 1));
        for path in [&theirs, &their_segment.join(layout::segment_file_name(0))] {
            std::os::unix::fs::chown(path, Some(12_345), None).unwrap();
        }
        prune(temp.path(), SystemTime::now() + LATER, 0).unwrap();
        assert!(theirs.exists() && their_segment.exists());
    }
}
