//! Finds this user's sessions: what is in the sessions directory, its publishers, and whether they are alive.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use gnntop_sessions::layout;
use gnntop_wire::{Item, SessionInfo, StreamReader};

use super::{afterword, segments, trusted};

/// Bytes of a session's oldest segment that are searched for its first frame.
const HEAD_LEN: u64 = 64 * 1024;
/// Most entries read that are not live sessions; the newest.
const MOST_ENDED: usize = 1000;
/// Most files counted in a directory, and the deepest nesting of folders.
const MOST_FILES: usize = 10_000;
const MOST_DEEP: usize = 4;

/// A session on disk.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its directory.
    pub dir: PathBuf,
    /// Its publisher's own description.
    pub info: SessionInfo,
    /// Whether its publisher is alive.
    pub alive: bool,
    /// Total size of its files, in bytes.
    pub size_bytes: u64,
    /// When its stream last grew.
    pub last_active: Option<SystemTime>,
    /// Why its program died, if its keeper added that.
    pub died: Option<String>,
}

/// A directory entry that is not a readable session, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its path.
    pub path: PathBuf,
    /// Why it was left out, as text.
    pub reason: String,
}

/// The contents of a sessions directory.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Sessions: live ones first, then by last activity, newest first.
    pub sessions: Vec<Session>,
    /// Entries left out.
    pub skipped: Vec<Skipped>,
    /// Number of older sessions, none of them live, that were not read.
    pub older: usize,
}

/// Why the sessions directory cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    /// It exists, but cannot be listed.
    #[error("cannot read the sessions directory {}: {error}; check its permissions, or set GNNTOP_DIR", path.display())]
    Unreadable {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// It is not a directory of this user's.
    #[error("{} {reason}; set GNNTOP_DIR to a directory of your own", path.display())]
    Refused {
        /// The directory.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// This user's sessions directory, from the environment.
pub fn sessions_dir() -> PathBuf {
    layout::sessions_dir()
}

/// Lists the sessions in `dir`; a missing directory has none.
///
/// Every live session is listed, and the newest of the others: only their number is limited.
///
/// # Errors
/// If `dir` cannot be listed, is a link, or belongs to another user: its content could be anyone's.
pub fn list(dir: &Path) -> Result<Listing, DiscoverError> {
    list_since(dir, SystemTime::UNIX_EPOCH)
}

/// Like [`list`], without sessions whose directories have not changed since then.
///
/// # Errors
/// As for [`list`].
pub(super) fn list_since(dir: &Path, since: SystemTime) -> Result<Listing, DiscoverError> {
    let unreadable = |error| DiscoverError::Unreadable { path: dir.to_owned(), error };
    let mut listing = Listing::default();
    if !is_usable(dir)? {
        return Ok(listing);
    }
    let mut ended = Vec::new();
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        let changed = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        // Ignore plain files beside the sessions, such as the logs of started programs.
        if found.is_file() || changed < since {
            continue;
        }
        if trusted::refusal(&found).is_none() && segments::is_alive(&path) {
            listing.add(path);
        } else {
            ended.push((changed, path));
        }
    }
    ended.sort_unstable_by(|a, b| b.cmp(a));
    listing.older = ended.len().saturating_sub(MOST_ENDED);
    ended.into_iter().take(MOST_ENDED).for_each(|(_, path)| listing.add(path));
    listing.sessions.sort_by_key(|session| std::cmp::Reverse((session.alive, session.last_active)));
    listing.skipped.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(listing)
}

/// Whether a directory of sessions exists and belongs to this user.
///
/// # Errors
/// As for [`list`].
pub fn is_usable(dir: &Path) -> Result<bool, DiscoverError> {
    let path = || dir.to_owned();
    match fs::symlink_metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(DiscoverError::Unreadable { path: path(), error }),
        Ok(found) => {
            trusted::refusal(&found).map_or(Ok(true), |reason| Err(DiscoverError::Refused { path: path(), reason }))
        }
    }
}

