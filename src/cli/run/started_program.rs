//! A program that was started, under its view or without one: until somebody leaves it, or it ends.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT};

use super::super::exit::SUCCESS;
use super::super::layers::{Hint, LayeredSource};
use super::super::patience::check_answers;
use super::super::plain::PlainView;
use super::super::settings::Settings;
use super::super::{output, screen, signals};
use super::child::check_usable;
use super::keeper_client::{Interrupted, KeeperClient, OnHangup};
use super::python::{PythonWatch, program_session};
use crate::viewer::Outcome;
use gnntop_analysis::source::{Launched, Launcher};
use gnntop_sessions::layout;

/// After the program's end the end of its session is waited for this long.
const GRACE: Duration = Duration::from_secs(2);
/// Time between two looks whether the program has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A program that was started and is watched.
pub(super) struct StartedProgram {
    pub(super) kept: KeeperClient,
    pub(super) name: String,
    pub(super) started: SystemTime,
    pub(super) on_hangup: OnHangup,
    pub(super) interrupted: Interrupted,
    pub(super) python: PythonWatch,
}

/// Says why the program has no view. It runs all the same, and has its own exit code.
pub(super) fn note_not_shown(error: &anyhow::Error) {
    output::print_note(&format!("gnntop: warning: {error:#}. The program runs, and is not shown"));
}

impl StartedProgram {
    /// Opens the live view; returns when a person leaves it, or at once if the program has ended already.
    pub(super) fn show_screen(&self, settings: &Settings) -> anyhow::Result<Outcome> {
        match self.watch() {
            Some(source) => {
                let source = Box::new(source.with(self.kept.inbox()));
                screen::show_started(source, settings, self.kept.log().map(Path::to_owned))
            }
            None => Ok(Outcome::Quit),
        }
    }

    /// The source for the program; `None` when it has ended, or nothing can be seen of it.
    fn watch(&self) -> Option<LayeredSource> {
        let (process, dir) = (self.kept.process(), layout::sessions_dir());
        let process = process?;
        if let Err(error) = check_answers(&dir) {
            note_not_shown(&error.into());
            return None;
        }
        let session = program_session(process.pid(), self.started, self.kept.answers());
        let source = match Launched::watch(process, Launcher::Gnntop, session).context("cannot read the sensors") {
            Ok(source) => source,
            Err(error) => {
                note_not_shown(&error);
                return None;
            }
        };
        let source = LayeredSource::new(Box::new(source));
        Some(match check_usable(&dir) {
            Some(Err(why)) => source.with(Hint(format!("hardware only: {why}"))),
            _ => source.with(self.python.clone()),
        })
    }

    /// Does what the user left the view for. Returns our exit code if there is nothing to wait for.
    pub(super) fn leave(&self, outcome: Outcome, stays: bool) -> Option<u8> {
        if outcome == Outcome::Signal(SIGHUP) {
            return self.hang_up();
        }
        // If the program has ended, its exit code is waited for.
        self.kept.process()?;
        let (name, pid) = (&self.name, self.kept.pid());
        match outcome {
            Outcome::Quit if !stays => {
                output::print_note(&format!("{name} keeps running as process {pid}.\n{}", self.kept));
                return Some(SUCCESS);
            }
            Outcome::Stop => {
                output::print_note(&format!("sent SIGINT to {name} (process {pid})"));
                self.kept.signal_sender().signal(SIGINT);
            }
            Outcome::Signal(_) => (),
            Outcome::Quit | Outcome::Wait => {
                output::print_note(&format!("{name} keeps running as process {pid}; Ctrl-C ends it.\n{}", self.kept));
            }
        }
        None
    }

    /// The terminal is gone. Returns the exit code, if the program shall keep running.
    fn hang_up(&self) -> Option<u8> {
        if self.on_hangup == OnHangup::Keep {
            return Some(signals::exit_code(SIGHUP));
        }
        // If we got no signal to pass on, the program gets one anyway.
        std::thread::sleep(POLL_INTERVAL * 4);
        if self.interrupted.signal() != Some(SIGHUP) {
            self.kept.signal_sender().signal(SIGHUP);
        }
        None
    }

    /// Waits for the end of a program that has the terminal. Returns its exit code: Ctrl-C was the program's.
    pub(super) fn wait_for_end(&self) -> u8 {
        loop {
            if let Some(code) = self.kept.ended_within(POLL_INTERVAL).or_else(|| self.leave_with_shell()) {
                return code;
            }
        }
    }

    /// Our exit code, if the shell has ended that had us stopped, and the program shall keep running.
    fn leave_with_shell(&self) -> Option<u8> {
        if !self.kept.take_hangup() {
            return None;
        }
        if self.on_hangup == OnHangup::Stop {
            self.kept.signal_sender().signal(SIGHUP);
            return None;
        }
        output::print_note(&format!("{} keeps running as process {}.\n{}", self.name, self.kept.pid(), self.kept));
        Some(signals::exit_code(SIGHUP))
    }

    /// Waits for the program's end, and prints a line from time to time. Returns the exit code.
    pub(super) fn wait(&self, interval: Duration) -> u8 {
        let mut view = self.watch().map(|source| PlainView::new(Box::new(source), interval));
        view.iter_mut().for_each(|view| view.await_reason(true));
        let mut give_up_at = None;
        loop {
            if self.interrupted.signal() == Some(SIGHUP) && self.on_hangup == OnHangup::Keep {
                return signals::exit_code(SIGHUP);
            }
            let is_over = match view.as_mut().map(PlainView::poll) {
                Some(Ok(ended)) => ended, // and the program may start its training once more
                // No one reads the lines any more. The program is still waited for.
                Some(Err(_)) | None => {
                    view = None;
                    true
                }
            };
            let code = self.kept.ended_within(if is_over { POLL_INTERVAL } else { Duration::ZERO });
            if let Some(code) = self.leave_with_shell() {
                return code;
            }
            if let Some(code) = code {
                view.iter_mut().for_each(|view| view.await_reason(false)); // its keeper has said it
                let give_up_at = *give_up_at.get_or_insert_with(|| Instant::now() + GRACE);
                if is_over || Instant::now() >= give_up_at {
                    return self.interrupted.signal().map_or(code, signals::exit_code);
                }
            }
        }
    }
}
