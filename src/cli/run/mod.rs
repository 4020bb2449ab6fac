//! `gnntop run`: starts a training run and opens the live view of it.
//!
//! ```text
//! keeper.rs    the process that owns the program: starts it, records it, waits for it (`gnntop keep`)
//! keeper_client.rs  the program as seen by the command that started the keeper, and signals for it; messages.rs: messages between them
//! register.rs  an entry for each program, for `gnntop stop` and `gnntop attach`
//! post_mortem.rs  why it died
//! child.rs     the program itself, its exit code; spawn.rs: starts it; python.rs: its Pythons; recording.rs: its recording
//! collect.rs   the process that writes its output to a log (`gnntop collect`); collector.rs: the same as its owner sees it
//! options.rs   options for stacks, and our own after the name of a built-in training
//! unattended.rs  a program of a sweep, which has no keeper: the sweep owns it
//! ```
//!
//! The view only looks: closing it, by key, with the terminal or by `kill -9`, leaves the program and its recording as
//! they are (docs/run.md).

mod child;
mod collect;
mod collector;
mod inherited;
mod keeper;
mod keeper_client;
mod messages;
mod options;
mod post_mortem;
mod python;
mod recording;
mod register;
mod spawn;
mod unattended;

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT};

use super::exit::{SUCCESS, UsageError};
use super::layers::{Hint, LayeredSource};
use super::patience::check_answers;
use super::plain::PlainView;
use super::settings::{ScreenArguments, SensorArguments, Settings};
use super::{output, retention, screen, signals, suggestion, train};
use crate::viewer::Outcome;
use child::{check_usable, own_command};
use gnntop_analysis::source::program_name::program_name;
use gnntop_analysis::source::{Launched, Launcher};
use gnntop_sessions::layout::{self, RUN, RUN_STARTED_MS};
use inherited::Inherited;
use keeper::RecordOptions;
use keeper_client::{Interrupted, KeeperClient, SignalRelay};
use options::{StackArguments, given_twice, take_flag, take_value};
use python::{PythonWatch, program_session};

pub(super) use collect::{CollectArguments, collect};
pub(super) use keeper::{KeepArguments, keep};
pub(super) use keeper_client::OnHangup;
pub(super) use register::{ProgramEntry, entries, find_by_process, launcher, unpublished};
pub(super) use unattended::{UnattendedEnd, UnattendedRun};

const EXAMPLES: &str = "\
Examples:
  gnntop run pna                            a built-in training
  gnntop run pna --steps 500                with options; see `gnntop train pna --help`
  gnntop run --record a.gnntop pna          and record it; --keep 2GiB bounds the file
  gnntop run --run night -- python train.py    again after it was killed: one history with the outage
  gnntop run -- python train.py --lr 0.1    any PyTorch training, unchanged; shows the hardware of other programs
  gnntop run --stacks 20 -- python train.py    and sample 20 Python stacks a second

`q` leaves the view; the program and its recording continue. `gnntop attach` shows it again, `gnntop stop` stops it.
`Q`, or `q` with --wait, leaves the view and waits for the exit code. It always waits without a terminal or with
--plain.
`gnntop run` passes signals that are sent to it, such as SIGINT, SIGTERM and SIGUSR1, on to the program.
Exit codes: the program's own; 128 + N if signal N ended it; 127 if there is no such program, 126 if it cannot be executed;
130 interrupted; 0 if it keeps running without the view.";

