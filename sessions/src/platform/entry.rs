//! What every system says of a file, and the ways to open one. Apart from what uses it: each system's file does.

use std::time::SystemTime;

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
