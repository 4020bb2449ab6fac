//! A file that stays open in somebody else's program.
//!
//! The program may close any descriptor at any time, as `os.closerange(3, 4096)` does, and then get the same number for a file
//! of its own. So a number is ours only as long as what it opens is what we have opened. A moment remains between that question
//! and the use. In it, the program would have to close our file and then open 1,000 of its own.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::io::{Errno, fcntl_dupfd_cloexec};

use crate::error::Error;
use crate::limits::Limit;
use crate::platform::device_and_inode;
use crate::private_dir::PrivateDir;

/// Our numbers begin here, since the system gives a program the lowest free ones.
const HIGH: u64 = 1000;
/// Below this limit on open files, the program needs each number more than we do.
const FEW: u64 = 64;

/// What tells an open file from another.
pub type Identity = (u64, u64);

/// An open file that is used and closed only while its number is its own.
#[derive(Debug)]
pub struct HeldFile {
    /// Not closed by itself, as the number may be another file's by then.
    file: ManuallyDrop<File>,
    identity: Identity,
    identify: fn(BorrowedFd<'_>) -> Option<Identity>,
}

impl HeldFile {
    /// Holds a file that was just opened, under a high number if the limit on open files allows it.
    ///
    /// # Errors
    /// If its number is already not its own any more.
    pub fn new(file: File) -> io::Result<Self> {
        Self::identified_by(device_and_inode, file)
    }

    /// Holds something without an inode of its own, which `identify` tells from all else.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn identified_by(identify: fn(BorrowedFd<'_>) -> Option<Identity>, file: File) -> io::Result<Self> {
        let identity = identify(file.as_fd());
        let file = ManuallyDrop::new(file);
        let low = Self { identity: identity.ok_or(Errno::BADF)?, identify, file };
        let Ok(high) = fcntl_dupfd_cloexec(low.file.as_fd(), high_number()) else { return Ok(low) };
        let high = Self { identity: low.identity, identify, file: ManuallyDrop::new(high.into()) };
        if high.get().is_some() { Ok(high) } else { Err(Errno::BADF.into()) }
    }

    /// The file, while its number is its own; to be asked immediately before each use.
    pub fn get(&self) -> Option<&File> {
        self.is_same(&self.file).then_some(&*self.file)
    }

    /// The file; opened by `open` if its number is not its own any more.
    ///
    /// # Errors
    /// If it cannot be opened, or `open` opens another file than this was.
    pub fn get_or_open(&mut self, open: impl FnOnce() -> io::Result<File>) -> io::Result<&File> {
        if self.get().is_none() {
            let again = Self::identified_by(self.identify, open()?)?;
            if again.identity != self.identity {
                return Err(io::Error::other("there is another file of this name now"));
            }
            *self = again;
        }
        Ok(&self.file)
    }

    fn is_same(&self, other: &File) -> bool {
        (self.identify)(other.as_fd()) == Some(self.identity)
    }
}

impl Drop for HeldFile {
    fn drop(&mut self) {
        if self.get().is_some() {
            // SAFETY: the file is dropped only here, and not used after this.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

/// A [`PrivateDir`] between two uses. It is opened by its name each time, since nothing is held that need not be: the program
/// may close what we hold (see [`HeldFile`]).
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
        let identity = device_and_inode(dir.directory().as_fd());
        if identity == Some(self.identity) { Ok(dir) } else { Err(Errno::NOENT.into()) }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl PrivateDir {
    /// Its name, to open it again.
    ///
    /// # Errors
    /// If the current directory is gone and the path relative to it.
    pub fn named(&self) -> Result<NamedDir, Error> {
        let identity = device_and_inode(self.directory().as_fd()).ok_or(Errno::BADF)?;
        Ok(NamedDir { path: std::path::absolute(self.path())?, identity })
    }
}

/// Whether the program may have so few files open that what can be opened again should not stay open.
pub fn has_few_numbers() -> bool {
    Limit::OpenFiles.current().is_some_and(|limit| limit < FEW)
}

/// Where to look for a free number: below the limit on open files, even if that is low.
fn high_number() -> i32 {
    match Limit::OpenFiles.current() {
        Some(limit) if limit <= HIGH => (limit / 4 * 3) as i32,
        _ => HIGH as i32,
    }
}
