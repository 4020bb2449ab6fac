//! The main loop: waits for a key, asks the source, lets the app change, draws when the picture is out of date.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crossterm::event::{self, Event};

use super::keyboard::Keyboard;
use super::own_cost::OwnCostMeter;
use super::signals::Signals;
use super::terminal::Screen;
use super::theme::Theme;
use super::{draw, input, tail};
use crate::app::{Action, App, Background, ColorDepth, Effect, Preferences, View, update};
use crate::source::{Progress, Source};

/// The shortest time between two frames that nobody asked for: 30 a second at most.
const FRAME: Duration = Duration::from_millis(33);
/// Drawing takes at most one part in this many of the time, however long a frame takes.
const DRAWING_SHARE: u32 = 25;
/// How long the source may take before keys are looked at again.
const POLL_BUDGET: Duration = Duration::from_millis(15);
/// How long to wait for a key while data comes and while nothing does.
const BUSY_WAIT: Duration = Duration::from_millis(33);
const IDLE_WAIT: Duration = Duration::from_millis(100);
/// crossterm looks at nothing, not even at keys it has read already, where it may not wait at all.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);
/// Time between two looks at the program's output while it is shown.
const LOG_EVERY: Duration = Duration::from_millis(500);

/// How the screen is to be.
#[derive(Clone, Debug, Default)]
pub struct ScreenOptions {
    /// The log of the program's output, where there is one.
    pub log_path: Option<PathBuf>,
    /// Draw ASCII only.
    pub ascii: bool,
    /// Colours, whatever the environment says.
    pub colors: Option<ColorDepth>,
    /// The background, whatever the environment says.
    pub background: Option<Background>,
    /// How the screen begins, and what keys do.
    pub preferences: Preferences,
}

/// Why the screen ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A key asked for it.
    Quit,
    /// This signal asked for it.
    Signal(i32),
}

/// Shows what the source yields until a key or a signal ends it. The terminal is as before when this returns.
///
/// # Errors
/// When the terminal cannot be taken, read or written.
pub fn run_screen(source: Box<dyn Source>, options: ScreenOptions) -> anyhow::Result<Outcome> {
    run_comparison(source, None, options)
}

/// As [`run_screen`], with another session to compare with.
///
/// # Errors
/// When the terminal cannot be taken, read or written.
pub fn run_comparison(
    source: Box<dyn Source>,
    against: Option<Box<dyn Source>>,
    options: ScreenOptions,
) -> anyhow::Result<Outcome> {
    let env = |name: &str| std::env::var(name).ok();
    let depth = options.colors.unwrap_or_else(|| ColorDepth::detect(env));
    let theme = Theme::new(depth, options.ascii).on(options.background.unwrap_or_else(|| Background::detect(env)));
    let signals = Signals::catch()?;
    let screen = Screen::take()?;
    let mut viewer = Viewer {
        app: App::with(options.log_path.is_some(), options.preferences),
        theme,
        source,
        against,
        log_path: options.log_path,
        signals,
        screen,
        keyboard: Keyboard::open(),
        clock: Clock::start(),
    };
    viewer.run()
}

/// When what was done last.
struct Clock {
    start: Instant,
    /// The next frame may not be drawn before.
    next_frame: Instant,
    log_read: Instant,
    cost: OwnCostMeter,
}

impl Clock {
    fn start() -> Self {
        let now = Instant::now();
        Self { start: now, next_frame: now, log_read: now, cost: OwnCostMeter::start() }
    }
}

struct Viewer {
    app: App,
    theme: Theme,
    source: Box<dyn Source>,
    /// The session to compare with.
    against: Option<Box<dyn Source>>,
    log_path: Option<PathBuf>,
    signals: Signals,
    // Given back before the signal handlers go.
    screen: Screen,
    keyboard: Keyboard,
    clock: Clock,
}

impl Viewer {
    fn run(&mut self) -> anyhow::Result<Outcome> {
        let size = self.screen.terminal().size()?;
        self.change(Action::Resized { width: size.width, height: size.height })?;
        let mut wait = Duration::ZERO;
        loop {
            let pressed = self.take_input(wait)?;
            if let Some(outcome) = pressed.outcome {
                return Ok(outcome);
            }
            if let Some(signal) = self.signals.quit() {
                return Ok(Outcome::Signal(signal));
            }
            if !self.screen.is_ours() {
                anyhow::bail!("a part of the viewer failed, as said above; the run goes on");
            }
            self.heed_stop()?;
            let mut progress = self.poll_source()?;
            progress.more |= self.poll_other()?;
            self.measure()?;
            self.draw_if_due(pressed.any)?;
            wait = self.wait_after(progress);
        }
    }

