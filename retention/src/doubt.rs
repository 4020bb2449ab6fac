//! Why a directory is left alone.

use std::io;

use rustix::io::Errno;

/// Why a directory is not proved to be a dead session of this user.
#[derive(Debug, thiserror::Error)]
pub enum Doubt {
    /// A process holds its lock.
    #[error("it is live")]
    Live,
    /// It was made a moment ago and has no segment yet.
    #[error("it has no segment yet")]
    Fresh,
    /// A link, or not a directory.
    #[error("it is a symbolic link, or no directory")]
    NoDirectory,
    /// It, or something in it, is another user's.
    #[error("it belongs to another user")]
    Theirs,
    /// There is no lock to check.
    #[error("it has no lock file, so whether it is live is unknown")]
    NoLock,
    /// It contains something that gnntop did not write.
    #[error("it contains {0}, which is not gnntop's")]
    Stranger(String),
    /// Something in it has the name of a file, but is not a file.
    #[error("its {0} is not a file")]
    NoFile(String),
    /// Its first segment cannot be read as one.
    #[error("its first segment does not say whose it is")]
    NoHead,
    /// It was renamed or copied.
    #[error("it does not have the name that its publisher gave it")]
    Renamed,
    /// It is on a file system where another machine's lock would not be seen.
    #[error("another machine may hold a lock on it that is not visible here")]
    Elsewhere,
    /// The system refused.
    #[error("{0}")]
    System(#[from] io::Error),
}

impl From<Errno> for Doubt {
    fn from(error: Errno) -> Self {
        match error {
            Errno::LOOP | Errno::NOTDIR => Self::NoDirectory,
            other => Self::System(other.into()),
        }
    }
}
