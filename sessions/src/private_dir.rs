//! A directory that only this user can have filled, and the files in it.
//!
//! Every name is looked up inside the open directory, so that nothing outside it can be reached, whatever others do to the
//! path in the meantime.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use crate::error::Error;
use crate::platform::{Access, Directory, Entry, Kind, user_id};

/// An open directory of this user's that is no link and that no other user can write to.
///
/// Its methods take the name of an entry, never a path. Files are opened only if they are regular and this user's.
#[derive(Debug)]
pub struct PrivateDir {
    dir: Directory,
    path: PathBuf,
}

impl PrivateDir {
    /// Opens a directory.
    ///
    /// # Errors
    /// If it is missing, or another user could have prepared it.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::checked(Directory::open(path)?, path.to_owned())
    }

    /// Opens a directory; if it is missing, creates it and its parents for this user alone.
    ///
    /// # Errors
    /// If it cannot be created, or another user could have prepared it.
    pub fn create(path: &Path) -> Result<Self, Error> {
        match Self::open(path) {
            Err(error) if error.is_not_found() => {
                Directory::create(path)?;
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
        Self::checked(self.dir.dir(name)?, self.path.join(name))
    }

    /// Opens a directory in this one; if it is missing, creates it for this user alone.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    pub fn create_dir(&self, name: &str) -> Result<Self, Error> {
        self.dir.create_dir(check_name(name)?)?;
        self.dir(name)
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
        self.open_file(name, Access::Read)
    }

    /// Creates a file for this user alone, to write into.
    ///
    /// # Errors
    /// If there is anything of that name, or it cannot be created.
    pub fn create_file(&self, name: &str) -> Result<File, Error> {
        self.open_file(name, Access::Create)
    }

    /// Creates a file for this user alone; everything written goes to its end, even if someone shortens it.
    ///
    /// # Errors
    /// As for [`create_file`](Self::create_file).
    pub fn create_log(&self, name: &str) -> Result<File, Error> {
        self.open_file(name, Access::CreateLog)
    }

    /// Opens a file to which everything written is appended.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn append(&self, name: &str) -> Result<File, Error> {
        self.open_file(name, Access::Append)
    }

    /// Opens a file to write into its content.
    pub(crate) fn overwrite(&self, name: &str) -> Result<File, Error> {
        self.open_file(name, Access::Overwrite)
    }

    /// Opens a file to write into; creates it for this user alone if it is missing. Keeps its content.
    pub(crate) fn open_or_create(&self, name: &str) -> Result<File, Error> {
        self.open_file(name, Access::OpenOrCreate)
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
        self.dir.rename(check_name(from)?, check_name(to)?)
    }

    /// Removes a file; of a link the link itself.
    ///
    /// # Errors
    /// If it is missing or a directory, or the system refuses.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        self.dir.remove(check_name(name)?)
    }

    /// Removes an empty directory.
    pub(crate) fn remove_dir(&self, name: &str) -> Result<(), Error> {
        self.dir.remove_dir(check_name(name)?)
    }

    /// Names of all entries, in no order.
    ///
    /// # Errors
    /// If it cannot be listed.
    pub fn names(&self) -> Result<Vec<OsString>, Error> {
        self.dir.names()?.collect()
    }

    /// When a regular file of this user was last written.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn modified(&self, name: &str) -> Result<SystemTime, Error> {
        Ok(self.file(name)?.modified)
    }

    /// What an entry is; a link is not followed.
    pub(crate) fn entry(&self, name: &OsStr) -> Result<Entry, Error> {
        self.dir.entry(check_name(name)?)
    }

    /// What a regular file of this user is; a link is not followed.
    pub(crate) fn file(&self, name: &str) -> Result<Entry, Error> {
        let found = self.entry(name.as_ref())?;
        check_regular(&found)?;
        check_owner(&found)?;
        Ok(found)
    }

    /// Bytes that its file system has in all, if known.
    pub(crate) fn capacity_bytes(&self) -> Option<u64> {
        self.dir.capacity_bytes()
    }

    /// The directory itself.
    pub(crate) fn directory(&self) -> &Directory {
        &self.dir
    }

    fn checked(dir: Directory, path: PathBuf) -> Result<Self, Error> {
        let found = dir.about()?;
        check_owner(&found)?;
        if found.is_open_to_others {
            return Err(Error::WritableByOthers);
        }
        Ok(Self { dir, path })
    }

    fn open_file(&self, name: &str, access: Access) -> Result<File, Error> {
        let (file, found) = open_regular(&self.dir, name, access)?;
        check_owner(&found)?;
        Ok(file)
    }
}

impl From<PrivateDir> for Directory {
    fn from(dir: PrivateDir) -> Self {
        dir.dir
    }
}

/// Opens a regular file in a directory, whosever it is.
pub(crate) fn open_regular(dir: &Directory, name: &str, access: Access) -> Result<(File, Entry), Error> {
    let (file, found) = dir.file(check_name(name)?, access)?;
    check_regular(&found)?;
    Ok((file, found))
}

fn check_owner(found: &Entry) -> Result<(), Error> {
    if found.owner == user_id() { Ok(()) } else { Err(Error::OtherUser { uid: found.owner }) }
}

fn check_regular(found: &Entry) -> Result<(), Error> {
    match found.kind {
        Kind::File => Ok(()),
        Kind::Link => Err(Error::Link),
        Kind::Directory | Kind::Other => Err(Error::NotAFile),
    }
}

/// A name, if it is of an entry of the directory itself.
fn check_name<N: AsRef<OsStr> + ?Sized>(name: &N) -> Result<&OsStr, Error> {
    let name = name.as_ref();
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(part)), None) if part == name => Ok(name),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "a path instead of a name").into()),
    }
}
