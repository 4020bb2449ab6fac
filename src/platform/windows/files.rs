//! Kinds of files, whether two are the same, and what an old file leaves to its successor.

use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// Where the keys of the console come from, whatever standard input is.
pub const TERMINAL: &str = "CONIN$";

/// What is created has the rights of its directory.
pub fn for_this_user(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Whether what is written there goes through: what is neither a file nor a directory, such as a device.
pub fn goes_through(kind: FileType) -> bool {
    !kind.is_file() && !kind.is_dir()
}

/// No pipe has a name in a directory.
pub fn is_pipe(_kind: FileType) -> bool {
    false
}

/// Whether it is a device: not known.
pub fn is_device(_kind: FileType) -> bool {
    false
}

/// Every file counts as this user's.
pub fn is_own(_found: &Metadata) -> bool {
    true
}

/// What is created has the rights of its directory.
///
/// # Errors
/// Never.
pub fn take_over_permissions(_file: &File, _old: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Whether both paths lead to one file.
pub fn is_same(path: &Path, other: &Path) -> bool {
    fs::canonicalize(path).is_ok_and(|path| fs::canonicalize(other).is_ok_and(|other| path == other))
}

/// Whether the path leads to the file behind standard input: not known.
pub fn is_input(_path: &Path) -> bool {
    false
}

/// Whether the path leads to this open file: it leads to one. Which one is not known.
pub fn leads_to(path: &Path, _file: &File) -> bool {
    path.is_file()
}
