//! What comes of an import: a report of what was used, left out, guessed and doubted, or why it failed.

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

/// What an import did with its input, a sentence each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// What it used.
    pub used: Vec<String>,
    /// What it left out.
    pub left_out: Vec<String>,
    /// What the input does not say.
    pub guessed: Vec<String>,
    /// Doubtful values of the input, where they are, and what to do.
    pub warnings: Vec<String>,
}

impl ImportSummary {
    /// A line for each kind, and one for each warning.
    pub fn lines(&self) -> Vec<String> {
        let line = |title: &str, what: &[String]| (!what.is_empty()).then(|| format!("{title}: {}", what.join("; ")));
        let kinds = [("used", &self.used), ("left out", &self.left_out), ("guessed", &self.guessed)];
        let kinds = kinds.into_iter().filter_map(|(title, what)| line(title, what));
        kinds.chain(self.warnings.iter().map(|warning| format!("warning: {warning}"))).collect()
    }
}
