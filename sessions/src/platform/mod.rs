//! Directories and files as the system has them: the one place in this crate that differs between systems. What may be used of
//! them, the rest of the crate decides.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::time::SystemTime;

#[cfg(unix)]
pub(crate) use unix::{Directory, device_and_inode, for_this_user, is_local, without_waiting};
#[cfg(windows)]
pub(crate) use windows::{Directory, for_this_user, is_local, without_waiting};

#[cfg(unix)]
pub use unix::user_id;
#[cfg(windows)]
pub use windows::user_id;

/// What kind of thing has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A regular file.
    File,
    Directory,
    /// A symbolic link.
    Link,
    /// A pipe, a socket or a device.
    Other,
}

/// What the system says of a file or directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    /// The user that it belongs to.
    pub(crate) owner: u32,
    /// Whether other users can write to it.
    pub(crate) is_open_to_others: bool,
    /// Its length in bytes.
    pub(crate) len: u64,
    /// Bytes that it takes on its disk, or its length if that is less: the holes of a sparse file take none.
    pub(crate) disk_bytes: u64,
    /// When it was last written.
    pub(crate) modified: SystemTime,
}

/// How a file is opened. What is created is for this user alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// To read what there is.
    Read,
    /// To write into what there is.
    Overwrite,
    /// To write behind what there is.
    Append,
    /// To write into what there is, or into a new one.
    OpenOrCreate,
    /// To write into a new one, and read it.
    Create,
    /// To write to the end of a new one, even if somebody shortens it.
    CreateLog,
}