impl Listing {
    fn add(&mut self, path: PathBuf) {
        match inspect(&path) {
            Ok(session) => self.sessions.push(session),
            Err(reason) => self.skipped.push(Skipped { path, reason }),
        }
    }
}

/// Reads the session in a directory, if it is this user's.
pub(super) fn inspect(dir: &Path) -> Result<Session, String> {
    match fs::symlink_metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err("is gone".to_owned()),
        Err(error) => Err(error.to_string()),
        Ok(found) => trusted::refusal(&found).map_or_else(|| read_session(dir), Err),
    }
}

/// Reads the session in `dir`, of any owner.
///
/// # Errors
/// Why this is not a readable session, as text.
pub fn read_session(dir: &Path) -> Result<Session, String> {
    let numbers = segments::numbers(dir).map_err(|error| error.to_string())?;
    let mut info = Err("has no segments".to_owned());
    let mut last_active = None;
    for number in numbers {
        let path = segments::path(dir, number);
        if let Ok(meta) = fs::symlink_metadata(&path) {
            last_active = last_active.max(meta.modified().ok());
        }
        if info.is_err() {
            info = first_frame(&path);
        }
    }
    let alive = segments::is_alive(dir);
    let died = if alive { None } else { afterword::read(dir) };
    let size_bytes = bytes_in(dir, MOST_DEEP);
    Ok(Session { dir: dir.to_owned(), info: info?, alive, size_bytes, last_active, died })
}

/// Total size in bytes of the files in a folder and its subfolders. Links are not followed.
fn bytes_in(dir: &Path, deep: usize) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().take(MOST_FILES);
    let bytes = entries.filter_map(|entry| match entry.metadata().ok()? {
        meta if meta.is_dir() => Some(if deep > 0 { bytes_in(&entry.path(), deep - 1) } else { 0 }),
        meta => meta.is_file().then_some(meta.len()),
    });
    bytes.fold(0, u64::saturating_add)
}

