//! Takes the terminal for the screen and gives it back, whatever happens: at the end, on an error, on a panic, on a
//! signal, and for as long as the viewer is suspended.
//!
//! The only state is whether the screen is taken, in one atomic: a panic hook has nothing else to hold on to.

use std::io::{self, Stdout, Write};
use std::mem::ManuallyDrop;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::{Hide, Show};
use crossterm::style::{Print, ResetColor};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{execute, queue};
use ratatui::Terminal;
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::layout::{Position, Rect, Size};
use ratatui::{Frame, TerminalOptions, Viewport};

/// Whether the terminal is ours at this moment.
static TAKEN: AtomicBool = AtomicBool::new(false);
static PANIC_HOOK: Once = Once::new();

/// Asks for button presses, the wheel and movements with a button down, in the form without limits (xterm's modes 1000,
/// 1002 and 1006). Movements without a button are not reported: there would be hundreds.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1002h\x1b[?1006h";
const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1002l\x1b[?1000l";
/// Asks for the colour of the background (xterm's OSC 11). A terminal that does not know the question says nothing.
const ASK_BACKGROUND: &str = "\x1b]11;?\x1b\\";

/// The most that is drawn. A terminal can have 65,535 columns and rows: 100 GB for a frame.
const LARGEST: Size = Size { width: 1_000, height: 500 };

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
        let terminal = terminal().inspect_err(|_| give_back())?;
        Ok(Self { terminal: ManuallyDrop::new(terminal), with_mouse })
    }

    /// What is drawn on: the terminal, or its upper left part if it is very large.
    ///
    /// # Errors
    /// If the terminal does not say its size.
    pub fn size(&self) -> io::Result<Size> {
        self.terminal.size().map(drawn_part)
    }

    /// Draws a frame, after the terminal's present size.
    ///
    /// # Errors
    /// When the terminal does not take it.
    pub fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        if self.terminal.current_buffer_mut().area.as_size() != self.size()? {
            self.forget()?;
        }
        self.terminal.draw(render).map(drop)
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
        let area = area(self.size()?);
        self.terminal.resize(area)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn terminal() -> io::Result<Terminal<CrosstermBackend<Stdout>>> {
    let backend = CrosstermBackend::new(io::stdout());
    let drawn = area(drawn_part(backend.size()?));
    Terminal::with_options(backend, TerminalOptions { viewport: Viewport::Fixed(drawn) })
}

fn drawn_part(size: Size) -> Size {
    Size { width: size.width.min(LARGEST.width), height: size.height.min(LARGEST.height) }
}

fn area(size: Size) -> Rect {
    Rect::from((Position::ORIGIN, size))
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
