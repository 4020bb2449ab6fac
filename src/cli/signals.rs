//! Signals outside the screen: noted by a flag, and looked at by the loop that is running.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::unregister;

/// Notes the signals that ask a program to end, for as long as this lives; nothing else happens on them.
pub(super) struct Interruption {
    signal: Arc<AtomicUsize>,
    handlers: Vec<SigId>,
}

impl Interruption {
    /// Starts noting SIGINT, SIGTERM and SIGHUP.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub(super) fn catch() -> io::Result<Self> {
        let mut caught = Self { signal: Arc::default(), handlers: Vec::new() };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let noted = usize::try_from(signal).unwrap_or_default();
            caught.handlers.push(signal_hook::flag::register_usize(signal, Arc::clone(&caught.signal), noted)?);
        }
        Ok(caught)
    }

    /// The signal that came since the last call, if one did.
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

/// The exit code of a program that a signal ended.
pub(super) fn exit_code(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(255)
}
