//! A directory that only this user can have filled, and the files in it.
//!
//! Every name is looked up inside the open directory, so that nothing outside it can be reached, whatever others do to the
//! path in the meantime.

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::error::Error;
use crate::held_file::{Identity, device_and_inode};

/// How everything is opened: no link is followed, no pipe waits for its other end, no program that is executed inherits it.
pub(crate) const CAREFULLY: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
/// Mode of new files: for this user alone.
const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);
/// Mode of new directories: for this user alone.
const PRIVATE_DIR: u32 = 0o700;
/// Unit in which the system counts the blocks of a file, in bytes.
const BLOCK: u64 = 512;

/// A [`PrivateDir`] between two uses. It is opened by its name each time, since nothing is held that need not be: the program
/// may close what we hold (see [`HeldFile`](crate::HeldFile)).
#[derive(Clone, Debug)]
pub struct NamedDir {
    path: PathBuf,
    identity: Identity,
}

impl NamedDir {
    /// Opens the directory.
    ///
    /// # Errors
    /// As for [`PrivateDir::open`], and if there is another directory of its name now.
    pub fn open(&self) -> Result<PrivateDir, Error> {
        let dir = PrivateDir::open(&self.path)?;
        if device_and_inode(dir.as_fd()) == Some(self.identity) { Ok(dir) } else { Err(Errno::NOENT.into()) }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// An open directory of this user's that is no link and that no other user can write to.
///
/// Its methods take the name of an entry, never a path. Files are opened only if they are regular and this user's.
#[derive(Debug)]
pub struct PrivateDir {
    dir: OwnedFd,
    path: PathBuf,
}

impl PrivateDir {
    /// Opens a directory.
    ///
    /// # Errors
    /// If it is missing, or another user could have prepared it.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::open_at(CWD, &without_slash(path), path.to_owned())
    }

    /// Opens a directory; if it is missing, creates it and its parents for this user alone.
    ///
    /// # Errors
    /// If it cannot be created, or another user could have prepared it.
    pub fn create(path: &Path) -> Result<Self, Error> {
        match Self::open(path) {
            Err(error) if error.is_not_found() => {
                DirBuilder::new().recursive(true).mode(PRIVATE_DIR).create(path)?;
                Self::open(path)
            }
            opened => opened,
        }
    }

    /// Opens a directory in this one.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn dir(&self, name: impl AsRef<OsStr>) -> Result<Self, Error> {
        let name = check_name(name.as_ref())?;
        Self::open_at(self.dir.as_fd(), Path::new(name), self.path.join(name))
    }