/// After the program's end the end of its session is waited for this long.
const GRACE: Duration = Duration::from_secs(2);
/// Bytes of an id that a person gives a run.
const LONGEST_RUN_ID: usize = 200;
/// Time between two looks whether the program has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Start a program and watch it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RunArguments {
    /// Record the session to this file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// With --record: overwrite an existing file
    #[arg(long, requires = "record")]
    force: bool,
    /// With --record: keep the file below this size; its newest events stay, older ones become a summary
    #[arg(long, value_name = "SIZE", value_parser = retention::parse_size)]
    keep: Option<u64>,
    /// With --record: keep the N slowest steps with all their spans, and the newest of the others
    #[arg(long, value_name = "N", value_parser = retention::parse_slowest)]
    slow: Option<u32>,
    /// Run id. A restart with the same id continues its history
    #[arg(long = "run", value_name = "ID", value_parser = run_id)]
    run_id: Option<String>,
    /// Wait for the program's exit code even after `q`
    #[arg(long)]
    wait: bool,
    /// When the terminal closes (window, tmux, ssh): keep the program running, or send it SIGHUP
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnHangup::Keep)]
    on_hangup: OnHangup,
    #[command(flatten)]
    stacks: StackArguments,
    #[command(flatten)]
    sensors: SensorArguments,
    #[command(flatten)]
    screen: ScreenArguments,
    /// A built-in training, such as pna, and its options
    #[arg(
        value_name = "NAME",
        required_unless_present = "command",
        conflicts_with = "command",
        allow_hyphen_values = true
    )]
    words: Vec<OsString>,
    /// Any program with its arguments
    #[arg(value_name = "CMD", last = true)]
    command: Vec<OsString>,
}

impl RunArguments {
    /// `--record`, `--keep`, `--force` and `--wait` mean the same after a training's name as before it. To the training
    /// itself `--record` would say to write that file instead of publishing, and there would be nothing to watch.
    fn take_own_options(&mut self) -> anyhow::Result<()> {
        self.force |= take_flag(&mut self.words, "--force");
        self.wait |= take_flag(&mut self.words, "--wait");
        if let Some(file) = take_value(&mut self.words, "--record", "a file, such as --record a.gnntop")?
            && self.record.replace(file.into()).is_some()
        {
            return Err(given_twice("--record"));
        }
        if let Some(size) = take_value(&mut self.words, "--keep", "a size, such as --keep 2GiB")? {
            let size = retention::parse_size(&size.to_string_lossy())
                .map_err(|why| UsageError::with_message(format!("--keep: {why}")))?;
            if self.keep.replace(size).is_some() {
                return Err(given_twice("--keep"));
            }
        }
        if let Some(steps) = take_value(&mut self.words, "--slow", "a number of steps, such as --slow 200")? {
            let steps = retention::parse_slowest(&steps.to_string_lossy())
                .map_err(|why| UsageError::with_message(format!("--slow: {why}")))?;
            if self.slow.replace(steps).is_some() {
                return Err(given_twice("--slow"));
            }
        }
        match &self.record {
            None if self.force => Err(UsageError::with_message("--force needs --record FILE")),
            None if self.keep.is_some() => Err(UsageError::with_message("--keep needs --record FILE")),
            None if self.slow.is_some() => Err(UsageError::with_message("--slow needs --record FILE")),
            _ => Ok(()),
        }
    }

    /// What the keeper is to record.
    fn record_options(&self) -> Option<RecordOptions> {
        Some(RecordOptions { path: self.record.clone()?, force: self.force, keep: self.keep, slow: self.slow })
    }
}

