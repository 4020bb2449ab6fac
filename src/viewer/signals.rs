//! Signals as flags that the main loop looks at. A signal is never handled where it arrives.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::SigId;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::low_level::{emulate_default_handler, unregister};

/// Which signals have arrived. The handlers live as long as this.
pub struct Signals {
    stop: Arc<AtomicBool>,
    resumed: Arc<AtomicBool>,
    resized: Arc<AtomicBool>,
    quit: [(i32, Arc<AtomicBool>); 3],
    handlers: Vec<SigId>,
}

impl Signals {
    /// Catches the signals that end, stop, continue and resize a terminal program.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub fn catch() -> io::Result<Self> {
        let flag = || Arc::new(AtomicBool::new(false));
        let quit = [(SIGTERM, flag()), (SIGHUP, flag()), (SIGINT, flag())];
        let mut signals = Self { stop: flag(), resumed: flag(), resized: flag(), quit, handlers: Vec::new() };
        let others =
            [(SIGTSTP, signals.stop.clone()), (SIGCONT, signals.resumed.clone()), (SIGWINCH, signals.resized.clone())];
        for (signal, flag) in signals.quit.clone().into_iter().chain(others) {
            signals.handlers.push(signal_hook::flag::register(signal, flag)?);
        }
        Ok(signals)
    }

    /// The signal that asked the viewer to end, if one did.
    pub fn quit(&self) -> Option<i32> {
        self.quit.iter().find(|(_, flag)| flag.load(Ordering::Relaxed)).map(|(signal, _)| *signal)
    }

    /// Whether the viewer was asked to stop for a while, since the last call.
    pub fn take_stop(&self) -> bool {
        self.stop.swap(false, Ordering::Relaxed)
    }

    /// Whether the viewer was continued after a stop, since the last call.
    pub fn take_resumed(&self) -> bool {
        self.resumed.swap(false, Ordering::Relaxed)
    }

    /// Whether the terminal has changed its size, since the last call.
    pub fn take_resized(&self) -> bool {
        self.resized.swap(false, Ordering::Relaxed)
    }

    /// Stops this process as Ctrl-Z does to any program, and returns when it is continued.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn stop_self(&self) -> io::Result<()> {
        emulate_default_handler(SIGTSTP)?;
        self.take_resumed();
        Ok(())
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.handlers.drain(..).for_each(|handler| {
            unregister(handler);
        });
    }
}
