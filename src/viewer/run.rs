//! The main loop: waits for a key, asks the source, lets the app change, draws when the picture is out of date.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::input;
use super::options::{Outcome, ScreenOptions};
use super::runs_feed::RunsFeed;
use super::terminal::Screen;
use super::tracing::TraceProcess;
use super::watches::{OwnCostMeter, SessionWatches};
use crate::app::{Action, App, Effect, View, update};
use crate::log;
use crate::platform::keyboard::Keyboard;
use crate::platform::signals::{HANGUP, TerminalSignals};
use crate::ui::theme::Theme;
use crate::ui::{Drawn, Spot, draw};
use gnntop_analysis::source::catalog::{self, Catalog, CatalogEntry, EmptySource};
use gnntop_analysis::source::{Control, Progress, Source};

/// The shortest time between two frames without a key: at most 20 a second.
const FRAME: Duration = Duration::from_millis(50);
/// Drawing takes at most one part in this many of the time, however long a frame takes.
const DRAWING_SHARE: u32 = 25;
/// How long the source may take before keys are read again.
const POLL_BUDGET: Duration = Duration::from_millis(15);
/// How long to wait for a key while data arrives, and while none does.
const BUSY_WAIT: Duration = Duration::from_millis(33);
const IDLE_WAIT: Duration = Duration::from_millis(100);
/// An answer that the terminal was asked for this recently may still arrive...
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// ...and is waited for this long, so that the next program in the terminal does not get it.
const ANSWER_WAIT: Duration = Duration::from_millis(150);
/// Time between two looks at the program's output while it is shown.
const LOG_EVERY: Duration = Duration::from_millis(500);
/// Time between two looks at what can be opened, while that is shown.
const SESSIONS_EVERY: Duration = Duration::from_secs(1);

/// When what was done last.
struct Clock {
    start: Instant,
    /// The next frame may not be drawn before.
    next_frame: Instant,
    log_read: Instant,
    sessions_listed: Instant,
    cost: OwnCostMeter,
}

impl Clock {
    fn start() -> Self {
        let now = Instant::now();
        Self { start: now, next_frame: now, log_read: now, sessions_listed: now, cost: OwnCostMeter::start() }
    }
}

/// What is read.
pub(super) struct Followed {
    pub(super) source: Box<dyn Source>,
    /// The session to compare with.
    pub(super) against: Option<Box<dyn Source>>,
    /// The runs of the table.
    pub(super) runs: Option<RunsFeed>,
}

/// The screen and everything on it.
pub(super) struct Viewer {
    app: App,
    theme: Theme,
    /// What the mouse can point at on the newest frame.
    spots: Vec<Spot>,
    /// When the terminal was asked for its background, until it answers.
    asked_at: Option<Instant>,
    followed: Followed,
    /// Look for findings and at the energy.
    watches: SessionWatches,
    catalog: Option<Catalog>,
    log_path: Option<PathBuf>,
    /// The deep trace that is being taken.
    tracing: TraceProcess,
    signals: TerminalSignals,
    // Given back before the signal handlers go.
    screen: Screen,
    keyboard: Keyboard,
    clock: Clock,
}

impl Viewer {
    /// Takes the terminal.
    pub(super) fn new(app: App, theme: Theme, followed: Followed, options: ScreenOptions) -> anyhow::Result<Self> {
        let signals = TerminalSignals::catch()?;
        let keyboard = Keyboard::open()?;
        let screen = Screen::take(!options.no_mouse)?;
        Ok(Self {
            app,
            theme,
            spots: Vec::new(),
            asked_at: None,
            followed,
            watches: SessionWatches::new(options.assumptions),
            catalog: options.catalog,
            log_path: options.log_path,
            tracing: TraceProcess::default(),
            signals,
            screen,
            keyboard,
            clock: Clock::start(),
        })
    }

