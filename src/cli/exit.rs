//! Exit codes of every command, and the errors that have one of their own. The exit code of a program which a signal ended is in
//! `signals.rs`.

use std::io;

use thiserror::Error;

/// All went well.
pub(super) const SUCCESS: u8 = 0;
/// A rule of `check` is broken.
pub(super) const REGRESSED: u8 = 3;
/// There is not enough evidence to decide a rule.
pub(super) const UNDECIDED: u8 = 4;
/// Something failed; one line on standard error says what.
pub(super) const FAILURE: u8 = 1;
/// The program to be started exists, and cannot be executed.
const NOT_EXECUTED: u8 = 126;
/// There is no such program.
const NOT_FOUND: u8 = 127;
/// The command line, the environment or the settings file cannot be understood.
pub(super) const USAGE: u8 = 2;

/// A program that could not be started, in one line. Its exit code is the one that a shell gives.
#[derive(Debug, Error)]
#[error("{why}")]
pub(super) struct NotStarted {
    pub(super) why: String,
    pub(super) code: u8,
}

impl NotStarted {
    /// The system's reason not to start this program.
    pub(super) fn new(program: &str, error: &io::Error) -> Self {
        let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTED };
        Self { why: format!("cannot start {program}: {error}"), code }
    }
}

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
