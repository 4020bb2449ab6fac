//! Takes the terminal for the screen and gives it back, whatever happens: at the end, on an error, on a panic, on a
//! signal, and for as long as the viewer is suspended. Signals are flags that the main loop looks at: none is handled
//! where it arrives.
//!
//! The only state is whether the screen is taken, in one atomic: a panic hook has nothing else to hold on to.

use std::io::{self, Stdout, Write};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};

use crossterm::cursor::{Hide, Show};
use crossterm::style::{Print, ResetColor};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{execute, queue};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Position, Rect};
use signal_hook::SigId;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::low_level::{emulate_default_handler, unregister};

/// Whether the terminal is ours at this moment.
static TAKEN: AtomicBool = AtomicBool::new(false);
static PANIC_HOOK: Once = Once::new();

/// Asks for button presses, the wheel and movements with a button down, in the form without limits (xterm's modes 1000,
/// 1002 and 1006). Movements without a button are not reported: there would be hundreds.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1002h\x1b[?1006h";
const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1002l\x1b[?1000l";
/// Asks for the colour of the background (xterm's OSC 11). A terminal that does not know the question says nothing.
const ASK_BACKGROUND: &str = "\x1b]11;?\x1b\\";

/// The terminal in raw mode with the alternate screen, for as long as this lives.
pub struct Screen {
    /// Never dropped: if the terminal is closed, that would print, fail and panic. All it would do,
    /// which is to show the cursor, is done when the terminal is given back.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
    with_mouse: bool,
}

impl Screen {
    /// Takes the terminal, and the mouse with it if it is wanted.
    ///
    /// # Errors
    /// If standard output is not a terminal or rejects the change, which is then undone.
    pub fn take(with_mouse: bool) -> io::Result<Self> {
        PANIC_HOOK.call_once(give_back_on_panic);
        take_terminal(with_mouse).inspect_err(|_| give_back())?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout())).inspect_err(|_| give_back())?;
        Ok(Self { terminal: ManuallyDrop::new(terminal), with_mouse })
    }

    /// What to draw on.
    pub fn terminal(&mut self) -> &mut Terminal<CrosstermBackend<Stdout>> {
        &mut self.terminal
    }

    /// Asks the terminal for its background. The answer, if there is one, comes as input.
    ///
    /// # Errors
    /// When the terminal does not take it.
    pub fn ask_background(&self) -> io::Result<()> {
        execute!(io::stdout(), Print(ASK_BACKGROUND))
    }

    /// Whether the terminal is still ours: it is not after a panic on another thread.
    pub fn is_ours(&self) -> bool {
        TAKEN.load(Ordering::SeqCst)
    }

    /// Gives the terminal back, does `meanwhile` (which stops this process), and takes it again.
    ///
    /// # Errors
    /// When the terminal cannot be taken again.
    pub fn lend(&mut self, meanwhile: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        give_back();
        let outcome = meanwhile();
        self.retake()?;
        outcome
    }

    /// Takes the terminal again, which another program may have changed, and redraws everything with the next frame.
    ///
    /// # Errors
    /// When the terminal does not take the change.
    pub fn retake(&mut self) -> io::Result<()> {
        take_terminal(self.with_mouse)?;
        self.forget()
    }

    /// Clears the screen, so that the next frame redraws everything.
    ///
    /// # Errors
    /// When the terminal does not take it.
    pub fn forget(&mut self) -> io::Result<()> {
        // `Terminal::clear` would ask the terminal for its cursor and wait for an answer that may never come.
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::from((Position::ORIGIN, size)))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn take_terminal(with_mouse: bool) -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    execute!(io::stdout(), EnterAlternateScreen, Hide, Print(if with_mouse { MOUSE_ON } else { "" }))
}

/// Gives the terminal back once; does nothing if it was not taken. A failure here means that the terminal is gone, and
/// then there is nowhere to report it.
fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let mut stdout = io::stdout();
        let _ = queue!(stdout, Print(MOUSE_OFF), ResetColor, LeaveAlternateScreen, Show);
        let _ = stdout.flush();
        let _ = disable_raw_mode();
    }
}

/// Puts the terminal right before the panic's message is written, so that it can be read.
fn give_back_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        give_back();
        report(info);
    }));
}

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