    /// Runs until a key or a signal ends it, and first asks the terminal for its background if that is to be asked.
    pub(super) fn run(&mut self, asks_background: bool) -> anyhow::Result<Outcome> {
        if asks_background {
            self.screen.ask_background()?;
            self.asked_at = Some(Instant::now());
        }
        let outcome = self.run_to_end();
        self.read_terminal_answer();
        outcome
    }

    fn run_to_end(&mut self) -> anyhow::Result<Outcome> {
        let outcome = self.watch();
        // To write to a terminal that was closed fails, and may fail before its end or the signal for it is seen.
        if outcome.is_err() && self.keyboard.is_closed_by_now() {
            return Ok(Outcome::Signal(HANGUP));
        }
        outcome
    }

    fn watch(&mut self) -> anyhow::Result<Outcome> {
        let size = self.screen.size()?;
        self.change(Action::Resized { width: size.width, height: size.height })?;
        if self.app.view() == View::Sessions {
            self.list_sessions();
        }
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
                anyhow::bail!("a part of the viewer failed (see above); the run continues");
            }
            self.handle_stop()?;
            let mut progress = self.poll_source()?;
            progress.more |= self.poll_other()?;
            self.poll_runs()?;
            self.judge()?;
            self.measure()?;
            if let Some(action) = self.tracing.ended() {
                self.change(action)?;
            }
            self.draw_if_due(pressed.any)?;
            wait = self.wait_after(progress);
        }
    }

    /// Waits for input and takes all there is.
    fn take_input(&mut self, wait: Duration) -> io::Result<InputResult> {
        let mut pressed = InputResult { any: false, outcome: None };
        for event in self.keyboard.read(wait)? {
            let Some(action) = input::action(&event, &self.spots) else { continue };
            if matches!(action, Action::BackgroundDetected(_)) {
                self.asked_at = None;
            }
            pressed.any = true;
            pressed.outcome = self.change(action)?;
            if pressed.outcome.is_some() {
                return Ok(pressed);
            }
        }
        if self.signals.take_resized() {
            pressed.any = true;
            self.refresh_size()?;
        }
        if self.keyboard.is_gone() {
            pressed.outcome = Some(Outcome::Signal(HANGUP));
        }
        Ok(pressed)
    }

    /// Takes in an answer that is still on its way, which would look like typing to a shell.
    fn read_terminal_answer(&mut self) {
        if self.asked_at.is_some_and(|at| at.elapsed() < ANSWER_WITHIN) {
            // Whether it arrived or not, there is nothing more to do.
            let _ = self.keyboard.read(ANSWER_WAIT);
        }
    }

    /// Lets the app change and does what it asks for.
    fn change(&mut self, action: Action) -> io::Result<Option<Outcome>> {
        match update(&mut self.app, action) {
            None => (),
            Some(Effect::Quit) => return Ok(Some(Outcome::Quit)),
            Some(Effect::Wait) => return Ok(Some(Outcome::Wait)),
            Some(Effect::Stop) => return Ok(Some(Outcome::Stop)),
            Some(Effect::Suspend) => self.suspend()?,
            Some(Effect::Redraw) => self.screen.forget()?,
            Some(Effect::ReadLog) => self.read_log(),
            Some(Effect::ListSessions) => self.list_sessions(),
            Some(Effect::Open(entry)) => self.open(&entry),
            Some(Effect::Close) => self.close(),
            Some(Effect::Trace { after_slow }) => {
                let action = self.tracing.begin(self.app.run.store().session().info(), after_slow);
                update(&mut self.app, action);
            }
            Some(Effect::Control(control)) => self.control(control),
        }
        Ok(None)
    }

    fn suspend(&mut self) -> io::Result<()> {
        let signals = &self.signals;
        self.screen.lend(|| signals.stop_self())?;
        self.refresh_size()
    }

    /// Obeys a stop from outside, and puts the terminal right after one that could not be seen coming.
    fn handle_stop(&mut self) -> io::Result<()> {
        if self.signals.take_stop() {
            self.suspend()?;
        } else if self.signals.take_resumed() {
            self.screen.retake()?;
            self.refresh_size()?;
        }
        Ok(())
    }

    /// The terminal may have another size than before.
    fn refresh_size(&mut self) -> io::Result<()> {
        let size = self.screen.size()?;
        self.change(Action::Resized { width: size.width, height: size.height })?;
        Ok(())
    }

    fn poll_source(&mut self) -> io::Result<Progress> {
        let now = self.clock.start.elapsed();
        self.change(Action::Tick { now })?;
        if self.app.frozen_for().is_some() {
            return Ok(Progress::default());
        }
        let progress = self.followed.source.poll(&mut self.app.run, POLL_BUDGET);
        let status = self.followed.source.status();
        self.change(Action::Polled { status, changed: progress.changed })?;
        Ok(progress)
    }

    fn control(&mut self, control: Control) {
        self.followed.source.control(control);
        self.watches.jump();
    }

    /// Looks for findings and computes energy if it is time.
    fn judge(&mut self) -> io::Result<()> {
        let is_seeking = self.app.status().transport.is_some_and(|transport| transport.seeking);
        for action in self.watches.poll(&self.app.run, is_seeking) {
            self.change(action)?;
        }
        Ok(())
    }

    /// Asks the session to compare with; says whether it has more right now.
    fn poll_other(&mut self) -> io::Result<bool> {
        let Some(against) = &mut self.followed.against else { return Ok(false) };
        let progress = against.poll(&mut self.app.other_mut().run, POLL_BUDGET);
        let status = against.status();
        self.change(Action::OtherPolled { status, changed: progress.changed })?;
        Ok(progress.more)
    }

    /// Takes what is new of the runs in the table, while that is shown.
    fn poll_runs(&mut self) -> io::Result<()> {
        let is_shown = self.app.view() == View::Runs;
        let new = self.followed.runs.as_mut().filter(|_| is_shown).and_then(|runs| runs.poll(Instant::now()));
        if let Some(action) = new {
            self.change(action)?;
        }
        Ok(())
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
        let is_due = now.saturating_duration_since(self.clock.sessions_listed) >= SESSIONS_EVERY;
        if is_due && self.app.view() == View::Sessions {
            self.list_sessions();
        }
        Ok(())
    }

    fn read_log(&mut self) {
        self.clock.log_read = Instant::now();
        if let Some(path) = &self.log_path {
            update(&mut self.app, Action::LogRead(log::read(path).map_err(|error| error.to_string())));
        }
    }

    fn list_sessions(&mut self) {
        self.clock.sessions_listed = Instant::now();
        if let Some(catalog) = &self.catalog {
            let listed = catalog.entries().map_err(|error| error.to_string());
            update(&mut self.app, Action::SessionsListed(listed));
        }
    }

    /// Shows another session instead of the one shown, which stays if that fails.
    fn open(&mut self, entry: &CatalogEntry) {
        match catalog::open(entry) {
            Ok(source) => {
                self.followed.source = source;
                self.log_path = None;
                self.watches.reset();
                update(&mut self.app, Action::Opened);
            }
            Err(error) => {
                update(&mut self.app, Action::Failed(error.to_string()));
            }
        }
    }

    /// Follows nothing any more.
    fn close(&mut self) {
        self.followed.source = Box::new(EmptySource);
        self.watches.reset();
    }

    /// Draws when the picture is out of date and a frame is due; at once after a key.
    fn draw_if_due(&mut self, at_once: bool) -> io::Result<()> {
        let begin = Instant::now();
        if !self.app.is_dirty() || (begin < self.clock.next_frame && !at_once) {
            return Ok(());
        }
        let (app, theme) = (&self.app, &self.theme);
        let mut drawn = Drawn::default();
        self.screen.draw(|frame| drawn = draw(app, theme, frame.buffer_mut()))?;
        self.spots = drawn.spots;
        self.app.drawn(drawn.extent);
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

struct InputResult {
    any: bool,
    outcome: Option<Outcome>,
}
