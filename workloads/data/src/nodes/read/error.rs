//! Errors in the files of a graph.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::files::FileError;

/// Why no graph can be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A file or directory cannot be opened or read.
    #[error(transparent)]
    Unreadable(#[from] FileError),
    /// A line that does not have the layout, or names what does not exist.
    #[error("{}, line {line}: {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line in the file, from 1.
        line: u64,
        /// What was expected, and what was found.
        problem: String,
    },
    /// A file that is wrong as a whole.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was expected, and what was found.
        problem: String,
    },
    /// An array of an npz file is wrong.
    #[error("{}, array {array}: {problem}", path.display())]
    Array {
        /// The file.
        path: PathBuf,
        /// Name of the array, without `.npy`.
        array: String,
        /// What was expected, and what was found.
        problem: String,
    },
    /// There is no file of a known layout.
    #[error("no graph found at {}; looked for {looked_for}", path.display())]
    NotFound {
        /// The file or directory.
        path: PathBuf,
        /// The files of every known layout.
        looked_for: String,
    },
    /// One file of a layout exists, but not the other.
    #[error("{} exists, but {} does not; both are needed", path.display(), missing.display())]
    Incomplete {
        /// The existing file.
        path: PathBuf,
        /// The one that is not.
        missing: PathBuf,
    },
    /// There is more than one graph.
    #[error("{} has more than one graph: {candidates}; give one of these files instead", path.display())]
    Ambiguous {
        /// The directory.
        path: PathBuf,
        /// The first file of each.
        candidates: String,
    },
}

impl ReadError {
    pub(super) fn file(path: &Path, problem: impl Into<String>) -> Self {
        Self::File { path: path.to_owned(), problem: problem.into() }
    }
}
