//! Finds this user's sessions: what is in the sessions directory, its publishers, and whether they are alive.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use gnntop_wire::{Item, SessionInfo, StreamReader};

use crate::error::Error;
use crate::platform::{Directory, Kind};
use crate::private_dir::PrivateDir;
use crate::publisher::{CopyState, Publisher};
use crate::session_dir::SessionDir;

/// Bytes of a segment that are searched for its first frame.
const HEAD_LEN: u64 = 64 * 1024;
/// Most entries read that are not live sessions; the newest.
const MAX_ENDED: usize = 1000;

/// A session on disk.
#[derive(Clone, Debug)]
pub struct ListedSession {
    /// Its directory.
    pub dir: PathBuf,
    /// Its publisher's own description.
    pub info: SessionInfo,
    /// Whether its publisher is alive.
    pub alive: bool,
    /// What else is known where it is a copy, whose program may run elsewhere.
    pub copy: Option<CopyState>,
    /// What its files take on their disk, in bytes.
    pub size_bytes: u64,
    /// When its stream last grew.
    pub last_active: Option<SystemTime>,
    /// The user whom its directory belongs to.
    pub owner: u32,
}

/// A directory entry that is not a readable session, and why.
#[derive(Debug)]
pub struct Skipped {
    /// Its path.
    pub path: PathBuf,
    /// Why it was left out.
    pub error: Error,
}

/// The contents of a sessions directory.
#[derive(Debug, Default)]
pub struct Listing {
    /// Sessions: live ones first, then by last activity, newest first.
    pub sessions: Vec<ListedSession>,
    /// Entries left out.
    pub skipped: Vec<Skipped>,
    /// Number of older sessions, none of them live, that were not read.
    pub older: usize,
}

