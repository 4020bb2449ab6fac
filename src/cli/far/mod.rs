//! Sessions of other machines: `gnntop attach ssh:node[1-8]`, `gnntop report slurm:4711`. A command with such an address runs
//! here, on copies of the sessions that are there; or there, where it acts on the program itself.
//!
//! ```text
//! address.rs   what is typed
//!      ▼
//! carrier.rs   ssh or srun to each machine, as a process.rs; job.rs: where a Slurm job has its sessions there
//!      ▼
//! receiver.rs  the near end, with copied.rs    ◀── message.rs ──▶    sender.rs  the far end: `gnntop send`
//!      ▼
//! the command itself, as a process of its own whose sessions directory has the copies: copies_dir.rs
//!
//! act.rs       what runs there instead, read by lines.rs
//! ended_job.rs what is here of a Slurm job that runs no more
//! ```
//!
//! The training knows nothing of it: the far end only reads files.

mod act;
mod address;
mod carrier;
mod copied;
mod copies_dir;
mod distinct;
mod ended_job;
mod job;
mod lines;
mod message;
mod process;
mod receiver;
mod sender;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use gnntop_analysis::source::runs;
use gnntop_sessions::{PrivateDir, discover, layout};
use signal_hook::consts::SIGINT;

use super::exit::UsageError;
use super::output;
use super::passing_on;
use super::signals::Interruption;
use address::FarAddress;
use carrier::{Carrier, NoMachines};
use copied::Copies;
use copies_dir::CopiesDir;
use process::exit_code;
use receiver::Line;

pub(super) use copies_dir::abandoned;
pub(super) use job::{JobDirArguments, job_dir};
pub(super) use sender::{SendArguments, send};

/// Commands that read sessions: they run here, on copies.
const READING: [&str; 9] = ["attach", "record", "report", "check", "export", "serve", "top", "watch", "push"];
/// Commands that act on a program, or whose answer is short: they run there.
const ACTING: [&str; 3] = ["list", "stop", "trace"];
/// Time between two looks at what is awaited.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time between two looks whether the lines have ended, and after which nobody waits for that.
const TURN: Duration = Duration::from_millis(5);
const CLOSING: Duration = Duration::from_secs(2);
/// After this time, it is said what is awaited.
const SILENCE: Duration = Duration::from_secs(1);

/// Environment variable: the address for which this process has copies.
const ADDRESS: &str = "GNNTOP_FAR";

/// The address of other machines, if the sessions directory of this process has copies of theirs.
pub(super) fn address() -> Option<String> {
    std::env::var(ADDRESS).ok()
}

/// Does a command whose words have an address of other machines; `None` if they have none.
pub(super) fn run(words: &[OsString]) -> Option<anyhow::Result<u8>> {
    let command = words.get(1)?.to_str().filter(|command| READING.contains(command) || ACTING.contains(command))?;
    let own = words.iter().take_while(|word| *word != "--");
    let mut addresses = own.enumerate().filter_map(|(at, word)| Some((at, FarAddress::parse(word.to_str()?)?)));
    let (at, address) = addresses.next()?;
    if let Some((second, _)) = addresses.next() {
        let (first, second) = (words[at].to_string_lossy(), words[second].to_string_lossy());
        return Some(Err(UsageError::with_message(format!(
            "{first} and {second}: a command takes one address. Machines of one run go into one, as in ssh:a,b; of several \
             runs, `gnntop record` each first"
        ))));
    }
    Some(address.map_err(UsageError::with_message).and_then(|address| {
        if ACTING.contains(&command) { act::act(&words[1..], at - 1, &address) } else { read(words, at, &address) }
    }))
}

/// Runs the command here, on copies.
fn read(words: &[OsString], at: usize, address: &FarAddress) -> anyhow::Result<u8> {
    let interruption = Interruption::catch()?;
    let carriers = match Carrier::to(&address.place, &interruption).map_err(anyhow::Error::downcast::<NoMachines>) {
        Ok(carriers) => carriers,
        Err(Ok(none)) => return read_ended_job(words, at, &none, address.run.as_deref(), &interruption),
        Err(Err(error)) => return Err(error),
    };
    let temporary = CopiesDir::create().context("no room for copies")?;
    let sessions = temporary.sessions();
    let copies = Arc::new(Copies::new(PrivateDir::create(&sessions)?));
    let lines = carriers.into_iter().map(|carrier| Line::open(carrier, address.run.clone(), Arc::clone(&copies)));
    let (lines, threads): (Vec<_>, Vec<_>) = lines.collect::<io::Result<Vec<_>>>()?.into_iter().unzip();
    let done = wait_for_copies(&lines, &interruption).and_then(|()| {
        let session = match reads_directories(words) {
            true => Some(sessions.clone().into_os_string()),
            false => address.run.clone().map(OsString::from).or_else(|| ended(&sessions)),
        };
        on_copies(&in_place(words, at, session), &sessions, Some(&words[at]), &interruption)
    });
    lines.iter().for_each(|line| line.close());
    // One that hangs in a file system ends with this process.
    let until = Instant::now() + CLOSING;
    while threads.iter().any(|thread| !thread.is_finished()) && Instant::now() < until {
        thread::sleep(TURN);
    }
    done
}

