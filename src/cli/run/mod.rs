//! `gnntop run`: starts a training run and opens the live view of it.
//!
//! ```text
//! keeper.rs    the process that owns the program: starts it, records it, waits for it (`gnntop keep`); starter.rs: who started it
//! started_program.rs  the program under the view, or without one, until somebody leaves it or it ends
//! keeper_client.rs  the program as seen by the command that started the keeper, and signals for it; messages.rs: messages between them, with paths of any bytes (path_bytes.rs)
//! register.rs  an entry for each program, for `gnntop stop` and `gnntop attach`; pid_space.rs: whether its processes are those here
//! post_mortem.rs  why it died
//! child.rs     the program itself, its exit code; spawn.rs, execution.rs: start it; python.rs: its Pythons; recording.rs: its recording
//! pushing.rs   its figures, sent to a collector; train_job.rs: its progress, told to Kubeflow; sharing.rs: its sessions, copied into a shared directory
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
mod execution;
mod inherited;
mod keeper;
mod keeper_client;
mod messages;
mod options;
mod path_bytes;
mod pid_space;
mod post_mortem;
mod pushing;
mod python;
mod recording;
mod register;
mod sharing;
mod spawn;
mod started_program;
mod starter;
mod train_job;
mod unattended;

use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal};
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context;
use signal_hook::consts::SIGTSTP;

use super::exit::UsageError;
use super::otlp::{OtlpArguments, OtlpSettings, parse_address};
use super::settings::{ScreenArguments, SensorArguments, Settings};
use super::{output, retention, screen, suggestion, train};
use child::own_command;
use gnntop_analysis::source::program_name::program_name;
use gnntop_sessions::layout::{GOAL, RUN, RUN_STARTED_MS};
use gnntop_wire::Goal;
use inherited::Inherited;
use keeper::{KeptOptions, RecordOptions};
use keeper_client::{KeeperClient, SignalRelay};
use options::{ResultArguments, StackArguments, given_twice, is_address, take_flag, take_optional_value, take_value};
use python::PythonWatch;
use started_program::{StartedProgram, note_not_shown};

pub(super) use collect::{CollectArguments, collect};
pub(super) use keeper::{KeepArguments, keep};
pub(super) use keeper_client::OnHangup;
pub(super) use python::program_session;
pub(super) use register::{
    ProgramEntry, SignalError, entries, find_by_process, find_by_session, launcher, unpublished,
};
pub(super) use sharing::{IS_WHERE_SESSIONS_ARE, is_same_directory};
pub(super) use unattended::{UnattendedEnd, UnattendedRun};

const EXAMPLES: &str = "\
Examples:
  gnntop run pna                            a built-in training
  gnntop run pna --steps 500                with options; see `gnntop train pna --help`
  gnntop run --record a.gnntop pna          and record it; --keep 2GiB bounds the file
  gnntop run --run night -- python train.py    again after it was killed: one history with the outage
  gnntop run -- python train.py --lr 0.1    any PyTorch training, unchanged; shows the hardware of other programs
  gnntop run --stacks 20 -- python train.py    and sample 20 Python stacks a second
  gnntop run --share ~/gnntop -- python train.py    to be watched from other machines: GNNTOP_DIR=~/gnntop gnntop
  gnntop run --otlp http://collector:4318 pna    and send its figures to an OpenTelemetry collector; see `gnntop push --help`
  gnntop run --to wandb -- python train.py  and write figures and the report into its W&B run, when that ends
  gnntop run --tty -- python train.py       a program that asks for something, or stops in a debugger

`q` leaves the view; the program and its recording continue. `gnntop attach` shows it again, `gnntop stop` stops it.
`Q`, or `q` with --wait, leaves the view and waits for the exit code. It always waits without a terminal or with
--plain.
`gnntop run` passes signals that are sent to it, such as SIGINT, SIGTERM and SIGUSR1, on to the program.
Exit codes: the program's own; 128 + N if signal N ended it; 127 if there is no such program, 126 if it cannot be executed;
130 interrupted; 0 if it keeps running without the view.";

