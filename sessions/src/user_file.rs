//! Files that a person names, such as recordings. They may be anyone's and anywhere.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use crate::error::Error;
use crate::platform::{for_this_user, without_waiting};

/// Opens a regular file for reading. Follows links, which the person may have made, and does not wait for a pipe.
///
/// # Errors
/// If it is not a regular file, or cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    regular(OpenOptions::new().read(true), path)
}

/// Creates a file for this user alone, to write into.
///
/// # Errors
/// If there is anything of that name, or it cannot be created.
pub fn create(path: &Path) -> io::Result<File> {
    for_this_user(OpenOptions::new().write(true).create_new(true)).open(path)
}

/// Creates a file for this user alone; everything written goes to its end.
///
/// # Errors
/// As for [`create`].
pub fn create_log(path: &Path) -> io::Result<File> {
    for_this_user(OpenOptions::new().append(true).create_new(true)).open(path)
}

/// Opens a regular file to which everything written is appended.
///
/// # Errors
/// As for [`open`].
pub fn append(path: &Path) -> io::Result<File> {
    regular(OpenOptions::new().append(true), path)
}

fn regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = without_waiting(options).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, Error::NotAFile))
    }
}