/// Does `gnntop run`.
pub(super) fn run(mut arguments: RunArguments) -> anyhow::Result<u8> {
    let inherited = Inherited::find();
    arguments.take_own_options()?;
    if !arguments.words.is_empty() {
        train::hand_over()?;
    }
    let (settings, mistake) = Settings::load_or_default(&arguments.screen)?;
    if let Some(mistake) = mistake {
        output::print_error(&format!("warning: {:#}; no settings are used", anyhow::Error::from(mistake)));
    }
    let stacks = arguments.stacks.variables(arguments.command.is_empty())?;
    arguments.sensors.apply();
    if let Some((name, options)) = arguments.words.split_first() {
        let name = name.to_string_lossy();
        if train::check_name(&name).is_err()
            && let Some(command) = suggestion::own_program(&arguments.words)
        {
            let text = format!("{name} is no built-in training; to start a program of your own: {command}");
            return Err(UsageError::with_message(text));
        }
        if let Some(code) = train::check_arguments(&name, options)? {
            return Ok(code);
        }
    }
    let (command, name) = command(&arguments)?;
    let record = arguments.record_options();
    let words = KeepArguments::command_line(&name, record.as_ref(), !arguments.command.is_empty(), &command);
    let relay = SignalRelay::catch(arguments.on_hangup)?;
    let started = SystemTime::now();
    let sensors = arguments.sensors.variables().map(|(name, dir)| (name, dir.clone().into_os_string()));
    let variables = run_variables(arguments.run_id.as_deref(), started).into_iter().chain(stacks);
    let kept = KeeperClient::start(&words, sensors.chain(variables))?;
    inherited.close();
    let interrupted = relay.forward(kept.signal_sender().try_clone().context("cannot talk to the keeper")?)?;
    let python = PythonWatch::new(kept.pid(), kept.answers().map(Path::to_owned));
    let run = StartedProgram { kept, name, started, on_hangup: arguments.on_hangup, interrupted, python };
    if screen::is_wanted(&settings) {
        let goes_on = |_: &_| {
            output::print_note(&format!("{} keeps running as process {}.\n{}", run.name, run.kept.pid(), run.kept))
        };
        let outcome = run.show_screen(&settings).inspect_err(goes_on)?;
        if let Some(code) = run.leave(outcome, arguments.wait || leaving_would_end_it()) {
            return Ok(code);
        }
    }
    run.wait(settings.interval)
}

/// An id that a person gives a run.
fn run_id(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("the id must not be empty".to_owned()),
        "none" => Err("the id must not be \"none\": torchrun uses that for runs without an id".to_owned()),
        id if id.len() > LONGEST_RUN_ID => Err(format!("the id must have at most {LONGEST_RUN_ID} bytes")),
        id if id.contains(char::is_control) => Err("the id must be one line of text".to_owned()),
        id => Ok(id.to_owned()),
    }
}

/// Variables that name the run of which the program is a start.
fn run_variables(id: Option<&str>, started: SystemTime) -> Vec<(&'static str, OsString)> {
    let started_ms = started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    let both = |id: &str| vec![(RUN, id.into()), (RUN_STARTED_MS, started_ms.to_string().into())];
    id.map(both).unwrap_or_default()
}

/// Whether the system would end the program as soon as we are gone: in a container whose only command this is, and
/// under Slurm, where a step ends with its task.
fn leaving_would_end_it() -> bool {
    let is_step =
        || fs::read_to_string(format!("/proc/{}/comm", parent_id())).is_ok_and(|comm| comm.trim() == "slurmstepd");
    std::process::id() == 1 || is_step()
}

/// What to start, and how to call it.
fn command(arguments: &RunArguments) -> anyhow::Result<(Vec<OsString>, String)> {
    if !arguments.command.is_empty() {
        let words: Vec<_> = arguments.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        return Ok((arguments.command.clone(), program_name(&words)));
    }
    let name = arguments.words.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok((own_command(&arguments.words)?, name))
}

/// A program that was started and is watched.
struct StartedProgram {
    kept: KeeperClient,
    name: String,
    started: SystemTime,
    on_hangup: OnHangup,
    interrupted: Interrupted,
    python: PythonWatch,
}

impl StartedProgram {
    /// Opens the live view; returns when a person leaves it, or at once if the program has ended already.
    fn show_screen(&self, settings: &Settings) -> anyhow::Result<Outcome> {
        match self.watch()? {
            Some(source) => {
                let source = Box::new(source.with(self.kept.inbox()));
                screen::show_started(source, settings, self.kept.log().map(Path::to_owned))
            }
            None => Ok(Outcome::Quit),
        }
    }

