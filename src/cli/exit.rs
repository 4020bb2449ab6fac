//! Exit codes of every command. That of a program which a signal ended is in `signals.rs`.

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
