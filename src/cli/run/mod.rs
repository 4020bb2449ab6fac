//! `gnntop run`: starts a training and opens the live view on it.
//!
//! The program's output goes into a log, never over the screen. When a person leaves the view the program goes
//! on; its exit code becomes ours.

mod child;
mod python;
mod recording;
mod unattended;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, bail};

use super::plain::PlainView;
use super::sensing::SensorArguments;
use super::settings::{ScreenArguments, Settings};
use super::{output, screen, signals, train};
use child::{Child, WAIT_INTERVAL, own_command};
use gnntop_analysis::source::{Launched, Source, discover};
use python::{Prepared, Watched};
use recording::{Recording, Unpublished};

pub(super) use unattended::{Ended, Unattended};

const EXAMPLES: &str = "\
Examples:
  gnntop run pna                            a built-in training
  gnntop run pna --steps 500                with settings, see `gnntop train pna --help`
  gnntop run --record a.gnntop pna          and record it
  gnntop run -- python train.py --lr 0.1    any Python training, as it is; of other programs the hardware is seen

Leaving the view with `q` leaves the training running; Ctrl-C then ends it.
Exit codes: those of the program, 128 + N where signal N ended it, 130 interrupted.";

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

impl RunArguments {
    /// `--record` and `--force` behind a training's name mean what they mean before it. To the training itself `--record` would
    /// say to write that file in the place of publishing, and there would be nothing to watch.
    fn take_own_from_words(&mut self) -> anyhow::Result<()> {
        if let Some(at) = self.words.iter().position(|word| word == "--force") {
            self.words.remove(at);
            self.force = true;
        }
        let is_record = |word: &OsString| word == "--record" || word.as_bytes().starts_with(b"--record=");
        while let Some(at) = self.words.iter().position(is_record) {
            let word = self.words.remove(at);
            let file = match word.as_bytes().strip_prefix(b"--record=") {
                Some(file) => OsStr::from_bytes(file).to_owned(),
                None if at < self.words.len() => self.words.remove(at),
                None => bail!("--record needs a file, such as --record a.gnntop"),
            };
            if self.record.replace(file.into()).is_some() {
                bail!("--record is given twice; one file is recorded");
            }
        }
        if self.force && self.record.is_none() {
            bail!("--force is about the file of --record, which is not given");
        }
        Ok(())
    }
}

/// Does `gnntop run`.
pub(super) fn run(mut arguments: RunArguments) -> anyhow::Result<u8> {
    arguments.take_own_from_words()?;
    let settings = Settings::of(&arguments.screen)?;
    arguments.sensors.apply();
    let (command, name) = command(&arguments)?;
    let file = arguments.record.as_deref().map(|path| Recording::create(path, arguments.force)).transpose()?;
    let interruption = signals::Interruption::catch()?;
    let python = if arguments.command.is_empty() { Prepared::nothing() } else { Prepared::new() };
    let started = SystemTime::now();
    let sensors = arguments.sensors.variables().map(|(name, path)| (name, path.as_os_str()));
    let variables = sensors.chain(python.variables().map(|(name, value)| (name, value.as_os_str())));
    let mut child = Child::start(&command, &name, variables)?;
    let python = python.follow(child.pid());
    let recording = file.map(|file| file.follow(child.pid(), started, Unpublished::Hardware)).transpose()?;
    if screen::is_wanted(&settings) {
        show_screen(&child, started, &settings, &python)?;
        if child.try_wait()?.is_none() {
            let (pid, log) = (child.pid(), child.log());
            output::note(&format!("{name} goes on as process {pid}; Ctrl-C ends it. Its output: {log}"));
        }
    }
    let code = wait(&mut child, started, settings.interval, &interruption, &python)?;
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

/// Opens the live view; returns when a person leaves it, or at once if the program has ended already.
fn show_screen(child: &Child, started: SystemTime, settings: &Settings, python: &Watched) -> anyhow::Result<()> {
    if let Some(source) = watch(child, started, python)? {
        screen::on_screen(source, settings, child.log_path())?;
    }
    Ok(())
}

/// The source for the child; `None` when it has ended.
fn watch(child: &Child, started: SystemTime, python: &Watched) -> anyhow::Result<Option<Box<dyn Source>>> {
    let Some(process) = child.process() else { return Ok(None) };
    let source = Launched::watch(process, started, &discover::sessions_dir()).context("cannot read the sensors")?;
    Ok(Some(python.explain(Box::new(source))))
}

/// Waits for the child's end with a line now and then. A signal is passed on to it. Gives the exit code.
fn wait(
    child: &mut Child,
    started: SystemTime,
    interval: Duration,
    interruption: &signals::Interruption,
    python: &Watched,
) -> anyhow::Result<u8> {
    let mut view = watch(child, started, python)?.map(|source| PlainView::new(source, interval));
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Parsed {
        #[command(flatten)]
        run: RunArguments,
    }

    fn taken(words: &[&str]) -> anyhow::Result<(Option<PathBuf>, bool, Vec<OsString>)> {
        let mut run = Parsed::try_parse_from([&["run"][..], words].concat())?.run;
        run.take_own_from_words()?;
        Ok((run.record, run.force, run.words))
    }

    #[test]
    fn where_to_record_may_stand_before_the_training_or_behind_it() {
        for words in [
            &["--record", "a.gnntop", "pna", "--steps", "9"][..],
            &["pna", "--record", "a.gnntop", "--steps", "9"],
            &["pna", "--steps", "9", "--record=a.gnntop"],
        ] {
            let (record, force, words) = taken(words).unwrap();
            assert_eq!((record, force), (Some(PathBuf::from("a.gnntop")), false));
            assert_eq!(words, ["pna", "--steps", "9"]);
        }
        assert!(taken(&["pna", "--record", "a.gnntop", "--force"]).unwrap().1);
        assert!(taken(&["pna", "--record"]).is_err());
        assert!(taken(&["pna", "--force"]).is_err());
        assert!(taken(&["--record", "a", "pna", "--record", "b"]).is_err());
        let program = taken(&["--", "sh", "--record", "a"]).unwrap();
        assert_eq!((program.0, program.2.len()), (None, 0), "a program's words are its own");
    }
}