/// The session that a segment's first frame names.
fn first_frame(path: &Path) -> Result<SessionInfo, String> {
    let file = trusted::open(path).map_err(|error| error.to_string())?;
    let mut head = Vec::new();
    file.take(HEAD_LEN).read_to_end(&mut head).map_err(|error| error.to_string())?;
    let mut reader = StreamReader::new();
    reader.fill(&head);
    reader.finish();
    match reader.next() {
        Some(Item::Segment(info)) => Ok(info),
        Some(Item::Newer { major }) => Err(format!("is written in the newer format {major}: update gnntop")),
        None => Err("is still empty".to_owned()),
        Some(_) => Err("does not start like a session".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::super::fixture::{self, SessionDir};
    use super::*;

    #[test]
    fn living_sessions_come_first() {
        let dir = tempfile::tempdir().unwrap();
        SessionDir::create(dir.path(), "ended", 11).write_segment(0, &fixture::segment("ended", 11, 0));
        let live = SessionDir::create(dir.path(), "live", 12);
        live.write_segment(0, &fixture::segment("live", 12, 0));
        let _lock = live.lock();
        let listing = list(dir.path()).unwrap();
        let found: Vec<_> = listing.sessions.iter().map(|s| (s.info.name.as_str(), s.info.pid, s.alive)).collect();
        assert_eq!(found, [("live", 12, true), ("ended", 11, false)]);
        assert!(listing.sessions.iter().all(|s| s.size_bytes > 0 && s.last_active.is_some()));
        assert!(listing.skipped.is_empty());
    }

    #[test]
    fn a_session_is_as_large_as_all_its_files_together() {
        let dir = tempfile::tempdir().unwrap();
        let session = SessionDir::create(dir.path(), "pna", 7);
        let segment = fixture::segment("pna", 7, 0);
        session.write_segment(0, &segment);
        fs::write(session.path().join("beside"), [0; 1000]).unwrap();
        fs::create_dir_all(session.path().join("a/b")).unwrap();
        fs::write(session.path().join("a/b/deep"), [0; 500]).unwrap();
        symlink(session.path(), session.path().join("a/loop")).unwrap();
        assert_eq!(read_session(session.path()).unwrap().size_bytes, segment.len() as u64 + 1500);
    }

    #[test]
    fn every_living_session_is_found_among_any_number_of_dead_ones() {
        let dir = tempfile::tempdir().unwrap();
        let long_ago = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1000);
        let aged = |session: &SessionDir| File::open(session.path()).unwrap().set_modified(long_ago).unwrap();
        // Whatever order the system lists them in, a live one comes after more than are read.
        let mut locks = Vec::new();
        for pid in 0..MOST_ENDED as u32 + 100 {
            let session = SessionDir::create(dir.path(), "pna", pid);
            session.write_segment(0, &fixture::segment("pna", pid, 0));
            if pid % 100 == 50 {
                locks.push(session.lock());
                aged(&session);
            }
        }
        let listing = list(dir.path()).unwrap();
        assert_eq!(listing.sessions.iter().filter(|session| session.alive).count(), locks.len());
        assert_eq!(listing.sessions.len(), MOST_ENDED + locks.len());
        assert_eq!(listing.older, 100 - locks.len());
        let since = SystemTime::now() + std::time::Duration::from_secs(3600);
        assert!(list_since(dir.path(), since).unwrap().sessions.is_empty());
    }

    #[test]
    fn an_absent_directory_holds_no_sessions() {
        let dir = tempfile::tempdir().unwrap();
        assert!(list(&dir.path().join("none")).unwrap().sessions.is_empty());
    }

    #[test]
    fn what_is_no_session_is_skipped_with_a_reason() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        SessionDir::create(dir.path(), "good", 1).write_segment(0, &fixture::segment("good", 1, 0));
        symlink(fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path(), at("link")).unwrap();
        fs::create_dir(at("empty")).unwrap();
        fs::create_dir(at("garbage")).unwrap();
        fs::write(at("garbage/00000000.gnntop"), "hello").unwrap();
        fs::create_dir(at("new")).unwrap();
        File::create(at("new/00000000.gnntop")).unwrap();
        fs::write(at("run.log"), "a log beside the sessions").unwrap();
        let listing = list(dir.path()).unwrap();
        assert_eq!(listing.sessions.len(), 1);
        let reasons: Vec<_> = listing.skipped.iter().map(|s| s.reason.as_str()).collect();
        let expected = ["has no segments", "does not start like a session", "is a symbolic link", "is still empty"];
        assert_eq!(reasons, expected);
    }

    #[test]
    fn a_linked_directory_of_sessions_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        symlink(dir.path(), dir.path().join("link")).unwrap();
        let error = list(&dir.path().join("link")).unwrap_err().to_string();
        assert!(error.contains("is a symbolic link"), "{error}");
        let file = dir.path().join("file");
        File::create(&file).unwrap();
        assert!(list(&file).unwrap_err().to_string().contains("is not a directory"));
    }

    #[test]
    fn another_users_directory_is_refused() {
        if trusted::user_id() != 0 {
            println!("skipped: only root can give a directory away");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let session = SessionDir::create(dir.path(), "theirs", 3);
        session.write_segment(0, &fixture::segment("theirs", 3, 0));
        std::os::unix::fs::chown(session.path(), Some(12_345), None).unwrap();
        let listing = list(dir.path()).unwrap();
        assert!(listing.sessions.is_empty());
        assert_eq!(listing.skipped[0].reason, "belongs to another user (uid 12345)");
    }

    #[test]
    fn an_unreadable_directory_says_so() {
        if trusted::user_id() == 0 {
            println!("skipped: root reads everything");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o300)).unwrap();
        assert!(list(dir.path()).unwrap_err().to_string().contains("check its permissions"));
    }

    #[test]
    fn names_cannot_drive_a_terminal() {
        let dir = tempfile::tempdir().unwrap();
        SessionDir::create(dir.path(), "x", 9).write_segment(0, &fixture::segment("\x1b[2Jevil\n", 9, 0));
        let listing = list(dir.path()).unwrap();
        assert!(!listing.sessions[0].info.name.contains(['\x1b', '\n']));
    }
}