/// Runs the command on what a job that runs no more has left in this machine's sessions directory.
fn read_ended_job(
    words: &[OsString],
    at: usize,
    none: &NoMachines,
    run: Option<&str>,
    interruption: &Interruption,
) -> anyhow::Result<u8> {
    let dir = layout::sessions_dir();
    let found = ended_job::find(&none.job, run, &dir).map_err(|why| anyhow!("{none}; {why}"))?;
    let (session, taken) = match reads_directories(words) {
        true => (dir.clone(), "all sessions here are shown"),
        false => (found, "its sessions here are taken"),
    };
    output::print_note(&format!("{none}; {taken}"));
    on_copies(&in_place(words, at, Some(session.into())), &dir, None, interruption)
}

/// Whether the command's words are directories of sessions, and not sessions.
fn reads_directories(words: &[OsString]) -> bool {
    words.get(1).is_some_and(|command| command == "top")
}

/// The words behind the program's name, with this instead of the address.
fn in_place(words: &[OsString], at: usize, session: Option<OsString>) -> Vec<OsString> {
    let mut own = words.to_vec();
    own.splice(at..=at, session);
    own.split_off(1)
}

/// Waits until each machine has sent what it has, or cannot.
fn wait_for_copies(lines: &[Arc<Line>], interruption: &Interruption) -> anyhow::Result<()> {
    let began = Instant::now();
    let mut is_said = false;
    let mut outcomes: Vec<Option<Result<(), String>>> = lines.iter().map(|_| None).collect();
    loop {
        // A machine that was given up is not waited for again.
        outcomes
            .iter_mut()
            .zip(lines)
            .filter(|(known, _)| known.is_none())
            .for_each(|(known, line)| *known = line.outcome());
        let waiting = lines.iter().zip(&outcomes).filter(|(_, known)| known.is_none()).map(|(line, _)| line.host());
        let waiting: Vec<&str> = waiting.collect();
        if waiting.is_empty() {
            break;
        }
        if !is_said && began.elapsed() >= SILENCE {
            output::print_note(&format!("reading from {} ...", waiting.join(", ")));
            is_said = true;
        }
        if interruption.take().is_some() {
            bail!("interrupted");
        }
        thread::sleep(POLL_INTERVAL);
    }
    let problem =
        |(line, known): (&Arc<Line>, Option<Result<(), String>>)| Some(format!("{} {}", line.host(), known?.err()?));
    let problems: Vec<String> = lines.iter().zip(outcomes).filter_map(problem).collect();
    if problems.len() == lines.len() {
        bail!("{}", problems.join("\n  "));
    }
    problems.iter().for_each(|problem| output::print_note(problem));
    Ok(())
}

/// The only run among the copies, if it has ended: commands take a live one by themselves.
fn ended(sessions: &Path) -> Option<OsString> {
    let sessions = discover::list(sessions).ok()?.sessions;
    match runs::group(&sessions).as_slice() {
        [only] if only.living() == 0 => Some(only.newest().dir.clone().into_os_string()),
        _ => None,
    }
}

/// Runs this program with these words on the sessions in this directory.
fn on_copies(
    words: &[OsString],
    sessions: &Path,
    address: Option<&OsString>,
    interruption: &Interruption,
) -> anyhow::Result<u8> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(words).env("GNNTOP_DIR", sessions).envs(address.map(|address| (ADDRESS, address)));
    // Without this process, the copies grow no more, and the next one removes them.
    passing_on::end_with_parent(&mut command);
    let mut child = command.spawn().context("cannot start gnntop")?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(exit_code(status));
        }
        // A terminal sends Ctrl-C to both; what is sent to this process alone is meant for the other.
        if let Some(signal) = interruption.take().filter(|signal| *signal != SIGINT || !io::stdin().is_terminal())
            && let (Some(pid), Some(signal)) = (
                rustix::process::Pid::from_raw(child.id().cast_signed()),
                rustix::process::Signal::from_named_raw(signal),
            )
        {
            let _ = rustix::process::kill_process(pid, signal);
        }
        thread::sleep(POLL_INTERVAL);
    }
}
