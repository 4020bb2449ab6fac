//! Kinds of files, whether two are the same, and what an old file leaves to its successor.

use std::fs::{self, File, FileType, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Where the keys of the controlling terminal come from, whatever standard input is.
pub const TERMINAL: &str = "/dev/tty";

/// What is created can be read by this user alone.
pub fn for_this_user(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// Whether what is written there goes through: a device, a pipe or a socket, which hold nothing to lose.
pub fn goes_through(kind: FileType) -> bool {
    kind.is_char_device() || kind.is_fifo() || kind.is_socket() || kind.is_block_device()
}

/// Whether it is a pipe with a name.
pub fn is_pipe(kind: FileType) -> bool {
    kind.is_fifo()
}

/// Whether it is a device such as a terminal.
pub fn is_device(kind: FileType) -> bool {
    kind.is_char_device()
}

/// Whether it belongs to this user.
pub fn is_own(found: &Metadata) -> bool {
    found.uid() == gnntop_sessions::user_id()
}

/// Gives a file the permissions of an older one.
///
/// # Errors
/// If the system refuses.
pub fn take_over_permissions(file: &File, old: &Metadata) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(old.mode() & 0o777))
}

/// Whether both paths lead to one file.
pub fn is_same(path: &Path, other: &Path) -> bool {
    are_same(fs::metadata(path), fs::metadata(other))
}

/// Whether the path leads to the file behind standard input.
pub fn is_input(path: &Path) -> bool {
    let input = io::stdin().as_fd().try_clone_to_owned().and_then(|stdin| File::from(stdin).metadata());
    are_same(input, fs::metadata(path))
}

/// Whether the path leads to this open file.
pub fn leads_to(path: &Path, file: &File) -> bool {
    are_same(fs::metadata(path), file.metadata())
}

fn are_same(one: io::Result<Metadata>, other: io::Result<Metadata>) -> bool {
    let id = |found: Metadata| (found.dev(), found.ino());
    one.is_ok_and(|one| other.is_ok_and(|other| id(one) == id(other)))
}