    /// Opens a directory in this one; if it is missing, creates it for this user alone.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    pub fn create_dir(&self, name: &str) -> Result<Self, Error> {
        match rustix::fs::mkdirat(&self.dir, check_name(name)?, Mode::from_raw_mode(PRIVATE_DIR as _)) {
            Ok(()) | Err(Errno::EXIST) => self.dir(name),
            Err(error) => Err(error.into()),
        }
    }

    /// Its name, to open it again.
    ///
    /// # Errors
    /// If the current directory is gone and the path relative to it.
    pub fn named(&self) -> Result<NamedDir, Error> {
        let identity = device_and_inode(self.as_fd()).ok_or(Errno::BADF)?;
        Ok(NamedDir { path: std::path::absolute(&self.path)?, identity })
    }

    /// Its path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// If it is missing, a link, not a regular file, or another user's.
    pub fn read(&self, name: &str) -> Result<File, Error> {
        self.open_file(name, OFlags::RDONLY)
    }

    /// Creates a file for this user alone, to write into.
    ///
    /// # Errors
    /// If there is anything of that name, or it cannot be created.
    pub fn create_file(&self, name: &str) -> Result<File, Error> {
        self.open_file(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
    }

    /// Creates a file for this user alone; everything written goes to its end, even if someone shortens it.
    ///
    /// # Errors
    /// As for [`create_file`](Self::create_file).
    pub fn create_log(&self, name: &str) -> Result<File, Error> {
        self.open_file(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::APPEND)
    }

    /// Opens a file to which everything written is appended.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn append(&self, name: &str) -> Result<File, Error> {
        self.open_file(name, OFlags::WRONLY | OFlags::APPEND)
    }

    /// Opens a file to write into its content.
    pub(crate) fn overwrite(&self, name: &str) -> Result<File, Error> {
        self.open_file(name, OFlags::WRONLY)
    }

    /// Opens a file to write into; creates it for this user alone if it is missing. Keeps its content.
    pub(crate) fn open_or_create(&self, name: &str) -> Result<File, Error> {
        self.open_file(name, OFlags::WRONLY | OFlags::CREATE)
    }

    /// Writes a file that appears at once and whole under its name, in place of an earlier one. `unfinished` is its name
    /// until then.
    ///
    /// # Errors
    /// If it cannot be written. An earlier file is then as it was.
    pub fn replace(&self, name: &str, unfinished: &str, bytes: &[u8]) -> Result<(), Error> {
        let _ = self.remove(unfinished);
        self.create_file(unfinished)?.write_all(bytes)?;
        self.rename(unfinished, name)
    }

    /// Gives an entry another name, in place of a file that has it.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        Ok(rustix::fs::renameat(&self.dir, check_name(from)?, &self.dir, check_name(to)?)?)
    }

    /// Removes a file; of a link the link itself.
    ///
    /// # Errors
    /// If it is missing or a directory, or the system refuses.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        Ok(rustix::fs::unlinkat(&self.dir, check_name(name)?, AtFlags::empty())?)
    }

    /// Removes an empty directory.
    pub(crate) fn remove_dir(&self, name: &str) -> Result<(), Error> {
        Ok(rustix::fs::unlinkat(&self.dir, check_name(name)?, AtFlags::REMOVEDIR)?)
    }

    /// Names of all entries, in no order.
    ///
    /// # Errors
    /// If it cannot be listed.
    pub fn names(&self) -> Result<Vec<OsString>, Error> {
        let mut names = Vec::new();
        for entry in self.entries()? {
            names.extend(check_name(OsStr::from_bytes(entry?.file_name().to_bytes())).map(OsStr::to_owned).ok());
        }
        Ok(names)
    }

    /// When a regular file of this user was last written.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn modified(&self, name: &str) -> Result<SystemTime, Error> {
        Ok(modified(&self.file_stat(name)?))
    }

    /// All entries, and the two that every directory has.
    pub(crate) fn entries(&self) -> Result<Dir, Error> {
        Ok(Dir::read_from(&self.dir)?)
    }

    /// What an entry is; a link is not followed.
    pub(crate) fn stat(&self, name: &OsStr) -> Result<Stat, Error> {
        Ok(rustix::fs::statat(&self.dir, check_name(name)?, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// What a regular file of this user is; a link is not followed.
    pub(crate) fn file_stat(&self, name: &str) -> Result<Stat, Error> {
        let found = self.stat(name.as_ref())?;
        check_regular(&found)?;
        check_owner(&found)?;
        Ok(found)
    }

    /// Bytes that its file system has in all, if known.
    pub(crate) fn capacity_bytes(&self) -> Option<u64> {
        let found = rustix::fs::fstatvfs(&self.dir).ok()?;
        found.f_blocks.checked_mul(found.f_frsize).filter(|bytes| *bytes > 0)
    }

    fn open_at(inside: BorrowedFd<'_>, name: &Path, path: PathBuf) -> Result<Self, Error> {
        let dir = rustix::fs::openat(inside, name, OFlags::RDONLY | OFlags::DIRECTORY | CAREFULLY, Mode::empty());
        let dir = dir.map_err(|error| match error {
            Errno::LOOP | Errno::NOTDIR if is_link(inside, name) => Error::Link,
            Errno::NOTDIR => Error::NotADirectory,
            other => other.into(),
        })?;
        let found = rustix::fs::fstat(&dir)?;
        check_owner(&found)?;
        if Mode::from_raw_mode(found.st_mode).intersects(Mode::WGRP | Mode::WOTH) {
            return Err(Error::WritableByOthers);
        }
        Ok(Self { dir, path })
    }

    fn open_file(&self, name: &str, flags: OFlags) -> Result<File, Error> {
        let (file, found) = open_regular(&self.dir, name, flags)?;
        check_owner(&found)?;
        Ok(file)
    }
}

impl AsFd for PrivateDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}

impl From<PrivateDir> for OwnedFd {
    fn from(dir: PrivateDir) -> Self {
        dir.dir
    }
}

/// Opens a regular file in a directory, whosever it is.
pub(crate) fn open_regular(dir: &OwnedFd, name: &str, flags: OFlags) -> Result<(File, Stat), Error> {
    let file = rustix::fs::openat(dir, check_name(name)?, flags | CAREFULLY, PRIVATE_FILE);
    let file = file.map_err(|error| match error {
        Errno::LOOP => Error::Link,
        // A pipe that nobody reads, a socket, or a directory.
        Errno::NXIO | Errno::ISDIR => Error::NotAFile,
        other => other.into(),
    })?;
    let found = rustix::fs::fstat(&file)?;
    check_regular(&found)?;
    Ok((file.into(), found))
}

/// This process's effective user.
pub fn user_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn check_owner(found: &Stat) -> Result<(), Error> {
    let uid = found.st_uid;
    if uid == user_id() { Ok(()) } else { Err(Error::OtherUser { uid }) }
}

fn check_regular(found: &Stat) -> Result<(), Error> {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Symlink => Err(Error::Link),
        _ => Err(Error::NotAFile),
    }
}

/// Bytes that a file takes on its disk, or its length if that is less: the holes of a sparse file take none.
pub(crate) fn disk_bytes(found: &Stat) -> u64 {
    let taken = u64::try_from(found.st_blocks).unwrap_or(0).saturating_mul(BLOCK);
    u64::try_from(found.st_size).unwrap_or(0).min(taken)
}

/// When something was last written.
pub(crate) fn modified(found: &Stat) -> SystemTime {
    let (seconds, ns) = (u64::try_from(found.st_mtime).unwrap_or(0), u32::try_from(found.st_mtime_nsec).unwrap_or(0));
    UNIX_EPOCH.checked_add(Duration::new(seconds, ns.min(999_999_999))).unwrap_or(UNIX_EPOCH)
}

/// A name, if it is of an entry of the directory itself.
pub(crate) fn check_name<N: AsRef<OsStr> + ?Sized>(name: &N) -> Result<&OsStr, Error> {
    let name = name.as_ref();
    let is_plain = !matches!(name.as_bytes(), b"" | b"." | b"..") && !name.as_bytes().contains(&b'/');
    if is_plain {
        Ok(name)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "a path instead of a name").into())
    }
}

/// The path without a slash or a dot at its end: with one, the system would follow a link.
fn without_slash(path: &Path) -> PathBuf {
    path.components().collect()
}

fn is_link(inside: BorrowedFd<'_>, name: &Path) -> bool {
    let found = rustix::fs::statat(inside, name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink)
}
