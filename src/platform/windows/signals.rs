//! Signals: Ctrl-C and the request to end are all that there is of them. No program is stopped for a while, and a new size of the
//! console is seen by looking.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::unregister;

/// The signals that ask a program to end.
pub const ENDING: [i32; 2] = [SIGINT, SIGTERM];
/// Stands for a console that is gone: the number that other systems have for it.
pub const HANGUP: i32 = 1;

/// There is no such limit.
pub fn refuse_past_file_limit() {}

/// Whether the parent process has set a signal to be ignored: not known.
pub fn is_ignored(_signal: i32) -> bool {
    false
}

/// Which signals have arrived. The handlers live as long as this.
pub struct TerminalSignals {
    quit: [(i32, Arc<AtomicBool>); 2],
    handlers: Vec<SigId>,
    /// Columns and rows of the console at the last look, 16 bits each.
    size: AtomicU32,
}

impl TerminalSignals {
    /// Catches the signals that end a program.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub fn catch() -> io::Result<Self> {
        let quit = ENDING.map(|signal| (signal, Arc::new(AtomicBool::new(false))));
        let mut signals = Self { quit, handlers: Vec::new(), size: AtomicU32::new(console_size()) };
        for (signal, flag) in &signals.quit {
            signals.handlers.push(signal_hook::flag::register(*signal, Arc::clone(flag))?);
        }
        Ok(signals)
    }

    /// The signal that asked the viewer to end, if one did.
    pub fn quit(&self) -> Option<i32> {
        self.quit.iter().find(|(_, flag)| flag.load(Ordering::Relaxed)).map(|(signal, _)| *signal)
    }

    /// Whether the viewer was asked to stop for a while: never.
    pub fn take_stop(&self) -> bool {
        false
    }

    /// Whether the viewer was continued after a stop: never.
    pub fn take_resumed(&self) -> bool {
        false
    }

    /// Whether the console has changed its size, since the last call.
    pub fn take_resized(&self) -> bool {
        let size = console_size();
        self.size.swap(size, Ordering::Relaxed) != size
    }

    /// A program cannot stop itself here: it continues at once.
    ///
    /// # Errors
    /// Never.
    pub fn stop_self(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for TerminalSignals {
    fn drop(&mut self) {
        self.handlers.drain(..).for_each(|handler| {
            unregister(handler);
        });
    }
}

/// 0 if it is not known.
fn console_size() -> u32 {
    crossterm::terminal::size().map_or(0, |(columns, rows)| u32::from(columns) << 16 | u32::from(rows))
}