    /// The source for the program; `None` when it has ended, or nothing can be seen of it.
    fn watch(&self) -> anyhow::Result<Option<LayeredSource>> {
        let (process, dir) = (self.kept.process(), layout::sessions_dir());
        let Some(process) = process else { return Ok(None) };
        if let Err(error) = check_answers(&dir) {
            output::print_note(&format!("gnntop: warning: {error}. The program runs, and is not shown"));
            return Ok(None);
        }
        let session = program_session(process.pid(), self.started, self.kept.answers());
        let source = Launched::watch(process, Launcher::Gnntop, session).context("cannot read the sensors")?;
        let source = LayeredSource::new(Box::new(source));
        Ok(Some(match check_usable(&dir) {
            Some(Err(why)) => source.with(Hint(format!("hardware only: {why}"))),
            _ => source.with(self.python.clone()),
        }))
    }

    /// Does what the user left the view for. Returns our exit code if there is nothing to wait for.
    fn leave(&self, outcome: Outcome, stays: bool) -> Option<u8> {
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

    /// Waits for the program's end, and prints a line from time to time. Returns the exit code.
    fn wait(&self, interval: Duration) -> anyhow::Result<u8> {
        let mut view = self.watch()?.map(|source| PlainView::new(Box::new(source), interval));
        let mut give_up_at = None;
        loop {
            if self.interrupted.signal() == Some(SIGHUP) && self.on_hangup == OnHangup::Keep {
                return Ok(signals::exit_code(SIGHUP));
            }
            // If no one reads the lines any more, the program is still waited for.
            if view.as_mut().is_some_and(|lines| lines.poll().unwrap_or(true)) {
                view = None;
            }
            let code = self.kept.ended_within(if view.is_some() { Duration::ZERO } else { POLL_INTERVAL });
            if let Some(code) = code {
                let give_up_at = *give_up_at.get_or_insert_with(|| Instant::now() + GRACE);
                if view.is_none() || Instant::now() >= give_up_at {
                    return Ok(self.interrupted.signal().map_or(code, signals::exit_code));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Parsed {
        #[command(flatten)]
        run: RunArguments,
    }

    fn parse_words(words: &[&str]) -> anyhow::Result<(Option<PathBuf>, bool, Vec<OsString>)> {
        let mut run = Parsed::try_parse_from([&["run"][..], words].concat())?.run;
        run.take_own_options()?;
        Ok((run.record, run.force, run.words))
    }

    #[test]
    fn record_option_is_taken_before_or_after_the_training() {
        for words in [
            &["--record", "a.gnntop", "pna", "--steps", "9"][..],
            &["pna", "--record", "a.gnntop", "--steps", "9"],
            &["pna", "--steps", "9", "--record=a.gnntop"],
        ] {
            let (record, force, words) = parse_words(words).unwrap();
            assert_eq!((record, force), (Some(PathBuf::from("a.gnntop")), false));
            assert_eq!(words, ["pna", "--steps", "9"]);
        }
        assert!(parse_words(&["pna", "--record", "a.gnntop", "--force"]).unwrap().1);
        assert!(parse_words(&["pna", "--record"]).is_err());
        assert!(parse_words(&["pna", "--force"]).is_err());
        assert!(parse_words(&["--record", "a", "pna", "--record", "b"]).is_err());
        assert!(parse_words(&["--keep", "1G", "--record", "a", "pna", "--keep=2G"]).is_err());
        assert!(
            parse_words(&["pna", "--keep", "2G"]).is_err()
                && parse_words(&["pna", "--record", "a", "--keep", "2K"]).is_err()
        );
        assert!(
            parse_words(&["pna", "--slow", "9"]).is_err()
                && parse_words(&["pna", "--record", "a", "--slow", "0"]).is_err()
        );
        assert_eq!(parse_words(&["pna", "--record", "a", "--keep", "2G", "--slow", "9"]).unwrap().2, ["pna"]);
        let program = parse_words(&["--", "sh", "--record", "a"]).unwrap();
        assert_eq!((program.0, program.2.len()), (None, 0), "a program's words are its own");
    }
}
