//! A command line whose parts are valid but do not go together.

use thiserror::Error;

/// What is wrong with the command line, in one line. Its exit code is the one for wrong usage.
#[derive(Debug, Error)]
#[error("{0}")]
pub(super) struct UsageError(String);

impl UsageError {
    /// An error with this line, which says what to do.
    pub(super) fn with_message(text: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(Self(text.into()))
    }
}
