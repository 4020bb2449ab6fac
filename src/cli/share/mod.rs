//! `gnntop share`, which the keeper of a program starts for `gnntop run --share`: copies the program's sessions into a
//! directory that other machines see. It is a process of its own, so that a file system which hangs holds up neither the
//! program nor its keeper.
//!
//! ```text
//! mod.rs             finds the program's sessions and copies them, until it has ended
//! copied_session.rs  one session and its copy
//! ```

mod copied_session;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use anyhow::Context;
use gnntop_analysis::source::ProgramSession;
use gnntop_sessions::PrivateDir;

use super::exit::SUCCESS;
use super::output;
use super::passing_on::passed_on;
use super::run::{IS_WHERE_SESSIONS_ARE, is_same_directory, program_session};
use copied_session::CopiedSession;

/// Time between two looks at the sessions.
const COPY_INTERVAL: Duration = Duration::from_secs(2);
/// If the copy is not complete when the program has ended, it is tried this long: a full disk may be cleaned up.
const LAST_TRIES: Duration = Duration::from_secs(600);

const EXAMPLES: &str = "\
Examples:
  gnntop share --to /shared/gnntop --pid 4711 --since-ms 0      started by `gnntop run --share`; not for use by hand";

/// Copy a program's sessions into a shared directory, for `gnntop run`
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ShareArguments {
    /// The shared directory
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// The program
    #[arg(long)]
    pid: u32,
    /// When it was started, in milliseconds since 1970
    #[arg(long)]
    since_ms: u64,
    /// Where its Pythons answer
    #[arg(long, value_name = "DIR")]
    answers: Option<PathBuf>,
}

/// Does `gnntop share`: standard input ends with the program, and each line on standard output is a warning.
pub(super) fn share(arguments: &ShareArguments) -> anyhow::Result<u8> {
    // A scheduler sends these to every process of a job, and the program's last steps are still to come.
    for signal in passed_on() {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    let since = UNIX_EPOCH + Duration::from_millis(arguments.since_ms);
    let program = end_of_input()?;
    let mut copies = SessionCopies {
        to: arguments.to.clone(),
        program: program_session(arguments.pid, since, arguments.answers.as_deref()),
        copied: BTreeMap::new(),
        problem: None,
    };
    let mut ended_at = None;
    loop {
        let has_ended = program.recv_timeout(COPY_INTERVAL) != Err(RecvTimeoutError::Timeout);
        let are_over = copies.update(has_ended);
        if has_ended {
            let ended_at = *ended_at.get_or_insert_with(Instant::now);
            // What the program has left running may publish on.
            if are_over || copies.problem.is_some() && ended_at.elapsed() >= LAST_TRIES {
                return Ok(SUCCESS);
            }
            thread::sleep(COPY_INTERVAL);
        }
    }
}

/// Disconnects when standard input ends.
fn end_of_input() -> anyhow::Result<Receiver<()>> {
    let (running, ended) = mpsc::channel();
    let wait = move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        drop(running);
    };
    thread::Builder::new().name("gnntop owner".to_owned()).spawn(wait).context("cannot start a thread")?;
    Ok(ended)
}

/// The sessions of a program, and their copies.
struct SessionCopies {
    to: PathBuf,
    program: ProgramSession,
    copied: BTreeMap<PathBuf, CopiedSession>,
    /// Why the last look could not copy everything.
    problem: Option<String>,
}

impl SessionCopies {
    /// Copies what is new. With `is_last`, what has ended is final. Returns whether all have ended and were copied whole.
    fn update(&mut self, is_last: bool) -> bool {
        let copied = self.copy(is_last);
        let problem = copied.as_ref().err().map(ToString::to_string);
        if problem != self.problem {
            let to = self.to.display();
            let said = problem.as_ref().map_or_else(
                || format!("warning: {to} can be written again; nothing is missing there"),
                |why| format!("warning: cannot copy to {to}: {why}; it is tried again"),
            );
            // Without its reader there is nobody to tell.
            let _ = output::print(&said);
            self.problem = problem;
        }
        copied.unwrap_or(false)
    }

    fn copy(&mut self, is_last: bool) -> anyhow::Result<bool> {
        let to = PrivateDir::create(&self.to)?;
        let mut begun = Ok(true);
        for session in self.program.find_all() {
            if session.dir.parent().is_some_and(|dir| is_same_directory(dir, &self.to)) {
                anyhow::bail!("it {IS_WHERE_SESSIONS_ARE}");
            }
            if !self.copied.contains_key(&session.dir) {
                match CopiedSession::begin(&session.dir, &to) {
                    Ok(copied) => _ = self.copied.insert(session.dir.clone(), copied),
                    Err(error) => begun = Err(error),
                }
            }
        }
        // One that cannot be copied holds up no other.
        let done: Vec<_> = self.copied.values_mut().map(|session| session.update(is_last)).collect();
        let both = |are_over: bool, is_over: Result<bool, _>| is_over.map(|is_over| are_over && is_over);
        Ok(done.into_iter().chain([begun]).try_fold(true, both)?)
    }
}
