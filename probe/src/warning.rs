//! The one thing a publisher ever says to its program: that it cannot publish, and why.

use std::io;
use std::path::PathBuf;

/// Why nothing is published (any more). The program itself goes on as if nothing had happened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// The directory for sessions cannot be used.
    #[error("gnntop does not publish: {path} {problem}; set GNNTOP_DIR to a directory of your own", path = path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it, to be read after its name.
        problem: &'static str,
    },
    /// A file or directory cannot be made or written.
    #[error("gnntop does not publish: cannot write {path}: {error}", path = path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A recording would overwrite a file.
    #[error("gnntop does not record: {path} exists already", path = path.display())]
    RecordingExists {
        /// The file.
        path: PathBuf,
    },
    /// A thread could not be started.
    #[error("gnntop does not publish: cannot start a thread: {error}")]
    Thread {
        /// What the system says.
        error: io::Error,
    },
}
