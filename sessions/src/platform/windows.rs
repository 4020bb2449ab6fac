//! Windows: enough to read sessions that were copied here, and recordings. Who owns a file and who may write to it is not asked:
//! every file counts as this user's. No program publishes a session here.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::entry::{Access, Entry, Kind};
use crate::error::Error;

/// A directory. Its methods take the name of an entry, never a path.
#[derive(Debug)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    /// Opens one that is no link.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        match Entry::from(&fs::symlink_metadata(path)?).kind {
            Kind::Directory => Ok(Self(path.to_owned())),
            Kind::Link => Err(Error::Link),
            _ => Err(Error::NotADirectory),
        }
    }

    /// Opens one that may be a link.
    pub(crate) fn follow(path: &Path) -> Result<Self, Error> {
        Self::open(&fs::canonicalize(path)?)
    }

    /// Creates a directory and its parents.
    pub(crate) fn create(path: &Path) -> Result<(), Error> {
        Ok(fs::create_dir_all(path)?)
    }

    /// Opens a directory in this one that is no link.
    pub(crate) fn dir(&self, name: &OsStr) -> Result<Self, Error> {
        Self::open(&self.0.join(name))
    }

    /// Creates a directory in this one, if there is nothing of that name.
    pub(crate) fn create_dir(&self, name: &OsStr) -> Result<(), Error> {
        let path = self.0.join(name);
        if fs::symlink_metadata(&path).is_err() {
            fs::create_dir(path)?;
        }
        Ok(())
    }

    /// Opens a file that is no link, and says what was opened.
    pub(crate) fn file(&self, name: &OsStr, access: Access) -> Result<(File, Entry), Error> {
        let path = self.0.join(name);
        match fs::symlink_metadata(&path).map(|found| Entry::from(&found).kind) {
            Ok(Kind::Link) => return Err(Error::Link),
            Ok(Kind::Directory | Kind::Other) => return Err(Error::NotAFile),
            Ok(Kind::File) | Err(_) => (),
        }
        let mut options = OpenOptions::new();
        match access {
            Access::Read => options.read(true),
            Access::Overwrite => options.write(true),
            Access::Append => options.append(true),
            Access::OpenOrCreate => options.write(true).create(true).truncate(false),
            Access::Create => options.read(true).write(true).create_new(true),
            Access::CreateLog => options.append(true).create_new(true),
        };
        let file = options.open(path)?;
        let entry = Entry::from(&file.metadata()?);
        Ok((file, entry))
    }

    /// What this is.
    pub(crate) fn about(&self) -> Result<Entry, Error> {
        Ok(Entry::from(&fs::symlink_metadata(&self.0)?))
    }

    /// What an entry is; a link is not followed.
    pub(crate) fn entry(&self, name: &OsStr) -> Result<Entry, Error> {
        Ok(Entry::from(&fs::symlink_metadata(self.0.join(name))?))
    }

    /// Names of all entries, in no order.
    pub(crate) fn names(&self) -> Result<impl Iterator<Item = Result<OsString, Error>>, Error> {
        let entries = fs::read_dir(&self.0)?;
        Ok(entries.map(|entry| entry.map(|entry| entry.file_name()).map_err(Error::from)))
    }

    /// Gives an entry another name, in place of a file that has it.
    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> Result<(), Error> {
        Ok(fs::rename(self.0.join(from), self.0.join(to))?)
    }

    /// Removes a file; of a link the link itself.
    pub(crate) fn remove(&self, name: &OsStr) -> Result<(), Error> {
        Ok(fs::remove_file(self.0.join(name))?)
    }

    /// Removes an empty directory.
    pub(crate) fn remove_dir(&self, name: &OsStr) -> Result<(), Error> {
        Ok(fs::remove_dir(self.0.join(name))?)
    }

    /// Bytes that its file system has in all: not known.
    pub(crate) fn capacity_bytes(&self) -> Option<u64> {
        None
    }
}

impl From<&Metadata> for Entry {
    fn from(found: &Metadata) -> Self {
        let kind = match found.file_type() {
            kind if kind.is_symlink() => Kind::Link,
            kind if kind.is_dir() => Kind::Directory,
            kind if kind.is_file() => Kind::File,
            _ => Kind::Other,
        };
        let modified = found.modified().unwrap_or(UNIX_EPOCH);
        Self { kind, owner: user_id(), is_open_to_others: false, len: found.len(), disk_bytes: found.len(), modified }
    }
}

/// Stands for this user: users have no numbers here.
pub fn user_id() -> u32 {
    0
}

/// Whether another machine's lock on the file would be seen: not known.
pub(crate) fn is_local(_file: &File) -> bool {
    false
}

/// What is created has the rights of its directory.
pub(crate) fn for_this_user(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// No pipe has a name in a directory.
pub(crate) fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}
