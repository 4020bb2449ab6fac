//! The directory of all sessions: creates it, and checks it before trusting it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use gnntop_wire::layout;

use crate::warning::Warning;

/// The directory of all of this user's sessions.
pub(crate) fn sessions_dir() -> PathBuf {
    layout::sessions_dir(|name: &str| -> Option<OsString> { std::env::var_os(name) }, &std::env::temp_dir(), user_id())
}

/// This process's effective user.
pub(crate) fn user_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Creates the directory if it is missing, and rejects one that another user could have prepared.
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

/// Creates a directory and its missing parents, accessible to this user only.
pub(crate) fn make(dir: &Path) -> Result<(), Warning> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|error| Warning::Write { path: dir.to_owned(), error })
}

/// Creates a file that only this user can access. Never follows a link, never opens an existing file.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path)
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
}
