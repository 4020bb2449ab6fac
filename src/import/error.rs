//! Why something cannot be imported.

/// Why something cannot be imported. One line each.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be read.
    #[error("cannot read {path}: {error}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// A requested column does not exist.
    #[error("{path} has no column {column:?}; it has {there}")]
    NoColumn {
        /// The file.
        path: String,
        /// The column.
        column: String,
        /// The columns that are there.
        there: String,
    },
    /// A value is not what its column should hold.
    #[error("{path}, line {line}: {column} is {value:?}, which is not a {wanted}")]
    Value {
        /// The file.
        path: String,
        /// Its line, from 1.
        line: u64,
        /// The column.
        column: String,
        /// What it holds.
        value: String,
        /// What it should hold.
        wanted: &'static str,
    },
    /// A mapping that means nothing.
    #[error("{text:?}: {reason}")]
    Mapping {
        /// What was given.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The file holds nothing of use.
    #[error("{path}: {reason}")]
    Nothing {
        /// The file.
        path: String,
        /// What is missing, and what to do.
        reason: String,
    },
    /// The recording cannot be written.
    #[error("cannot write the recording")]
    Write(#[from] std::io::Error),
}
