//! Why a file, a directory or a session is not used.

use std::io;
use std::path::PathBuf;

/// Why a file, a directory or a session is not used. The messages follow its name, as in "`/tmp/x` is a symbolic link";
/// [`Error::SessionsDir`] alone has the name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A symbolic link: what it points to could be anyone's.
    #[error("is a symbolic link")]
    Link,
    /// Something else instead of a directory.
    #[error("is not a directory")]
    NotADirectory,
    /// A directory, a pipe, a socket or a device instead of a file.
    #[error("is not a regular file")]
    NotAFile,
    /// It belongs to another user.
    #[error("belongs to another user (uid {uid})")]
    OtherUser {
        /// Its owner.
        uid: u32,
    },
    /// Other users can create and rename files in it.
    #[error("can be written by other users")]
    WritableByOthers,
    /// Something in it is not as it must be.
    #[error("contains {name}, which {error}")]
    Inside {
        /// Its name, safe to show.
        name: String,
        /// What is wrong with it.
        error: Box<Error>,
    },
    /// It contains something that gnntop did not write.
    #[error("contains {name}, which is not gnntop's")]
    Unknown {
        /// Its name, safe to show.
        name: String,
    },
    /// A process holds the session's lock.
    #[error("is live")]
    Live,
    /// The session was created a moment ago and has no segment yet.
    #[error("has no segment yet")]
    Starting,
    /// There is no lock to check.
    #[error("has no lock file, so whether it is live is unknown")]
    NoLock,
    /// There is no segment.
    #[error("has no segments")]
    NoSegments,
    /// Nothing was written into its segments yet.
    #[error("is still empty")]
    Empty,
    /// It was written by a newer gnntop.
    #[error("is written in the newer format {major}: update gnntop")]
    Newer {
        /// The format's major version.
        major: u64,
    },
    /// The directory of all sessions cannot be used.
    #[error("the sessions directory {} {error}; set GNNTOP_DIR to a directory of your own", path.display())]
    SessionsDir {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        error: Box<Error>,
    },
    /// Its first segment does not begin with a description of the session.
    #[error("does not start like a session")]
    NotASession,
    /// The session was renamed or copied.
    #[error("does not have the name that its publisher gave it")]
    Renamed,
    /// The session is on a file system where another machine's lock would not be seen.
    #[error("may be locked by another machine, which is not visible here")]
    Elsewhere,
    /// Somebody else waits for an answer of the session's program.
    #[error("has a request already")]
    Requested,
    /// The system refused.
    #[error("cannot be accessed: {0}")]
    Io(#[from] io::Error),
}

impl Error {
    /// This error, of a file with this name in the directory that is reported.
    pub(crate) fn inside(self, name: &str) -> Self {
        Self::Inside { name: gnntop_wire::text::clean(name.as_bytes()), error: Box::new(self) }
    }

    /// Whether there is nothing of that name.
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::Io(error) => error.kind() == io::ErrorKind::NotFound,
            Self::Inside { error, .. } => error.is_not_found(),
            _ => false,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Io(error) => error,
            other => Self::new(io::ErrorKind::PermissionDenied, other),
        }
    }
}
