//! Exit codes of every command, and the error of a command line whose parts do not go together. The exit code of a program which
//! a signal ended is in `signals.rs`.

use thiserror::Error;

/// All went well.
pub(super) const SUCCESS: u8 = 0;
/// A rule of `check` is broken.
pub(super) const REGRESSED: u8 = 3;
/// There is not enough evidence to decide a rule.
pub(super) const UNDECIDED: u8 = 4;
/// Something failed; one line on standard error says what.
pub(super) const FAILURE: u8 = 1;
/// The command line, the environment or the settings file cannot be understood.
pub(super) const USAGE: u8 = 2;

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
