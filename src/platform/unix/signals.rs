//! Signals: those that end a program, and those that a program in a terminal gets.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::SigId;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGWINCH, SIGXFSZ};
use signal_hook::low_level::{emulate_default_handler, unregister};

/// The signals that ask a program to end.
pub const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];
/// Says that the terminal is gone.
pub const HANGUP: i32 = SIGHUP;

/// From now on, writing past the limit on a file's size is an error and not a signal. Programs that we start do not inherit that.
pub fn refuse_past_file_limit() {
    if !is_ignored(SIGXFSZ) {
        // Without a handler, which no system refuses for this signal, it ends us.
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    }
}

/// Whether the parent process has set a signal to be ignored.
pub fn is_ignored(signal: i32) -> bool {
    let mut now = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action the call only writes the present one, to a valid place, and it is read only where the
    // call says that it wrote it.
    unsafe {
        libc::sigaction(signal, ptr::null(), now.as_mut_ptr()) == 0 && now.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Whether the parent process has had broken pipes ignored (SIGPIPE), as systemd does. Rust programs ignore them themselves, from
/// before `main` on.
#[cfg(target_os = "linux")]
pub fn broken_pipes_were_ignored() -> bool {
    std::hint::black_box(&BEFORE_RUST);
    BROKEN_PIPES_WERE_IGNORED.load(Ordering::Relaxed)
}

#[cfg(target_os = "linux")]
static BROKEN_PIPES_WERE_IGNORED: AtomicBool = AtomicBool::new(false);

// SAFETY: the linker's name for functions that the C library calls before it starts the program, without arguments that are looked at.
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_RUST: extern "C" fn() = {
    extern "C" fn note() {
        BROKEN_PIPES_WERE_IGNORED.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
    }
    note
};

/// Which signals have arrived. The handlers live as long as this.
pub struct TerminalSignals {
    stop: Arc<AtomicBool>,
    resumed: Arc<AtomicBool>,
    resized: Arc<AtomicBool>,
    quit: [(i32, Arc<AtomicBool>); 3],
    handlers: Vec<SigId>,
}

impl TerminalSignals {
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

impl Drop for TerminalSignals {
    fn drop(&mut self) {
        self.handlers.drain(..).for_each(|handler| {
            unregister(handler);
        });
    }
}
