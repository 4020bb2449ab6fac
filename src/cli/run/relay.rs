//! Signals that are sent to `gnntop run` are meant for the program: a thread passes them on.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use super::super::signals::without_ignored;
use super::keeper_client::SignalSender;

/// What happens to the program when the terminal closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(in super::super) enum OnHangup {
    /// It keeps running
    Keep,
    /// It gets SIGHUP
    Stop,
}

/// Holds caught signals until there is a program to pass them on to.
pub(super) struct SignalRelay {
    signals: Signals,
    on_hangup: OnHangup,
}

/// The signal that asked for an end, once one has.
#[derive(Clone, Default)]
pub(super) struct Interrupted(Arc<AtomicI32>);

impl Interrupted {
    pub(super) fn signal(&self) -> Option<i32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
    }
}

impl SignalRelay {
    /// Starts catching what a terminal and a scheduler send.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub(super) fn catch(on_hangup: OnHangup) -> io::Result<Self> {
        let signals = Signals::new(without_ignored([SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2]))?;
        Ok(Self { signals, on_hangup })
    }

    /// Passes them on from now on.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn forward(self, voice: SignalSender) -> io::Result<Interrupted> {
        let interrupted = Interrupted::default();
        let noted = interrupted.clone();
        thread::Builder::new().name("gnntop signals".to_owned()).spawn(move || self.run(&voice, &noted))?;
        Ok(interrupted)
    }

    fn run(mut self, voice: &SignalSender, interrupted: &Interrupted) {
        for signal in self.signals.forever() {
            if signal != SIGHUP || self.on_hangup == OnHangup::Stop {
                voice.signal(signal);
            }
            if matches!(signal, SIGINT | SIGTERM | SIGHUP) {
                interrupted.0.store(signal, Ordering::Relaxed);
            }
        }
    }
}