/// Bytes of an id that a person gives a run.
const LONGEST_RUN_ID: usize = 200;

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
    /// How far the run is meant to go: 20000 (steps) or 10ep (epochs) [default: what its Trainer says]
    #[arg(long, value_name = "GOAL")]
    goal: Option<Goal>,
    /// Give the program this terminal, as for a debugger, input() or a password; `gnntop attach` shows it elsewhere
    #[arg(long)]
    tty: bool,
    /// Wait for the program's exit code even after `q`
    #[arg(long)]
    wait: bool,
    /// When the terminal closes (window, tmux, ssh): keep the program running, or send it SIGHUP
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnHangup::Keep)]
    on_hangup: OnHangup,
    /// Copy the sessions into this directory, for other machines that see it [default: GNNTOP_SHARE, else none]
    #[arg(long, value_name = "DIR")]
    share: Option<PathBuf>,
    #[command(flatten)]
    otlp: OtlpArguments,
    #[command(flatten)]
    results: ResultArguments,
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
    /// `--record`, `--keep`, `--force`, `--share`, `--otlp` and `--wait` mean the same after a training's name as before it. To the training
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
        if let Some(dir) = take_value(&mut self.words, "--share", "a directory, such as --share ~/gnntop")?
            && self.share.replace(dir.into()).is_some()
        {
            return Err(given_twice("--share"));
        }
        if let Some(address) = take_optional_value(&mut self.words, "--otlp", is_address) {
            let address = parse_address(&address.to_string_lossy())
                .map_err(|why| UsageError::with_message(format!("--otlp: {why}")))?;
            if self.otlp.otlp.replace(address).is_some() {
                return Err(given_twice("--otlp"));
            }
        }
        // clap takes an option that it does not know for the name.
        if let Some(option) = self.words.first().filter(|first| first.as_encoded_bytes().starts_with(b"-")) {
            let text = format!("unknown option {}; see gnntop run --help", option.to_string_lossy());
            return Err(UsageError::with_message(text));
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
    if arguments.tty {
        check_terminal()?;
        // The terminal goes, and the program's input with it.
        arguments.on_hangup = OnHangup::Stop;
    }
    let settings = usable_settings(&arguments.screen)?;
    let otlp = arguments.otlp.otlp.as_deref();
    // The keeper reads the same variables; a mistake in them is said before anything is started.
    otlp.map(OtlpSettings::new).transpose()?;
    let share = usable_share(arguments.share.as_deref())?;
    let stacks = arguments.stacks.variables(arguments.command.is_empty())?;
    let results = arguments.results.variables(arguments.command.is_empty())?;
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
    let is_python = !arguments.command.is_empty();
    let words =
        KeptOptions { name: &name, record, python: is_python, tty: arguments.tty, otlp, share: share.as_deref() };
    let words = words.command_line(&command);
    let relay = SignalRelay::catch(arguments.on_hangup, arguments.tty)?;
    let started = SystemTime::now();
    let sensors = arguments.sensors.variables().map(|(name, dir)| (name, dir.clone().into_os_string()));
    let variables = run_variables(arguments.run_id.as_deref(), started).into_iter().chain(stacks).chain(results);
    let variables = variables.chain(arguments.goal.map(|goal| (GOAL, goal.to_string().into())));
    let kept = KeeperClient::start(&words, sensors.chain(variables), arguments.tty)?;
    inherited.close();
    let interrupted = relay.forward(kept.signal_sender().try_clone().context("cannot talk to the keeper")?)?;
    let python = PythonWatch::new(kept.pid(), kept.answers().map(Path::to_owned));
    let run = StartedProgram { kept, name, started, on_hangup: arguments.on_hangup, interrupted, python };
    if arguments.tty {
        output::print_note(&format!("to watch {} in another terminal: gnntop attach {}", run.name, run.kept.pid()));
        return Ok(run.wait_for_end());
    }
    let left =
        if screen::is_wanted(&settings) && is_in_foreground() { show(&run, &settings, arguments.wait) } else { None };
    Ok(left.unwrap_or_else(|| run.wait(settings.interval)))
}

/// Shows the program until a person leaves it. Returns our exit code if there is nothing to wait for then.
fn show(run: &StartedProgram, settings: &Settings, waits: bool) -> Option<u8> {
    match run.show_screen(settings) {
        Ok(outcome) => run.leave(outcome, waits || leaving_would_end_it()),
        Err(error) => {
            note_not_shown(&error);
            None
        }
    }
}

/// The settings; the defaults with a warning where they have a mistake, so that the program starts.
fn usable_settings(arguments: &ScreenArguments) -> anyhow::Result<Settings> {
    let (settings, mistake) = Settings::load_or_default(arguments)?;
    if let Some(mistake) = mistake {
        output::print_error(&format!("warning: {:#}; no settings are used", anyhow::Error::from(mistake)));
    }
    Ok(settings)
}

/// The shared directory. One that is refused ends the command if it was asked for by it, else sharing.
fn usable_share(option: Option<&Path>) -> anyhow::Result<Option<PathBuf>> {
    let Some(dir) = sharing::shared_dir(option).context("cannot find the shared directory")? else { return Ok(None) };
    match sharing::refusal(&dir).map(|error| format!("cannot share in {}, which {error}", dir.display())) {
        None => Ok(Some(dir)),
        Some(why) if option.is_some() => anyhow::bail!(why),
        Some(why) => {
            output::print_error(&format!("warning: {why}; GNNTOP_SHARE is not used"));
            Ok(None)
        }
    }
}

/// Whether there is a terminal to give to the program, which then has all keys: Ctrl-Z does not suspend us.
fn check_terminal() -> anyhow::Result<()> {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Err(UsageError::with_message("--tty needs a terminal; without it, piped input goes to the program"));
    }
    signal_hook::flag::register(SIGTSTP, Arc::default())?;
    Ok(())
}

/// An id that a person gives a run.
pub(super) fn run_id(text: &str) -> Result<String, String> {
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

/// Whether the terminal is ours now. What a shell has started by `&` is stopped if it draws there.
fn is_in_foreground() -> bool {
    // SAFETY: the calls have no access to our memory.
    let (group, own) = unsafe { (libc::tcgetpgrp(libc::STDOUT_FILENO), libc::getpgrp()) };
    // It is 0 for a group that we cannot see, and negative if standard output is no terminal of ours.
    group <= 0 || group == own
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
        assert_eq!(parse_words(&["pna", "--otlp", "http://a:1", "--otlpx"]).unwrap().2, ["pna", "--otlpx"]);
        assert!(parse_words(&["--otlp", "http://a:1", "pna", "--otlp"]).is_err(), "twice");
        assert!(parse_words(&["--otlp", "pna"]).is_err(), "the name of a training is no address");
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
