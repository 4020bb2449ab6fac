//! A session's directory, to read from.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use crate::error::Error;
use crate::layout;
use crate::live_lock::Publisher;
use crate::private_dir::{CAREFULLY, PrivateDir, disk_bytes, modified, open_regular};

/// Most files counted in a directory, and the deepest nesting of folders.
const MAX_FILES: usize = 10_000;
const MAX_DEEP: usize = 4;

/// An open directory of a session. It may be anyone's if a person named it; nothing in it is trusted.
#[derive(Debug)]
pub struct SessionDir(OwnedFd);

impl SessionDir {
    /// Opens a directory of any user, also through a link: for one that a person named, or that is in a directory of sessions
    /// that only this user can write to.
    ///
    /// # Errors
    /// If it is not a directory, or cannot be opened.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// What its lock file shows about its publisher. Without the file, or if it cannot be opened, there is no publisher.
    pub fn publisher(&self) -> Publisher {
        self.read(layout::LOCK_FILE).map(|lock| Publisher::read(&lock)).unwrap_or_default()
    }

    /// The numbers of its segments, ascending.
    ///
    /// # Errors
    /// If it cannot be listed.
    pub fn segments(&self) -> Result<Vec<u64>, Error> {
        let mut numbers = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            numbers.extend(entry?.file_name().to_str().ok().and_then(layout::segment_number));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Opens a segment.
    ///
    /// # Errors
    /// If it is missing or not a regular file, or cannot be opened.
    pub fn segment(&self, number: u64) -> Result<File, Error> {
        self.read(&layout::segment_file_name(number))
    }

    /// Opens what is left of dropped segments.
    ///
    /// # Errors
    /// As for [`segment`](Self::segment).
    pub fn past(&self) -> Result<File, Error> {
        self.read(layout::PAST_FILE)
    }

    /// Opens a file with slices of the past.
    ///
    /// # Errors
    /// As for [`segment`](Self::segment).
    pub fn slices(&self, number: u64) -> Result<File, Error> {
        self.read(&layout::slices_file_name(number))
    }

    /// When a segment last grew.
    pub fn modified(&self, number: u64) -> Option<SystemTime> {
        let name = layout::segment_file_name(number);
        rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|found| modified(&found))
    }

    /// The end of the newest segment, at most this many bytes.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn tail(&self, most: u64) -> Result<Vec<u8>, Error> {
        read_tail(self.segment(self.segments()?.pop().ok_or(Error::NoSegments)?)?, most)
    }

    /// Bytes that its files and those of its folders take. Links are not followed.
    pub fn bytes(&self) -> u64 {
        directory_bytes(self.0.as_fd(), MAX_DEEP)
    }

    fn read(&self, name: &str) -> Result<File, Error> {
        Ok(open_regular(&self.0, name, OFlags::RDONLY)?.0)
    }
}

fn directory_bytes(dir: BorrowedFd<'_>, deep: usize) -> u64 {
    let entries = Dir::read_from(dir).into_iter().flatten().flatten().take(MAX_FILES);
    let names =
        entries.map(|entry| entry.file_name().to_owned()).filter(|name| !matches!(name.to_bytes(), b"." | b".."));
    let bytes = names.filter_map(|name| {
        let found = rustix::fs::statat(dir, &name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => Some(disk_bytes(&found)),
            FileType::Directory if deep > 0 => {
                let inner = rustix::fs::openat(dir, &name, OFlags::DIRECTORY | CAREFULLY, Mode::empty()).ok()?;
                Some(directory_bytes(inner.as_fd(), deep - 1))
            }
            _ => None,
        }
    });
    bytes.fold(0, u64::saturating_add)
}

/// The end of a file, at most this many bytes.
pub(crate) fn read_tail(mut file: File, most: u64) -> Result<Vec<u8>, Error> {
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl From<PrivateDir> for SessionDir {
    fn from(dir: PrivateDir) -> Self {
        Self(dir.into())
    }
}

/// Adds a frame to the end of this user's ended session in `dir`, where no one else writes any more.
///
/// # Errors
/// If the session has no segment, is still live, or cannot be written.
pub fn append_to_ended(dir: &Path, frame: &[u8]) -> Result<(), Error> {
    let own = PrivateDir::open(dir)?;
    let session = SessionDir(own.as_fd().try_clone_to_owned()?);
    if session.publisher().alive {
        return Err(Error::Live);
    }
    let newest = session.segments()?.pop().ok_or(Error::NoSegments)?;
    Ok(own.append(&layout::segment_file_name(newest))?.write_all(frame)?)
}