/// Opens the directory of all sessions; `None` if it does not exist.
///
/// # Errors
/// [`Error::SessionsDir`] if another user could have prepared it: its content could be anyone's.
pub fn open(dir: &Path) -> Result<Option<PrivateDir>, Error> {
    match PrivateDir::open(dir) {
        Ok(all) => Ok(Some(all)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(Error::SessionsDir { path: dir.to_owned(), error: Box::new(error) }),
    }
}

/// Lists the sessions in `dir`; a missing directory has none.
///
/// Every live session is listed, and the newest of the others: only their number is limited.
///
/// # Errors
/// [`Error::SessionsDir`] if `dir` cannot be listed, or another user could have prepared it.
pub fn list(dir: &Path) -> Result<Listing, Error> {
    list_since(dir, SystemTime::UNIX_EPOCH)
}

/// Like [`list`], without sessions whose directories have not changed since then.
///
/// # Errors
/// As for [`list`].
pub fn list_since(dir: &Path, since: SystemTime) -> Result<Listing, Error> {
    let Some(all) = open(dir)? else { return Ok(Listing::default()) };
    let open = |name: &OsStr| all.dir(name).map(SessionDir::from);
    Listing::read(dir, all.directory(), &open, Limits { since, ended: MAX_ENDED })
}

/// Lists the sessions in a directory that a person named. It and they may belong to anyone: nothing in them is trusted. At most
/// `ended` that are not live, the newest.
///
/// # Errors
/// [`Error::SessionsDir`] if `dir` cannot be listed.
pub fn list_any_owner(dir: &Path, ended: usize) -> Result<Listing, Error> {
    let all =
        Directory::follow(dir).map_err(|error| Error::SessionsDir { path: dir.to_owned(), error: Box::new(error) })?;
    let open = |name: &OsStr| SessionDir::in_directory(&all, name);
    Listing::read(dir, &all, &open, Limits { since: SystemTime::UNIX_EPOCH, ended: ended.min(MAX_ENDED) })
}

/// Whether the session in `dir`, of any owner, has a living publisher.
pub fn is_alive(dir: &Path) -> bool {
    SessionDir::open(dir).is_ok_and(|session| session.publisher().alive)
}

/// Reads the session in a directory of this user.
///
/// # Errors
/// Why this is not a readable session of this user.
pub fn read_own(dir: &Path) -> Result<ListedSession, Error> {
    read_open(dir, &PrivateDir::open(dir)?.into())
}

/// Reads the session in `dir`, of any owner.
///
/// # Errors
/// Why this is not a readable session.
pub fn read(dir: &Path) -> Result<ListedSession, Error> {
    read_open(dir, &SessionDir::open(dir)?)
}

/// Which sessions that are not live are read: those that have changed since then, at most this many.
struct Limits {
    since: SystemTime,
    ended: usize,
}

/// Opens the directory of a session by its name.
type OpenSession<'a> = &'a dyn Fn(&OsStr) -> Result<SessionDir, Error>;

impl Listing {
    fn read(path: &Path, all: &Directory, open: OpenSession<'_>, limits: Limits) -> Result<Self, Error> {
        let mut listing = Self::default();
        let ended = listing.add_live(path, all, open, limits.since);
        let mut ended = ended.map_err(|error| Error::SessionsDir { path: path.to_owned(), error: Box::new(error) })?;
        ended.sort_unstable_by(|a, b| b.cmp(a));
        listing.older = ended.len().saturating_sub(limits.ended);
        ended.into_iter().take(limits.ended).for_each(|(_, name)| listing.add(path.join(&name), open(&name)));
        listing.sessions.sort_by_key(|session| std::cmp::Reverse((session.alive, session.last_active)));
        listing.skipped.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(listing)
    }

    /// Adds the live sessions; returns the others, with the time of their last change.
    fn add_live(
        &mut self,
        path: &Path,
        all: &Directory,
        open: OpenSession<'_>,
        since: SystemTime,
    ) -> Result<Vec<(SystemTime, OsString)>, Error> {
        let mut ended = Vec::new();
        for name in all.names()? {
            let name = name?;
            let Ok(found) = all.entry(&name) else { continue };
            // Ignore plain files beside the sessions, such as the logs of started programs.
            if found.kind == Kind::File || found.modified < since {
                continue;
            }
            match open(&name) {
                Ok(session) if session.publisher().alive => self.add(path.join(&name), Ok(session)),
                _ => ended.push((found.modified, name)),
            }
        }
        Ok(ended)
    }

    fn add(&mut self, path: PathBuf, session: Result<SessionDir, Error>) {
        match session.and_then(|session| read_open(&path, &session)) {
            Ok(session) => self.sessions.push(session),
            Err(error) => self.skipped.push(Skipped { path, error }),
        }
    }
}

fn read_open(dir: &Path, session: &SessionDir) -> Result<ListedSession, Error> {
    let mut info = Err(Error::NoSegments);
    let mut last_active = None;
    for number in session.segments()? {
        last_active = last_active.max(session.modified(number));
        if info.is_err() {
            info = session.segment(number).and_then(first_frame);
        }
    }
    let Publisher { alive, copy, .. } = session.publisher();
    let (size_bytes, owner) = (session.bytes(), session.owner()?);
    Ok(ListedSession { dir: dir.to_owned(), info: info?, alive, copy, size_bytes, last_active, owner })
}

/// The session that a segment's first frame names.
pub(crate) fn first_frame(segment: File) -> Result<SessionInfo, Error> {
    let mut head = Vec::new();
    segment.take(HEAD_LEN).read_to_end(&mut head)?;
    let mut reader = StreamReader::new();
    reader.fill(&head);
    reader.finish();
    match reader.next() {
        Some(Item::Segment(info)) => Ok(info),
        Some(Item::Newer { major }) => Err(Error::Newer { major }),
        None => Err(Error::Empty),
        Some(_) => Err(Error::NotASession),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use gnntop_wire::put_segment;

    use super::*;
    use crate::layout;
    use crate::live_lock::LiveLock;
    use crate::platform::user_id;

    /// A session with one segment.
    fn session(sessions: &Path, name: &str, pid: u32) -> PrivateDir {
        let info = SessionInfo { name: name.into(), pid, ..SessionInfo::default() };
        let dir =
            PrivateDir::create(&sessions.join(layout::session_dir_name(name, pid, u128::from(pid) << 96))).unwrap();
        let mut segment = Vec::new();
        put_segment(&mut segment, &info);
        fs::write(dir.path().join("00000000.gnntop"), segment).unwrap();
        dir
    }

    #[test]
    fn list_sorts_live_sessions_first() {
        let dir = tempfile::tempdir().unwrap();
        session(dir.path(), "ended", 11);
        let _lock = LiveLock::create(&session(dir.path(), "live", 12)).unwrap();
        let listing = list(dir.path()).unwrap();
        let found: Vec<_> = listing.sessions.iter().map(|s| (s.info.name.as_str(), s.info.pid, s.alive)).collect();
        assert_eq!(found, [("live", 12, true), ("ended", 11, false)]);
        assert!(listing.sessions.iter().all(|s| s.size_bytes > 0 && s.last_active.is_some()));
        assert!(listing.skipped.is_empty());
    }

    #[test]
    fn list_sorts_newest_first_within_a_second() {
        let dir = tempfile::tempdir().unwrap();
        for (pid, ms) in [(9_999, 100), (10_000, 200), (10_001, 150)] {
            let segment = session(dir.path(), "pna", pid).path().join("00000000.gnntop");
            let written = SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(1_000_000 + ms);
            File::options().append(true).open(segment).unwrap().set_modified(written).unwrap();
        }
        let pids: Vec<_> = list(dir.path()).unwrap().sessions.iter().map(|session| session.info.pid).collect();
        assert_eq!(pids, [10_000, 10_001, 9_999]);
    }

    #[test]
    fn list_sums_sizes_of_all_files() {
        let dir = tempfile::tempdir().unwrap();
        let session = session(dir.path(), "pna", 7);
        let segment = fs::metadata(session.path().join("00000000.gnntop")).unwrap().len();
        fs::write(session.path().join("beside"), [0; 1000]).unwrap();
        fs::create_dir_all(session.path().join("a/b")).unwrap();
        fs::write(session.path().join("a/b/deep"), [0; 500]).unwrap();
        symlink(session.path(), session.path().join("a/loop")).unwrap();
        assert_eq!(read(session.path()).unwrap().size_bytes, segment + 1500);
        // The holes of a file take nothing.
        fs::OpenOptions::new().write(true).open(session.path().join("beside")).unwrap().set_len(1 << 40).unwrap();
        let size_bytes = read(session.path()).unwrap().size_bytes;
        assert!((segment + 1500..1 << 20).contains(&size_bytes), "{size_bytes}");
    }

    #[test]
    fn list_finds_all_live_sessions_among_many_ended() {
        let dir = tempfile::tempdir().unwrap();
        let long_ago = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1000);
        let aged = |session: &PrivateDir| File::open(session.path()).unwrap().set_modified(long_ago).unwrap();
        // Whatever order the system lists them in, a live one comes after more than are read.
        let mut locks = Vec::new();
        for pid in 0..MAX_ENDED as u32 + 100 {
            let session = session(dir.path(), "pna", pid);
            if pid % 100 == 50 {
                locks.push(LiveLock::create(&session).unwrap());
                aged(&session);
            }
        }
        let listing = list(dir.path()).unwrap();
        assert_eq!(listing.sessions.iter().filter(|session| session.alive).count(), locks.len());
        assert_eq!(listing.sessions.len(), MAX_ENDED + locks.len());
        assert_eq!(listing.older, 100 - locks.len());
        let since = SystemTime::now() + std::time::Duration::from_secs(3600);
        assert!(list_since(dir.path(), since).unwrap().sessions.is_empty());
    }

    #[test]
    fn list_of_missing_directory_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        assert!(list(&dir.path().join("none")).unwrap().sessions.is_empty());
    }

    #[test]
    fn list_skips_non_sessions_with_reason() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        session(dir.path(), "good", 1);
        symlink(fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path(), at("link")).unwrap();
        fs::create_dir(at("empty")).unwrap();
        fs::create_dir(at("garbage")).unwrap();
        fs::write(at("garbage/00000000.gnntop"), "hello").unwrap();
        fs::create_dir(at("new")).unwrap();
        File::create(at("new/00000000.gnntop")).unwrap();
        fs::write(at("run.log"), "a log beside the sessions").unwrap();
        let listing = list(dir.path()).unwrap();
        assert_eq!(listing.sessions.len(), 1);
        let reasons: Vec<_> = listing.skipped.iter().map(|s| s.error.to_string()).collect();
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
    fn list_refuses_other_users_directory() {
        if user_id() != 0 {
            println!("skipped: only root can give a directory away");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let session = session(dir.path(), "theirs", 3);
        std::os::unix::fs::chown(session.path(), Some(12_345), None).unwrap();
        let listing = list(dir.path()).unwrap();
        assert!(listing.sessions.is_empty());
        assert_eq!(listing.skipped[0].error.to_string(), "belongs to another user (uid 12345)");
    }

    #[test]
    fn list_any_owner_reads_a_named_directory_of_others() {
        let dir = tempfile::tempdir().unwrap();
        // The link is the oldest entry, so that of the newest one is a session.
        symlink(dir.path(), dir.path().join("link")).unwrap();
        let theirs = session(dir.path(), "theirs", 3);
        session(dir.path(), "ours", 4);
        // Others can write to it, which is refused where the directory is trusted.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(list(dir.path()).is_err());
        let expected = if user_id() == 0 {
            std::os::unix::fs::chown(theirs.path(), Some(12_345), None).unwrap();
            12_345
        } else {
            user_id()
        };
        let listing = list_any_owner(dir.path(), 5).unwrap();
        let owner = |name: &str| listing.sessions.iter().find(|s| s.info.name == name).map(|s| s.owner);
        assert_eq!((owner("theirs"), owner("ours")), (Some(expected), Some(user_id())));
        assert_eq!(listing.skipped.len(), 1, "a link is not followed: {:?}", listing.skipped);
        assert_eq!((list_any_owner(dir.path(), 1).unwrap().sessions.len(), listing.older), (1, 0));
        assert!(list_any_owner(&dir.path().join("none"), 5).is_err());
    }

    #[test]
    fn list_unreadable_directory_is_error() {
        if user_id() == 0 {
            println!("skipped: root reads everything");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o300)).unwrap();
        assert!(list(dir.path()).unwrap_err().to_string().contains("cannot be accessed"));
    }

    #[test]
    fn listed_names_have_no_control_characters() {
        let dir = tempfile::tempdir().unwrap();
        session(dir.path(), "\x1b[2Jevil\n", 9);
        let listing = list(dir.path()).unwrap();
        assert!(!listing.sessions[0].info.name.contains(['\x1b', '\n']));
    }
}