    /// Waits for input and takes all there is.
    fn take_input(&mut self, wait: Duration) -> io::Result<Pressed> {
        let mut pressed = Pressed { any: false, outcome: None };
        let mut wait = wait.max(SHORTEST_WAIT);
        while pressed.outcome.is_none() && is_input_there(wait)? {
            wait = SHORTEST_WAIT;
            let action = match event::read()? {
                Event::Key(key) => input::key(&key).map(Action::Key),
                Event::Resize(width, height) => Some(Action::Resized { width, height }),
                _ => None,
            };
            if let Some(action) = action {
                pressed.any = true;
                pressed.outcome = self.change(action)?;
            }
        }
        if self.keyboard.is_gone() {
            pressed.outcome = Some(Outcome::Signal(libc::SIGHUP));
        }
        Ok(pressed)
    }

    /// Lets the app change and does what it asks for.
    fn change(&mut self, action: Action) -> io::Result<Option<Outcome>> {
        match update(&mut self.app, action) {
            None => (),
            Some(Effect::Quit) => return Ok(Some(Outcome::Quit)),
            Some(Effect::Suspend) => self.suspend()?,
            Some(Effect::Redraw) => self.screen.forget()?,
            Some(Effect::ReadLog) => self.read_log(),
            Some(Effect::Control(control)) => self.source.control(control),
        }
        Ok(None)
    }

    fn suspend(&mut self) -> io::Result<()> {
        let signals = &self.signals;
        self.screen.lend(|| signals.stop_self())?;
        self.look_again()
    }

    /// Obeys a stop from outside, and puts the terminal right after one that could not be seen coming.
    fn heed_stop(&mut self) -> io::Result<()> {
        if self.signals.take_stop() {
            self.suspend()?;
        } else if self.signals.take_resumed() {
            self.screen.retake()?;
            self.look_again()?;
        }
        Ok(())
    }

    /// The terminal may have another size than before.
    fn look_again(&mut self) -> io::Result<()> {
        let size = self.screen.terminal().size()?;
        self.change(Action::Resized { width: size.width, height: size.height })?;
        Ok(())
    }

    fn poll_source(&mut self) -> io::Result<Progress> {
        let now = self.clock.start.elapsed();
        self.change(Action::Tick { now })?;
        if self.app.frozen_for().is_some() {
            return Ok(Progress::default());
        }
        let progress = self.source.poll(&mut self.app.store, POLL_BUDGET);
        let status = self.source.status();
        self.change(Action::Polled { status, changed: progress.changed })?;
        Ok(progress)
    }

    /// Asks the session to compare with; says whether it has more right now.
    fn poll_other(&mut self) -> io::Result<bool> {
        let Some(against) = &mut self.against else { return Ok(false) };
        let progress = against.poll(&mut self.app.other_mut().store, POLL_BUDGET);
        let status = against.status();
        self.change(Action::OtherPolled { status, changed: progress.changed })?;
        Ok(progress.more)
    }

    fn measure(&mut self) -> io::Result<()> {
        let now = Instant::now();
        if let Some(cost) = self.clock.cost.measure(now) {
            self.change(Action::Measured(cost))?;
        }
        let is_due = now.saturating_duration_since(self.clock.log_read) >= LOG_EVERY;
        if is_due && self.app.view() == View::Log {
            self.read_log();
        }
        Ok(())
    }

    fn read_log(&mut self) {
        self.clock.log_read = Instant::now();
        if let Some(path) = &self.log_path {
            update(&mut self.app, Action::LogRead(tail::read(path)));
        }
    }

    /// Draws when the picture is out of date and the time for a frame has come; at once after a key.
    fn draw_if_due(&mut self, at_once: bool) -> io::Result<()> {
        let begin = Instant::now();
        if !self.app.is_dirty() || (begin < self.clock.next_frame && !at_once) {
            return Ok(());
        }
        let (app, theme) = (&self.app, &self.theme);
        self.screen.terminal().draw(|frame| draw(app, theme, frame.buffer_mut()))?;
        self.app.drawn();
        self.clock.next_frame = begin + FRAME.max(begin.elapsed() * DRAWING_SHARE);
        Ok(())
    }

    /// How long the next wait for a key may take.
    fn wait_after(&self, progress: Progress) -> Duration {
        if progress.more {
            return Duration::ZERO;
        }
        let idle = if progress.changed { BUSY_WAIT } else { IDLE_WAIT };
        if !self.app.is_dirty() {
            return idle;
        }
        self.clock.next_frame.saturating_duration_since(Instant::now()).min(idle)
    }
}

struct Pressed {
    any: bool,
    outcome: Option<Outcome>,
}

/// Whether there is input within `wait`.
fn is_input_there(wait: Duration) -> io::Result<bool> {
    match event::poll(wait) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        answer => answer,
    }
}
