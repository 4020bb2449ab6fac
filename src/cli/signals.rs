//! Signals outside the screen: noted in a flag, which the running loop checks.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::SigId;
use signal_hook::low_level::unregister;

use crate::platform::signals::{ENDING, HANGUP, is_ignored};

/// Notes the signals that ask a program to end, for as long as this lives; they have no other effect.
pub(super) struct Interruption {
    signal: Arc<AtomicUsize>,
    handlers: Vec<SigId>,
}

impl Interruption {
    /// Starts noting SIGINT, SIGTERM and, where there is one, SIGHUP; those that are ignored stay ignored, as `nohup` requires.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub(super) fn catch() -> io::Result<Self> {
        Self::catch_these(ENDING)
    }

    /// The same without SIGHUP, which is ignored: the terminal may close.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub(super) fn catch_but_hangup() -> io::Result<Self> {
        let mut caught = Self::catch_these(ENDING.into_iter().filter(|signal| *signal != HANGUP))?;
        // A handler and not `SIG_IGN`, which child processes would inherit.
        for signal in without_ignored([HANGUP]) {
            caught.handlers.push(signal_hook::flag::register(signal, Arc::default())?);
        }
        Ok(caught)
    }

    fn catch_these(signals: impl IntoIterator<Item = i32>) -> io::Result<Self> {
        let mut caught = Self { signal: Arc::default(), handlers: Vec::new() };
        for signal in without_ignored(signals) {
            let noted = usize::try_from(signal).unwrap_or_default();
            caught.handlers.push(signal_hook::flag::register_usize(signal, Arc::clone(&caught.signal), noted)?);
        }
        Ok(caught)
    }

    /// The signal that arrived since the last call, if any.
    pub(super) fn take(&self) -> Option<i32> {
        let signal = i32::try_from(self.signal.swap(0, Ordering::Relaxed)).unwrap_or_default();
        (signal != 0).then_some(signal)
    }
}

impl Drop for Interruption {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            unregister(handler);
        }
    }
}

/// The ones among these signals that the parent process did not set to be ignored: `nohup` does so with SIGHUP, a shell
/// with SIGINT for background processes, and a handler would undo it.
pub(super) fn without_ignored(signals: impl IntoIterator<Item = i32>) -> impl Iterator<Item = i32> {
    signals.into_iter().filter(|signal| !is_ignored(*signal))
}

/// The exit code of a program that a signal ended.
pub(super) fn exit_code(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(255)
}
