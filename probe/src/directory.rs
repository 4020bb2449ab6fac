//! The directory of all sessions: made, checked before it is trusted, and kept from growing without end.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use gnntop_wire::layout;

use crate::warning::Warning;

/// Sessions of dead processes are kept this long, so that what killed them can still be looked at.
const KEEP_ENDED: Duration = Duration::from_secs(24 * 3600);
/// Ended sessions together take at most this much; the oldest go first.
const KEEP_ENDED_BYTES: u64 = 1 << 30;

/// The directory of all sessions of this user.
pub(crate) fn sessions_dir() -> PathBuf {
    layout::sessions_dir(|name: &str| -> Option<OsString> { std::env::var_os(name) }, &std::env::temp_dir(), user_id())
}

fn user_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Makes the directory where it is missing and refuses one that another user could have prepared for us.
pub(crate) fn prepare(dir: &Path) -> Result<(), Warning> {
    let refuse = |problem| Warning::Directory { path: dir.to_owned(), problem };
    if fs::symlink_metadata(dir).is_err() {
        make(dir)?;
    }
    let found = fs::symlink_metadata(dir).map_err(|error| Warning::Write { path: dir.to_owned(), error })?;
    if found.is_symlink() {
        return Err(refuse("is a symbolic link"));
    }
    if !found.is_dir() {
        return Err(refuse("is not a directory"));
    }
    if found.uid() != user_id() {
        return Err(refuse("belongs to another user"));
    }
    if found.mode() & 0o022 != 0 {
        return Err(refuse("can be written by other users"));
    }
    Ok(())
}

/// Makes a directory, and its missing parents, for this user alone.
pub(crate) fn make(dir: &Path) -> Result<(), Warning> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|error| Warning::Write { path: dir.to_owned(), error })
}

/// Removes sessions of dead processes that are too old or too many. Whatever cannot be read or removed stays.
pub(crate) fn prune(dir: &Path, now: SystemTime) {
    prune_to(dir, now, KEEP_ENDED, KEEP_ENDED_BYTES);
}

fn prune_to(dir: &Path, now: SystemTime, keep: Duration, keep_bytes: u64) {
    let mut ended: Vec<Ended> = fs::read_dir(dir).into_iter().flatten().flatten().filter_map(|e| ended(&e)).collect();
    ended.sort_by_key(|session| std::cmp::Reverse(session.last_written));
    let mut bytes = 0;
    for session in ended {
        bytes += session.bytes;
        let age = now.duration_since(session.last_written).unwrap_or_default();
        if age > keep || bytes > keep_bytes {
            let _ = remove(&session.path);
        }
    }
}

/// A session whose publisher is gone.
struct Ended {
    path: PathBuf,
    bytes: u64,
    last_written: SystemTime,
}

/// The session in this directory entry, if it is one of ours and nobody holds its lock.
fn ended(entry: &fs::DirEntry) -> Option<Ended> {
    if !entry.file_type().ok()?.is_dir() {
        return None;
    }
    let path = entry.path();
    let lock = File::open(path.join(layout::LOCK_FILE)).ok()?;
    lock.try_lock_shared().ok()?;
    let mut session = Ended { last_written: lock.metadata().ok()?.modified().ok()?, path, bytes: 0 };
    for file in fs::read_dir(&session.path).ok()?.flatten() {
        let found = file.metadata().ok()?;
        session.bytes += found.len();
        session.last_written = session.last_written.max(found.modified().ok()?);
    }
    Some(session)
}

/// Removes a session: its segments and lock, then the directory if nothing else lies in it.
fn remove(session: &Path) -> io::Result<()> {
    for file in fs::read_dir(session)?.flatten() {
        let name = file.file_name();
        let ours = name == layout::LOCK_FILE || name.to_str().is_some_and(|n| layout::segment_number(n).is_some());
        if ours {
            fs::remove_file(file.path())?;
        }
    }
    fs::remove_dir(session)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_new_directory_is_ours_alone() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("a/b");
        prepare(&dir).unwrap();
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
        prepare(&dir).unwrap();
    }

    #[test]
    fn what_others_could_have_prepared_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let (link, file, open) = (temp.path().join("link"), temp.path().join("file"), temp.path().join("open"));
        symlink(temp.path(), &link).unwrap();
        fs::write(&file, "").unwrap();
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        for (dir, word) in [(link, "symbolic link"), (file, "not a directory"), (open, "written by other users")] {
            let warning = prepare(&dir).unwrap_err().to_string();
            assert!(warning.contains(word), "{warning}");
        }
    }

    #[test]
    fn old_and_oversized_ended_sessions_go_and_live_ones_stay() {
        let temp = tempfile::tempdir().unwrap();
        let session = |name: &str, bytes: usize| {
            let dir = temp.path().join(name);
            fs::create_dir(&dir).unwrap();
            let lock = File::create(dir.join(layout::LOCK_FILE)).unwrap();
            fs::write(dir.join(layout::segment_file_name(0)), vec![0; bytes]).unwrap();
            lock
        };
        let live = session("live-one", 1000);
        live.lock().unwrap();
        session("old", 10);
        session("newer", 10);
        let _ = fs::create_dir(temp.path().join("not a session"));
        let exists = |name: &str| temp.path().join(name).exists();

        prune_to(temp.path(), SystemTime::now(), KEEP_ENDED, 10);
        assert!(exists("live-one") && exists("not a session"));
        assert_eq!(u8::from(exists("old")) + u8::from(exists("newer")), 1, "10 bytes are one session");
        prune_to(temp.path(), SystemTime::now() + KEEP_ENDED * 2, KEEP_ENDED, 1000);
        assert!(exists("live-one") && !exists("old") && !exists("newer"));
    }
}
