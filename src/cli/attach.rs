//! `gnntop attach`, and `gnntop` alone: watch a session that is going on, or one that has ended.

use std::io::{self, BufRead, IsTerminal};
use std::path::Path;
use std::time::SystemTime;

use anyhow::Context;

use super::settings::{ScreenArguments, Settings};
use super::{FAILURE, SUCCESS, output, screen};
use crate::source::target::{self, Target, TargetError};
use crate::source::{Launched, Live, Playback, Source, discover, playback::PlaybackOptions};

const EXAMPLES: &str = "\
Examples:
  gnntop attach               the only live session
  gnntop attach 4711          by process id; a program that does not publish shows its hardware only
  gnntop attach pna           by name
  gnntop attach pna --against before.gnntop
                              the key 9 shows the two side by side
  gnntop attach /run/user/1000/gnntop/pna-4711-5f3a90c2
                              by directory, also of a run that was killed";

/// Watch a session; look as long as you like, the run does not notice
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct AttachArguments {
    /// Process id, name or directory of the session; without it the only live one
    #[arg(value_name = "PID|NAME|DIR")]
    session: Option<String>,
    /// Another session or recording to compare with, in the view behind the key 9
    #[arg(long, value_name = "PID|NAME|DIR|FILE")]
    against: Option<String>,
    #[command(flatten)]
    screen: ScreenArguments,
}

/// Does `gnntop attach`.
pub(super) fn attach(arguments: &AttachArguments) -> anyhow::Result<u8> {
    let settings = Settings::of(&arguments.screen)?;
    let dir = discover::sessions_dir();
    let source = open(target::resolve(arguments.session.as_deref(), &dir)?, &dir)?;
    screen::show_against(source, arguments.against.as_deref(), &settings)
}

/// Does `gnntop` alone: opens the only live session, offers several, or says how to get one.
pub(super) fn choose(arguments: &ScreenArguments) -> anyhow::Result<u8> {
    let settings = Settings::of(arguments)?;
    let dir = discover::sessions_dir();
    match target::resolve(None, &dir) {
        Ok(target) => screen::show(open(target, &dir)?, &settings),
        Err(TargetError::NoSession { dir }) => {
            output::say(&format!("No training is being published in {}.", dir.display()))?;
            output::say("Start one with `gnntop run pna`, watch any program with `gnntop run -- CMD`,")?;
            output::say("play a recording with `gnntop replay FILE`, or see `gnntop --help`.")?;
            Ok(SUCCESS)
        }
        Err(TargetError::Ambiguous { .. }) => pick(&dir, &settings),
        Err(error) => Err(error.into()),
    }
}

/// Offers the live sessions by number.
fn pick(dir: &Path, settings: &Settings) -> anyhow::Result<u8> {
    let live: Vec<_> = discover::list(dir)?.sessions.into_iter().filter(|session| session.alive).collect();
    for (at, session) in live.iter().enumerate() {
        output::say(&format!("{:3}  {}  {}", at + 1, target::label(session), session.info.command))?;
    }
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        output::complain("several sessions are live: name one with `gnntop attach PID`");
        return Ok(FAILURE);
    }
    output::say("Which one? Its number, or Enter for none.")?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    let Ok(number) = answer.trim().parse::<usize>() else { return Ok(SUCCESS) };
    let session = number.checked_sub(1).and_then(|at| live.get(at)).context("there is no such number")?;
    screen::show(Box::new(Live::follow(&session.dir)), settings)
}

/// The source behind a target.
pub(super) fn open(target: Target, dir: &Path) -> anyhow::Result<Box<dyn Source>> {
    Ok(match target {
        Target::Session(session) => Box::new(Live::follow(&session.dir)),
        Target::Recording(path) => Box::new(Playback::open(path, PlaybackOptions::default())?),
        Target::Process(process) => {
            Box::new(Launched::watch(process, SystemTime::now(), dir).context("cannot read the sensors")?)
        }
    })
}
