//! Why the settings cannot be used.

use std::io;
use std::path::PathBuf;

use crate::app::KeyMapError;

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum SettingsError {
    /// The file cannot be read.
    #[error("cannot read the settings in {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something in the file is wrong.
    #[error("{}:{line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Where, counted from 1.
        line: usize,
        /// What.
        what: String,
    },
    /// A variable has a value that is not known.
    #[error("{name}={value}: give one of {expected}")]
    Variable {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        expected: String,
    },
    /// The assumptions about power and electricity are invalid.
    #[error("{0}")]
    Energy(String),
    /// The keys in the file are invalid.
    #[error("{}: {why}", path.display())]
    Keys {
        /// The file.
        path: PathBuf,
        /// Why.
        why: KeyMapError,
    },
}
