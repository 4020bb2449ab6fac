//! Files and directories in places that others can write to. They are opened without following links or blocking, and used
//! only if no other user can have prepared them.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file for reading. Rejects a link, a pipe or a device, none of which can make the call block.
///
/// # Errors
/// If it is not a regular file, or cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    opened(path, OFlags::NOFOLLOW | OFlags::NONBLOCK)
}

/// Like [`open`], but follows links, for files that a person may have linked.
///
/// # Errors
/// As for [`open`].
pub(super) fn open_through_links(path: &Path) -> io::Result<File> {
    opened(path, OFlags::NONBLOCK)
}

fn opened(path: &Path, flags: OFlags) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
    }
}

/// Creates the directory for this user alone if it is missing, and rejects one that others could have prepared or can write to.
///
/// # Errors
/// If it is a link, not a directory, another user's or open to others, or cannot be created.
pub fn private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let found = fs::symlink_metadata(dir)?;
    let reason = refusal(&found).or_else(|| (found.mode() & 0o022 != 0).then(|| "can be written by others".to_owned()));
    reason.map_or(Ok(()), |reason| Err(io::Error::new(io::ErrorKind::PermissionDenied, reason)))
}

/// Why this is not this user's own directory, as text; `None` if it is.
pub(super) fn refusal(found: &Metadata) -> Option<String> {
    if found.is_symlink() {
        Some("is a symbolic link".to_owned())
    } else if !found.is_dir() {
        Some("is not a directory".to_owned())
    } else if found.uid() != user_id() {
        Some(format!("belongs to another user (uid {})", found.uid()))
    } else {
        None
    }
}

/// This process's effective user.
pub fn user_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn links_directories_and_pipes_are_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link, pipe) = (dir.path().join("real"), dir.path().join("link"), dir.path().join("pipe"));
        fs::write(&real, "x").unwrap();
        symlink(&real, &link).unwrap();
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert!(open(&real).is_ok() && open_through_links(&link).is_ok());
        for wrong in [&link, &pipe, &dir.path().to_owned()] {
            assert!(open(wrong).is_err(), "{}", wrong.display());
        }
        assert!(open_through_links(&pipe).is_err());
    }

    #[test]
    fn a_directory_is_made_private_and_one_that_others_can_write_to_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let (dir, link, open) = (temp.path().join("a/b"), temp.path().join("link"), temp.path().join("open"));
        private_dir(&dir).unwrap();
        private_dir(&dir).unwrap();
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
        symlink(&dir, &link).unwrap();
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(private_dir(&link).unwrap_err().to_string().contains("symbolic link"));
        assert!(private_dir(&open).unwrap_err().to_string().contains("written by others"));
    }
}
