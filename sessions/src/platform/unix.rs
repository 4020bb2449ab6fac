//! Unix: every name is looked up inside the open directory, so that nothing outside it can be reached, whatever others do to the
//! path in the meantime.

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::entry::{Access, Entry, Kind};
use crate::error::Error;

/// How everything is opened: no link is followed, no pipe waits for its other end, no program that is executed inherits it.
const CAREFULLY: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
/// Mode of new files: for this user alone.
const PRIVATE_FILE: u32 = 0o600;
/// Mode of new directories: for this user alone.
const PRIVATE_DIR: u32 = 0o700;
/// Unit in which the system counts the blocks of a file, in bytes.
const BLOCK: u64 = 512;

/// An open directory. Its methods take the name of an entry, never a path.
#[derive(Debug)]
pub(crate) struct Directory(OwnedFd);

impl Directory {
    /// Opens one that is no link.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        open_at(CWD, &without_slash(path))
    }

    /// Opens one that may be a link.
    pub(crate) fn follow(path: &Path) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// Creates a directory and its parents.
    pub(crate) fn create(path: &Path) -> Result<(), Error> {
        Ok(DirBuilder::new().recursive(true).mode(PRIVATE_DIR).create(path)?)
    }

    /// Opens a directory in this one that is no link.
    pub(crate) fn dir(&self, name: &OsStr) -> Result<Self, Error> {
        open_at(self.0.as_fd(), Path::new(name))
    }

    /// Creates a directory in this one, if there is nothing of that name.
    pub(crate) fn create_dir(&self, name: &OsStr) -> Result<(), Error> {
        match rustix::fs::mkdirat(&self.0, name, Mode::from_raw_mode(PRIVATE_DIR as _)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file that is no link, and says what was opened.
    pub(crate) fn file(&self, name: &OsStr, access: Access) -> Result<(File, Entry), Error> {
        let flags = match access {
            Access::Read => OFlags::RDONLY,
            Access::Overwrite => OFlags::WRONLY,
            Access::Append => OFlags::WRONLY | OFlags::APPEND,
            Access::OpenOrCreate => OFlags::WRONLY | OFlags::CREATE,
            Access::Create => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
            Access::CreateLog => OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::APPEND,
        };
        let file = rustix::fs::openat(&self.0, name, flags | CAREFULLY, Mode::from_raw_mode(PRIVATE_FILE as _));
        let file = file.map_err(|error| match error {
            Errno::LOOP => Error::Link,
            // A pipe that nobody reads, a socket, or a directory.
            Errno::NXIO | Errno::ISDIR => Error::NotAFile,
            other => other.into(),
        })?;
        let found = rustix::fs::fstat(&file)?;
        Ok((file.into(), Entry::from(&found)))
    }

    /// What this is.
    pub(crate) fn about(&self) -> Result<Entry, Error> {
        Ok(Entry::from(&rustix::fs::fstat(&self.0)?))
    }

    /// What an entry is; a link is not followed.
    pub(crate) fn entry(&self, name: &OsStr) -> Result<Entry, Error> {
        Ok(Entry::from(&rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Names of all entries, in no order.
    pub(crate) fn names(&self) -> Result<impl Iterator<Item = Result<OsString, Error>>, Error> {
        let entries = Dir::read_from(&self.0)?.map(|entry| {
            let name = entry.map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
            name.map_err(Error::from)
        });
        Ok(entries.filter(|name| !name.as_ref().is_ok_and(|name| name == "." || name == "..")))
    }

    /// Gives an entry another name, in place of a file that has it.
    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> Result<(), Error> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    /// Removes a file; of a link the link itself.
    pub(crate) fn remove(&self, name: &OsStr) -> Result<(), Error> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Removes an empty directory.
    pub(crate) fn remove_dir(&self, name: &OsStr) -> Result<(), Error> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Bytes that its file system has in all, if known.
    pub(crate) fn capacity_bytes(&self) -> Option<u64> {
        let found = rustix::fs::fstatvfs(&self.0).ok()?;
        found.f_blocks.checked_mul(found.f_frsize).filter(|bytes| *bytes > 0)
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<&Stat> for Entry {
    fn from(found: &Stat) -> Self {
        let kind = match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Link,
            _ => Kind::Other,
        };
        let len = u64::try_from(found.st_size).unwrap_or(0);
        let taken = u64::try_from(found.st_blocks).unwrap_or(0).saturating_mul(BLOCK);
        let seconds = u64::try_from(found.st_mtime).unwrap_or(0);
        let ns = u32::try_from(found.st_mtime_nsec).unwrap_or(0).min(999_999_999);
        Self {
            kind,
            owner: found.st_uid,
            is_open_to_others: Mode::from_raw_mode(found.st_mode).intersects(Mode::WGRP | Mode::WOTH),
            len,
            disk_bytes: len.min(taken),
            modified: UNIX_EPOCH.checked_add(Duration::new(seconds, ns)).unwrap_or(UNIX_EPOCH),
        }
    }
}

impl From<Errno> for Error {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

/// This process's effective user.
pub fn user_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The identity of a file, device or directory.
pub(crate) fn device_and_inode(file: BorrowedFd<'_>) -> Option<(u64, u64)> {
    let found = rustix::fs::fstat(file).ok()?;
    Some((found.st_dev as _, found.st_ino as _))
}

/// Whether the file is on a file system that no other machine writes to, so that every lock on it is seen here.
#[cfg(target_os = "linux")]
pub(crate) fn is_local(file: &File) -> bool {
    /// From `linux/magic.h`, and ZFS's own: ext2 to ext4, xfs, btrfs, tmpfs, ramfs, overlayfs, f2fs, zfs.
    const LOCAL: [u64; 8] =
        [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0x8584_58F6, 0x794C_7630, 0xF2F5_2010, 0x2FC1_2FC1];
    // The kernel's numbers have 32 bits; how they are widened differs between systems.
    rustix::fs::fstatfs(file).is_ok_and(|found| LOCAL.contains(&(found.f_type as u64 & 0xFFFF_FFFF)))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_local(_file: &File) -> bool {
    false
}

/// Makes what these options create for this user alone.
pub(crate) fn for_this_user(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(PRIVATE_FILE)
}

/// Makes these options open a pipe at once, so that it can be refused.
pub(crate) fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed())
}

fn open_at(inside: BorrowedFd<'_>, name: &Path) -> Result<Directory, Error> {
    let dir = rustix::fs::openat(inside, name, OFlags::RDONLY | OFlags::DIRECTORY | CAREFULLY, Mode::empty());
    let dir = dir.map_err(|error| match error {
        Errno::LOOP | Errno::NOTDIR if is_link(inside, name) => Error::Link,
        Errno::NOTDIR => Error::NotADirectory,
        other => other.into(),
    })?;
    Ok(Directory(dir))
}

fn is_link(inside: BorrowedFd<'_>, name: &Path) -> bool {
    let found = rustix::fs::statat(inside, name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|found| Entry::from(&found).kind == Kind::Link)
}

/// The path without a slash or a dot at its end: with one, the system would follow a link.
fn without_slash(path: &Path) -> PathBuf {
    path.components().collect()
}
