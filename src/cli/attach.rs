//! `gnntop attach`, and `gnntop` alone: watch a live session, or one that has ended. A Python that publishes nothing is joined if
//! possible.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context;

use super::exit::{FAILURE, SUCCESS};
use super::far;
use super::layers::{Hint, LayeredSource};
use super::named::{self, NAMED};
use super::run;
use super::settings::{ScreenArguments, SensorArguments, Settings};
use super::{output, screen};
use crate::python::joining::{JoinError, JoinedPython};
use crate::python::remote::RemoteError;
use gnntop_analysis::source::playback::PlaybackOptions;
use gnntop_analysis::source::target::{self, Target, TargetError};
use gnntop_analysis::source::{Launched, Playback, ProgramSession, Source, follow};
use gnntop_sessions::{discover, layout};

const EXAMPLES: &str = "\
Examples:
  gnntop attach               the only live session
  gnntop attach 4711          by process id; joins a running Python 3.14 or newer until you leave, and shows the hardware
                              of any other program that does not publish
  gnntop attach pna           by name
  gnntop attach job-17        all ranks of a run, by its id or that of any of its sessions; `R` compares them
  gnntop attach pna --against before.gnntop
                              compare two runs; `9` shows them side by side
  gnntop attach /run/user/1000/gnntop/pna-4711-5f3a90c2
                              by directory, even if the run was killed";

/// Watch a session without affecting the run
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct AttachArguments {
    /// A session by name, process id, run or their beginning, or its directory [default: the only live one]
    #[arg(value_name = NAMED)]
    session: Option<String>,
    /// Another session or recording to compare with; `9` shows the comparison
    #[arg(long, value_name = NAMED)]
    against: Option<String>,
    #[command(flatten)]
    sensors: SensorArguments,
    #[command(flatten)]
    screen: ScreenArguments,
}

/// Does `gnntop attach`.
pub(super) fn attach(arguments: &AttachArguments) -> anyhow::Result<u8> {
    let settings = Settings::load(&arguments.screen)?;
    arguments.sensors.apply();
    let dir = layout::sessions_dir();
    let target = named::find(arguments.session.as_deref())?;
    let outside = if let Target::Process(process) = &target { Some(process.pid()) } else { None };
    let log = log_path(&target);
    let watched = watched(&target);
    let source = open(target, &dir)?;
    // It is joined for as long as it is shown.
    let (hint, _joined) = outside.and_then(join).unzip();
    let source: Box<dyn Source> = match hint {
        Some(hint) => Box::new(LayeredSource::new(source).with(hint)),
        None => source,
    };
    let code = screen::show_against(source, named::open_against(arguments.against.as_deref())?, &settings, log)?;
    if let Some((name, pid)) = watched.filter(|(_, pid)| screen::is_wanted(&settings) && is_alive(*pid, &dir)) {
        let again = far::address().unwrap_or_else(|| pid.to_string());
        output::print_note(&format!("{name} keeps running; to see it again: gnntop attach {again}"));
    }
    Ok(code)
}

/// What is watched in words, and its process id; `None` of a recording.
fn watched(target: &Target) -> Option<(String, u32)> {
    match target {
        Target::Session(session) => {
            Some((format!("{} (process {})", session.info.name, session.info.pid), session.info.pid))
        }
        Target::Process(process) => Some((format!("process {}", process.pid()), process.pid())),
        Target::Recording(_) => None,
    }
}

/// Whether a process publishes, or is one that `gnntop run` keeps.
fn is_alive(pid: u32, dir: &Path) -> bool {
    let sessions = discover::list(dir).map(|listed| listed.sessions).unwrap_or_default();
    sessions.iter().any(|session| session.alive && session.info.pid == pid)
        || run::unpublished(&sessions).iter().any(|program| program.program == pid)
}

/// The output of a program that `gnntop run` has started.
fn log_path(target: &Target) -> Option<PathBuf> {
    match target {
        Target::Session(session) => run::find_by_session(&session.info)?.log,
        Target::Process(process) => run::find_by_process(process.pid())?.log,
        Target::Recording(_) => None,
    }
}

/// Does `gnntop` alone: opens the only live session, offers a choice, or says how to get a session.
pub(super) fn choose(arguments: &ScreenArguments) -> anyhow::Result<u8> {
    let settings = Settings::load(arguments)?;
    let dir = layout::sessions_dir();
    match named::find(None) {
        Ok(target) => {
            let log = log_path(&target);
            screen::show(open(target, &dir)?, &settings, log)
        }
        Err(TargetError::NoSession { .. } | TargetError::SeveralLive { .. })
            if screen::is_wanted(&settings) && !screen::catalog().entries()?.is_empty() =>
        {
            screen::choose(&settings)
        }
        Err(TargetError::NoSession { dir }) => {
            output::print(&format!("No live sessions in {}.", dir.display()))?;
            output::print("Start a training run with `gnntop run pna`, watch any program with `gnntop run -- CMD`,")?;
            output::print("play a recording with `gnntop replay FILE`, or see `gnntop --help`.")?;
            Ok(SUCCESS)
        }
        Err(TargetError::SeveralLive { .. }) => {
            let sessions = discover::list(&dir)?.sessions;
            for session in sessions.iter().filter(|session| session.alive) {
                output::print(&format!("{}  {}", target::label(session), session.info.command))?;
            }
            for program in run::unpublished(&sessions) {
                output::print(&format!("{}  {}", program.label(), program.command))?;
            }
            output::print_error("several sessions are live; choose one with `gnntop attach PID`");
            Ok(FAILURE)
        }
        Err(error) => Err(error.into()),
    }
}

/// The source of a target.
pub(super) fn open(target: Target, dir: &Path) -> anyhow::Result<Box<dyn Source>> {
    Ok(match target {
        Target::Session(session) => follow(&session),
        Target::Recording(path) => Box::new(Playback::open(path, PlaybackOptions::default())?),
        Target::Process(process) => {
            let session = ProgramSession::new(process.pid(), SystemTime::now(), dir.to_owned());
            let launcher = run::launcher(process.pid());
            Box::new(Launched::watch(process, launcher, session).context("cannot read the sensors")?)
        }
    })
}

/// The name of a session that a program has ended, though it still runs.
fn ended_session(program: &run::ProgramEntry) -> Option<String> {
    let sessions = discover::list(&layout::sessions_dir()).ok()?.sessions;
    sessions
        .into_iter()
        .find(|session| !session.alive && program.publishes(&session.info))
        .map(|session| session.info.name)
}

/// Joins the Python of a process for as long as the result lives, and says whether that worked; `None` if it runs none.
fn join(pid: u32) -> Option<(Hint, Option<JoinedPython>)> {
    let (joined, text) = match JoinedPython::join(pid) {
        Ok(joined) => (Some(joined), "joined its Python: steps appear from the next backward pass on".to_owned()),
        Err(JoinError::Remote(RemoteError::NoPython)) => return None,
        Err(error) if let Some(program) = run::find_by_process(pid) => {
            let how = match ended_session(&program) {
                Some(name) => format!("it has ended its session: `gnntop report {name}` shows its steps"),
                None => format!("{error}; `gnntop run` shows its steps as soon as it trains"),
            };
            (None, format!("hardware only: {how}"))
        }
        Err(error) => (
            None,
            format!(
                "hardware only: {error}; start it with `gnntop run -- python ...`, or add `import gnntop; gnntop.start()` to it"
            ),
        ),
    };
    output::print_note(&format!("process {pid}: {text}"));
    Some((Hint(text), joined))
}
