//! Finds the sessions of this user: what lies in the sessions directory, who publishes it, and whether it lives.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use gnntop_wire::{Item, SessionInfo, StreamReader, layout};

use super::segments;

/// Bytes of a session's oldest segment that are searched for its first frame.
const HEAD_LEN: u64 = 64 * 1024;
/// Directory entries that are looked at; a directory with more is not ours.
pub(super) const MAX_ENTRIES: usize = 10_000;

/// A session on disk.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its directory.
    pub dir: PathBuf,
    /// What its publisher says of itself.
    pub info: SessionInfo,
    /// Whether its publisher lives.
    pub alive: bool,
    /// Bytes on disk.
    pub size_bytes: u64,
    /// When it last grew.
    pub last_active: Option<SystemTime>,
}

/// A directory entry that is no session that can be read, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Where.
    pub path: PathBuf,
    /// Why it was left out, in words.
    pub reason: String,
}

/// What a sessions directory holds.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Sessions: the living first, then by last activity, newest first.
    pub sessions: Vec<Session>,
    /// What was left out.
    pub skipped: Vec<Skipped>,
}

/// Why the sessions directory cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    /// It is there, but cannot be listed.
    #[error("cannot read the sessions directory {}: {error}; check its permissions, or set GNNTOP_DIR", path.display())]
    Unreadable {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It is no directory of this user's.
    #[error("{} {reason}; set GNNTOP_DIR to a directory of your own", path.display())]
    Refused {
        /// The directory.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// The directory that holds this user's sessions, from the environment.
pub fn sessions_dir() -> PathBuf {
    let env = |name: &str| -> Option<OsString> { std::env::var_os(name) };
    layout::sessions_dir(env, &std::env::temp_dir(), user_id())
}

/// Lists the sessions in `dir`; an absent directory holds none.
///
/// # Errors
/// Fails when `dir` cannot be listed, or is a link or another user's: its content could be anybody's.
pub fn list(dir: &Path) -> Result<Listing, DiscoverError> {
    let refused = |reason: String| DiscoverError::Refused { path: dir.to_owned(), reason };
    let unreadable = |error| DiscoverError::Unreadable { path: dir.to_owned(), error };
    match ownership(dir) {
        Ok(()) => (),
        Err(Refusal::Absent) => return Ok(Listing::default()),
        Err(Refusal::Io(error)) => return Err(unreadable(error)),
        Err(Refusal::Reason(reason)) => return Err(refused(reason)),
    }
    let mut listing = Listing::default();
    for entry in fs::read_dir(dir).map_err(unreadable)?.take(MAX_ENTRIES) {
        let path = entry.map_err(unreadable)?.path();
        // Plain files beside the sessions, such as the logs of programs that were started, are no business of ours.
        if fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file()) {
            continue;
        }
        match inspect(&path) {
            Ok(session) => listing.sessions.push(session),
            Err(reason) => listing.skipped.push(Skipped { path, reason }),
        }
    }
    listing.sessions.sort_by_key(|session| std::cmp::Reverse((session.alive, session.last_active)));
    listing.skipped.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(listing)
}

/// Reads what a directory says of its session, if it is one of this user's.
pub(super) fn inspect(dir: &Path) -> Result<Session, String> {
    match ownership(dir) {
        Ok(()) => read_session(dir),
        Err(Refusal::Absent) => Err("is gone".to_owned()),
        Err(Refusal::Io(error)) => Err(error.to_string()),
        Err(Refusal::Reason(reason)) => Err(reason),
    }
}

/// Reads what the session in `dir` says of itself, whoever owns it.
///
/// # Errors
/// Says in words why this is no session that can be read.
pub fn read_session(dir: &Path) -> Result<Session, String> {
    let numbers = segments::numbers(dir).map_err(|error| error.to_string())?;
    let mut info = Err("has no segments".to_owned());
    let (mut size_bytes, mut last_active) = (0, None);
    for number in numbers {
        let path = segments::path(dir, number);
        if let Ok(meta) = fs::symlink_metadata(&path) {
            size_bytes += meta.len();
            last_active = last_active.max(meta.modified().ok());
        }
        if info.is_err() {
            info = first_frame(&path);
        }
    }
    Ok(Session { dir: dir.to_owned(), info: info?, alive: segments::is_alive(dir), size_bytes, last_active })
}

/// The session that a segment's first frame names.
fn first_frame(path: &Path) -> Result<SessionInfo, String> {
    let file = segments::open(path).map_err(|error| error.to_string())?;
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

/// Why a directory is not trusted.
enum Refusal {
    Absent,
    Io(io::Error),
    Reason(String),
}

/// Checks that `dir` is a directory of this user's, and no link.
fn ownership(dir: &Path) -> Result<(), Refusal> {
    let meta = match fs::symlink_metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Refusal::Absent),
        other => other.map_err(Refusal::Io)?,
    };
    if meta.is_symlink() {
        Err(Refusal::Reason("is a symbolic link".to_owned()))
    } else if !meta.is_dir() {
        Err(Refusal::Reason("is not a directory".to_owned()))
    } else if meta.uid() != user_id() {
        Err(Refusal::Reason(format!("belongs to another user (uid {})", meta.uid())))
    } else {
        Ok(())
    }
}

/// This process's effective user.
pub fn user_id() -> u32 {
    rustix::process::geteuid().as_raw()
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
        if user_id() != 0 {
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
        if user_id() == 0 {
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
