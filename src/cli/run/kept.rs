//! The program as the command sees it that has started its keeper: where it is, how it ended, and a way to send it signals.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, IsTerminal};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

use super::super::exit::FAILURE;
use super::super::output;
use super::messages::{Asked, Incoming, Told, say};
use gnntop_analysis::source::process::Process;

/// A program that a keeper owns.
pub(super) struct Kept {
    socket: UnixStream,
    incoming: Incoming,
    pid: u32,
    log: Option<PathBuf>,
    answers: Option<PathBuf>,
    /// How it ended, once it has.
    ended: Option<u8>,
}

impl Kept {
    /// Starts a keeper with this command line, and waits until it has started the program.
    ///
    /// # Errors
    /// When there is no such program, or the system starts none.
    pub(super) fn start<'v>(
        words: &[OsString],
        variables: impl Iterator<Item = (&'static str, &'v PathBuf)>,
    ) -> anyhow::Result<Self> {
        let own = std::env::current_exe().context("cannot find the gnntop program itself")?;
        let (socket, theirs) = UnixStream::pair().context("cannot talk to another process")?;
        // The keyboard belongs to the view; what is piped in is the program's.
        let stdin = if io::stdin().is_terminal() { Stdio::null() } else { Stdio::inherit() };
        let mut keeper = Command::new(own);
        keeper.args(words).envs(variables).stdin(stdin).stdout(OwnedFd::from(theirs)).stderr(Stdio::null());
        keeper.spawn().context("cannot start the keeper")?;
        // It holds the other end of the socket until it is gone.
        drop(keeper);
        Self::greet(socket)
    }

    fn greet(socket: UnixStream) -> anyhow::Result<Self> {
        let mut incoming = Incoming::default();
        while let Some(told) = incoming.next(&socket) {
            match told {
                Told::Warning(text) => warn(&text),
                Told::Refused(why) => bail!(why),
                Told::Started { pid, log, answers } => {
                    return Ok(Self { socket, incoming, pid, log, answers, ended: None });
                }
                Told::Ended { .. } => break,
            }
        }
        bail!("what starts the program for `gnntop run` ended before it did")
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// The process, while it lives.
    pub(super) fn process(&self) -> Option<Process> {
        Process::find(self.pid)
    }

    /// Where its output is.
    pub(super) fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }

    /// Where its Pythons answer.
    pub(super) fn answers(&self) -> Option<&Path> {
        self.answers.as_deref()
    }

    /// What sends it signals, from any thread.
    pub(super) fn voice(&self) -> io::Result<Voice> {
        self.socket.try_clone().map(Voice)
    }

    /// The exit code, if it has ended within `wait`. What its keeper says meanwhile is passed on.
    pub(super) fn ended_within(&mut self, wait: Duration) -> Option<u8> {
        if self.ended.is_none() {
            // A time limit of zero is none at all.
            let _ = self.socket.set_read_timeout(Some(wait.max(Duration::from_millis(1))));
            while let Some(told) = self.incoming.next(&self.socket) {
                match told {
                    Told::Warning(text) => warn(&text),
                    Told::Ended { code, lines } => {
                        lines.iter().for_each(|line| output::note(line));
                        self.ended = Some(code);
                        break;
                    }
                    Told::Started { .. } | Told::Refused(_) => (),
                }
            }
            if self.ended.is_none() && self.incoming.is_over() {
                output::complain("what kept the program was killed; how the program ended is not known");
                self.ended = Some(FAILURE);
            }
        }
        self.ended
    }
}

impl fmt::Display for Kept {
    /// Where it is, and how to come back to it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pid = self.pid;
        write!(
            f,
            "  to see it again:  gnntop attach {pid}\n  to stop it:       gnntop stop {pid}\n  its output:       "
        )?;
        match &self.log {
            Some(path) => write!(f, "{}", path.display()),
            None => f.write_str("not kept"),
        }
    }
}

/// Sends signals to a program by its keeper.
pub(super) struct Voice(UnixStream);

impl Voice {
    /// Has a signal passed on to the program and what it has started.
    pub(super) fn signal(&self, signal: i32) {
        say(&self.0, &Asked::Signal(signal));
    }
}

fn warn(text: &str) {
    output::complain(&format!("warning: {text}"));
}
