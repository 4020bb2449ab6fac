//! `gnntop run`: starts a training and opens the live view on it.
//!
//! The program's output goes into a log, never over the screen. When a person leaves the view the program goes
//! on; its exit code becomes ours.

mod child;
mod recording;
mod unattended;

use std::ffi::OsString;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;

use super::plain::PlainView;
use super::sensing::SensorArguments;
use super::settings::{ScreenArguments, Settings};
use super::{output, screen, signals, train};
use crate::source::{Launched, Source, discover};
use child::Child;
use recording::Recording;

pub(super) use unattended::{Ended, Unattended};

const EXAMPLES: &str = "\
Examples:
  gnntop run pna                            a built-in training
  gnntop run pna --steps 500                with settings, see `gnntop train pna --help`
  gnntop run --record a.gnntop pna          and record it
  gnntop run -- python train.py --lr 0.1    any program; one that does not publish shows its hardware only

Leaving the view with `q` leaves the training running; Ctrl-C then ends it.
Exit codes: those of the program, 128 + N where signal N ended it, 130 interrupted.";

/// Time between two looks whether the program has ended.
const WAIT_INTERVAL: Duration = Duration::from_millis(50);
/// After the program's end the end of its session is waited for this long.
const GRACE: Duration = Duration::from_secs(2);

/// Start a training and watch it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RunArguments {
    /// Record the session into this file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// With --record: write over a file that is there
    #[arg(long, requires = "record")]
    force: bool,
    #[command(flatten)]
    sensors: SensorArguments,
    #[command(flatten)]
    screen: ScreenArguments,
    /// A built-in training, such as pna, and its settings
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

/// Does `gnntop run`.
pub(super) fn run(arguments: RunArguments) -> anyhow::Result<u8> {
    let settings = Settings::of(&arguments.screen)?;
    arguments.sensors.apply();
    let (command, name) = command(&arguments)?;
    let file = arguments.record.as_deref().map(|path| Recording::create(path, arguments.force)).transpose()?;
    let interruption = signals::Interruption::catch()?;
    let started = SystemTime::now();
    let mut child = Child::start(&command, &name, arguments.sensors.variables())?;
    let recording = file.map(|file| file.follow(child.pid(), started)).transpose()?;
    if screen::is_wanted(&settings) {
        show_screen(&child, started, &settings)?;
        if child.try_wait()?.is_none() {
            let (pid, log) = (child.pid(), child.log());
            output::note(&format!("{name} goes on as process {pid}; Ctrl-C ends it. Its output: {log}"));
        }
    }
    let code = wait(&mut child, started, settings.interval, &interruption)?;
    child.report_failure(code);
    if let Some(recording) = recording {
        recording.finish()?;
    }
    Ok(code)
}

/// What to start, and how to call it.
fn command(arguments: &RunArguments) -> anyhow::Result<(Vec<OsString>, String)> {
    if let Some(program) = arguments.command.first() {
        let name = PathBuf::from(program);
        let name = name.file_name().map_or_else(|| "program".into(), |name| name.to_string_lossy().into_owned());
        return Ok((arguments.command.clone(), name));
    }
    let name = arguments.words.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    train::check_name(&name)?;
    Ok((own_command(&arguments.words)?, name))
}

/// How this program starts a workload, given as its name and its settings.
fn own_command(words: &[OsString]) -> anyhow::Result<Vec<OsString>> {
    let own = std::env::current_exe().context("cannot find the gnntop program itself")?;
    let mut command = vec![own.into_os_string(), "train".into()];
    command.extend(words.iter().cloned());
    Ok(command)
}

/// Opens the live view; returns when a person leaves it, or at once if the program has ended already.
fn show_screen(child: &Child, started: SystemTime, settings: &Settings) -> anyhow::Result<()> {
    if let Some(source) = watch(child, started)? {
        screen::on_screen(source, settings, child.log_path())?;
    }
    Ok(())
}

/// The source for the child; `None` when it has ended.
fn watch(child: &Child, started: SystemTime) -> anyhow::Result<Option<Box<dyn Source>>> {
    let Some(process) = child.process() else { return Ok(None) };
    let source = Launched::watch(process, started, &discover::sessions_dir()).context("cannot read the sensors")?;
    Ok(Some(Box::new(source)))
}

/// Waits for the child's end with a line now and then. A signal is passed on to it. Gives the exit code.
fn wait(
    child: &mut Child,
    started: SystemTime,
    interval: Duration,
    interruption: &signals::Interruption,
) -> anyhow::Result<u8> {
    let mut view = watch(child, started)?.map(|source| PlainView::new(source, interval));
    let mut interrupted = None;
    let mut give_up_at = None;
    loop {
        if let Some(signal) = interruption.take() {
            child.signal(signal);
            interrupted = Some(signal);
        }
        let code = child.try_wait()?;
        match &mut view {
            Some(lines) => {
                // Where nobody reads the lines any more, the child is waited for all the same.
                if lines.poll().unwrap_or(true) {
                    view = None;
                }
            }
            None => thread::sleep(WAIT_INTERVAL),
        }
        if let Some(code) = code {
            let give_up_at = *give_up_at.get_or_insert_with(|| Instant::now() + GRACE);
            if view.is_none() || Instant::now() >= give_up_at {
                return Ok(interrupted.map_or(code, signals::exit_code));
            }
        }
    }
}
