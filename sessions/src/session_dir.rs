//! A session's directory, to read from.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::SystemTime;

use crate::error::Error;
use crate::heartbeat::Heartbeat;
use crate::layout;
use crate::platform::{Access, Directory, Entry, Kind};
use crate::private_dir::{PrivateDir, open_regular};
use crate::publisher::Publisher;

/// Most files counted in a directory, and the deepest nesting of folders.
const MAX_FILES: usize = 10_000;
const MAX_DEEP: usize = 4;

/// An open directory of a session. It may be anyone's if a person named it; nothing in it is trusted.
#[derive(Debug)]
pub struct SessionDir(Directory);

impl SessionDir {
    /// Opens a directory of any user, also through a link: for one that a person named, or that is in a directory of sessions
    /// that only this user can write to.
    ///
    /// # Errors
    /// If it is not a directory, or cannot be opened.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self(Directory::follow(path)?))
    }

    /// Opens a directory of any user in an open one; a link is not followed.
    pub(crate) fn in_directory(all: &Directory, name: &OsStr) -> Result<Self, Error> {
        Ok(Self(all.dir(name)?))
    }

    /// The user whom it belongs to.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn owner(&self) -> Result<u32, Error> {
        Ok(self.0.about()?.owner)
    }

    /// What its lock file shows about its publisher, or in a copy its heartbeat. Without these files, or if they cannot be
    /// opened, there is no publisher.
    pub fn publisher(&self) -> Publisher {
        publisher(&self.0)
    }

    /// The numbers of its segments, ascending.
    ///
    /// # Errors
    /// If it cannot be listed.
    pub fn segments(&self) -> Result<Vec<u64>, Error> {
        segments(&self.0)
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
        self.0.entry(name.as_ref()).ok().map(|found| found.modified)
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
        directory_bytes(&self.0, MAX_DEEP)
    }

    /// The names of the files that are its stream: segments and what is left of dropped ones, without the past itself, which
    /// is replaced and does not grow. Ascending.
    pub(crate) fn stream_files(&self) -> Result<Vec<String>, Error> {
        let names = self.0.names()?.collect::<Result<Vec<_>, _>>()?;
        let mut files: Vec<String> = names.into_iter().filter_map(|name| name.into_string().ok()).collect();
        files.retain(|name| layout::grows(name));
        files.sort_unstable();
        Ok(files)
    }

    /// What an entry is; a link is not followed.
    pub(crate) fn entry(&self, name: &str) -> Result<Entry, Error> {
        self.0.entry(name.as_ref())
    }

    /// Opens a regular file of it.
    pub(crate) fn read(&self, name: &str) -> Result<File, Error> {
        Ok(open_regular(&self.0, name, Access::Read)?.0)
    }
}

fn publisher(session: &Directory) -> Publisher {
    if let Ok((lock, _)) = open_regular(session, layout::LOCK_FILE, Access::Read) {
        return Publisher::read(&lock);
    }
    Heartbeat::read(session).map(|heartbeat| heartbeat.publisher(SystemTime::now())).unwrap_or_default()
}

fn segments(session: &Directory) -> Result<Vec<u64>, Error> {
    let mut numbers = Vec::new();
    for name in session.names()? {
        numbers.extend(name?.to_str().and_then(layout::segment_number));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn directory_bytes(dir: &Directory, deep: usize) -> u64 {
    let names = dir.names().into_iter().flatten().flatten().take(MAX_FILES);
    let bytes = names.filter_map(|name| {
        let found = dir.entry(&name).ok()?;
        match found.kind {
            Kind::File => Some(found.disk_bytes),
            Kind::Directory if deep > 0 => Some(directory_bytes(&dir.dir(&name).ok()?, deep - 1)),
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
    if publisher(own.directory()).alive {
        return Err(Error::Live);
    }
    let newest = segments(own.directory())?.pop().ok_or(Error::NoSegments)?;
    Ok(own.append(&layout::segment_file_name(newest))?.write_all(frame)?)
}
