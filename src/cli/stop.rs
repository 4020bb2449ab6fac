//! `gnntop stop`: ends a program that `gnntop run` has started and that keeps running without a view.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use gnntop_analysis::figures::elapsed_time;
use gnntop_analysis::source::target::{self, Target, TargetError, is_same_program};
use rustix::process::Signal;

use super::exit::{FAILURE, SUCCESS};
use super::run::{self, ProgramEntry, SignalError};
use super::{named, output, quantities};

const EXAMPLES: &str = "\
Examples:
  gnntop stop             the only running program that `gnntop run` has started
  gnntop stop 4711        by process id, or that of one of its child processes
  gnntop stop train.py    by name, with or without its interpreter, by the name's beginning, or by a run's id
  gnntop stop 4711 --kill immediately; the program cannot save anything

Sends SIGINT, as Ctrl-C does, and SIGTERM if the program has not ended after 10 s.";

/// A program that has not ended by then gets SIGTERM.
const POLITE: Duration = Duration::from_secs(10);
/// Time between two looks whether it has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Stop a program that `gnntop run` has started
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct StopArguments {
    /// The program by name, process id, run or their beginning [default: the only one]
    #[arg(value_name = "NAME|PID")]
    program: Option<String>,
    /// Send SIGKILL
    #[arg(long)]
    kill: bool,
    /// How long to wait for the program to end
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = quantities::parse_duration)]
    within: Duration,
}

/// Does `gnntop stop`.
pub(super) fn stop(arguments: &StopArguments) -> anyhow::Result<u8> {
    let entry = find(arguments.program.as_deref())?;
    let ProgramEntry { name, program, .. } = &entry;
    // Its keeper takes SIGQUIT as a request to kill, and passes the others on.
    send(&entry, if arguments.kill { Signal::QUIT } else { Signal::INT })?;
    let began = Instant::now();
    let mut is_polite = !arguments.kill;
    while entry.is_kept() {
        if is_polite && began.elapsed() >= POLITE {
            is_polite = false;
            send(&entry, Signal::TERM)?;
        }
        if began.elapsed() >= arguments.within {
            output::print_error(&format!(
                "{name} (process {program}) has not ended yet; `gnntop stop {program} --kill` kills it"
            ));
            return Ok(FAILURE);
        }
        thread::sleep(POLL_INTERVAL);
    }
    match entry.unkept() {
        SignalError::Ended(_) => output::print(&format!("{name} (process {program}) has ended"))?,
        lost => return Err(lost.into()),
    }
    Ok(SUCCESS)
}

/// Sends a signal, unless the program has just ended.
fn send(entry: &ProgramEntry, signal: Signal) -> Result<(), SignalError> {
    match entry.signal(signal) {
        Err(SignalError::Ended(_)) => Ok(()),
        sent => sent,
    }
}

/// The program that is meant.
fn find(named: Option<&str>) -> anyhow::Result<ProgramEntry> {
    let (kept, lost): (Vec<_>, Vec<_>) = run::entries().into_iter().partition(|(_, is_kept)| *is_kept);
    let running = |entries: Vec<(ProgramEntry, bool)>, is_it: fn(&ProgramEntry) -> bool| {
        let entries: Vec<_> = entries.into_iter().map(|(entry, _)| entry).filter(is_it).collect();
        named.map_or_else(|| entries.clone(), |named| matching(&entries, named))
    };
    let mut kept = running(kept, |entry| entry.code.is_none());
    if kept.is_empty() {
        kept = running(lost, ProgramEntry::has_lost_keeper);
    }
    match (kept.as_slice(), named) {
        ([only], _) => Ok(only.clone()),
        ([], None) => bail!("`gnntop run` has no running program"),
        ([], Some(named)) => find_by_session(named),
        (several, _) => {
            let all: Vec<_> = several.iter().map(|entry| format!("{} ({})", entry.program, entry.name)).collect();
            bail!("several programs are running: {}; choose one by its process id", all.join(", "))
        }
    }
}

/// Those of this process, called so, or beginning so. An id that no program of ours has may be meant as its container counts.
fn matching(kept: &[ProgramEntry], named: &str) -> Vec<ProgramEntry> {
    let of_process = || run::find_by_process(named.parse().ok()?).filter(|entry| entry.code.is_none());
    if let Some(one) = of_process() {
        return vec![one];
    }
    let elsewhere: Vec<_> = kept.iter().filter(|entry| named.parse() == Ok(entry.program)).cloned().collect();
    if !elsewhere.is_empty() {
        return elsewhere;
    }
    let called = |is_it: &dyn Fn(&str) -> bool| kept.iter().filter(|entry| is_it(&entry.name)).cloned().collect();
    let same: Vec<ProgramEntry> = called(&|name| is_same_program(name, named));
    if same.is_empty() { called(&|name| name.split(' ').any(|word| word.starts_with(named))) } else { same }
}

/// The program that publishes the session of this name.
fn find_by_session(named: &str) -> anyhow::Result<ProgramEntry> {
    let elsewhere = "stop other programs where they were started, or with kill";
    let session = match named::find(Some(named)) {
        Ok(Target::Session(session)) => session,
        Ok(_) => bail!("`gnntop run` has not started {named}; {elsewhere}"),
        Err(TargetError::UnknownName { .. } | TargetError::UnknownPid { .. }) => {
            bail!("`gnntop run` has no running program {named}; {elsewhere}")
        }
        Err(error) => return Err(error.into()),
    };
    if !session.alive {
        let ago = session.last_active.and_then(|time| time.elapsed().ok()).map(elapsed_time);
        let when = ago.map(|ago| format!(" {ago} ago")).unwrap_or_default();
        bail!("{} has ended{when}", target::label(&session));
    }
    if session.copy.is_some() {
        bail!("{} runs on {}: stop it there", target::label(&session), session.info.host);
    }
    let entry = run::find_by_session(&session.info).filter(|entry| entry.code.is_none());
    entry.with_context(|| format!("`gnntop run` has not started {}; {elsewhere}", target::label(&session)))
}
