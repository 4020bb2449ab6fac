//! How files of data are opened, packed or not, and why they cannot be read.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use thiserror::Error;

/// Large enough that reads from the system cost little beside decoding.
const BUFFER_BYTES: usize = 1 << 16;

/// Why a file cannot be read, whatever is in it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// A file or directory cannot be opened.
    #[error("cannot open {}", path.display())]
    Open {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Reading failed: the file is cut off or damaged.
    #[error("{}, after line {line}: the rest cannot be read (is the file complete?)", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Last line that was read whole.
        line: u64,
        /// What went wrong.
        source: io::Error,
    },
}

impl FileError {
    /// For `map_err` on whatever opens `path`.
    pub(crate) fn opening(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Open { path: path.to_owned(), source }
    }
}

/// Opens a file.
pub(crate) fn open(path: &Path) -> Result<BufReader<File>, FileError> {
    let file = File::open(path).map_err(FileError::opening(path))?;
    Ok(BufReader::with_capacity(BUFFER_BYTES, file))
}

/// Opens a file of text, packed with gzip or not (detected from the content).
pub(crate) fn open_text(path: &Path) -> Result<Box<dyn BufRead>, FileError> {
    const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
    let mut file = open(path)?;
    if file.fill_buf().map_err(FileError::opening(path))?.starts_with(&GZIP_MAGIC) {
        return Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(file))));
    }
    Ok(Box::new(file))
}
