//! A program without a view: started, recorded, ended when its time is over; for sweeps of many.

use std::ffi::OsString;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use signal_hook::consts::{SIGKILL, SIGTERM};

use super::super::output;
use super::super::signals::Interruption;
use super::child::{Child, OutputPlace, WAIT_INTERVAL, own_command};
use super::post_mortem::{examine, note_end};
use super::python::{PythonSetup, program_session};
use super::recording::{NOTHING_RECORDED, RecordingFile, RecordingOutcome, Unpublished};

/// A program that was asked to end and has not is killed after this long.
const GRACE: Duration = Duration::from_secs(10);

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum UnattendedEnd {
    /// On its own, with this exit code.
    Code(u8),
    /// It was ended, because its time was over.
    TimeOver,
    /// It was ended because we received this signal.
    Interrupted(i32),
}

impl UnattendedEnd {
    /// The signal by which we have ended it.
    fn signal(self) -> Option<i32> {
        match self {
            Self::Code(_) => None,
            Self::TimeOver => Some(SIGTERM),
            Self::Interrupted(signal) => Some(signal),
        }
    }
}

/// What to start and how long it may take.
pub(in super::super) struct UnattendedRun<'a> {
    /// The program and its arguments, or a workload's name and its settings.
    pub words: &'a [String],
    /// Whether these are those of a workload.
    pub is_workload: bool,
    /// How its log is called.
    pub name: &'a str,
    /// The recording; overwritten.
    pub recording: &'a Path,
    /// The longest it may take.
    pub time_limit: Option<Duration>,
}

impl UnattendedRun<'_> {
    /// Starts it and waits for its end; `waiting` is called all the while.
    ///
    /// # Errors
    /// When it cannot be started or the recording cannot be written.
    pub(in super::super) fn run(
        &self,
        interruption: &Interruption,
        mut waiting: impl FnMut(),
    ) -> anyhow::Result<UnattendedEnd> {
        let file = RecordingFile::create(self.recording, true, None)?;
        let words: Vec<OsString> = self.words.iter().map(OsString::from).collect();
        let command = if self.is_workload { own_command(&words)? } else { words };
        let since = SystemTime::now();
        let warn = |text: &str| output::print_error(&format!("warning: {text}"));
        let python = if self.is_workload { PythonSetup::disabled() } else { PythonSetup::new(&[], warn) };
        let variables = python.variables().map(|(name, value)| (name, value.as_os_str()));
        let mut child = Child::start(&command, self.name, variables, OutputPlace::Log, warn)?;
        let session = program_session(child.pid(), since, python.answers());
        let recording = file.follow(child.pid(), session, Unpublished::Nothing, warn)?;
        let ended = self.wait(&mut child, interruption, &mut waiting);
        let asked = ended.as_ref().ok().and_then(|(_, ended)| ended.signal());
        let death = examine(&child, &python, since, asked);
        let silence = if death.is_none() { note_end(&child, &python, since) } else { None };
        silence.iter().for_each(|why| warn(why));
        match recording.finish(death.as_ref()) {
            RecordingOutcome::Recorded(summary) => output::print_note(&format!("recorded {summary}")),
            RecordingOutcome::Nothing => warn(NOTHING_RECORDED),
            RecordingOutcome::Failed => anyhow::bail!("cannot write {}", self.recording.display()),
        }
        let (code, ended) = ended?;
        child.ending_lines(code, death.as_ref()).iter().for_each(|line| output::print_note(line));
        Ok(ended)
    }

    /// Waits for the end, or brings it about. Returns the exit code and how the program ended.
    fn wait(
        &self,
        child: &mut Child,
        interruption: &Interruption,
        waiting: &mut impl FnMut(),
    ) -> anyhow::Result<(u8, UnattendedEnd)> {
        let began = Instant::now();
        let mut asked: Option<(Instant, UnattendedEnd)> = None;
        loop {
            if let Some(code) = child.try_wait()? {
                return Ok((code, asked.map_or(UnattendedEnd::Code(code), |(_, why)| why)));
            }
            if let Some(signal) = interruption.take() {
                child.signal(signal);
                asked = Some((Instant::now(), UnattendedEnd::Interrupted(signal)));
            } else if asked.is_none() && self.time_limit.is_some_and(|limit| began.elapsed() >= limit) {
                child.signal(SIGTERM);
                asked = Some((Instant::now(), UnattendedEnd::TimeOver));
            }
            if asked.is_some_and(|(at, _)| at.elapsed() >= GRACE) {
                child.signal(SIGKILL);
            }
            waiting();
            thread::sleep(WAIT_INTERVAL);
        }
    }
}
