//! The program as seen by the command that started its keeper: where it is, how it ended, and how to signal it. Signals that are
//! sent to `gnntop run` are meant for the program: a thread passes them on.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, thread};

use anyhow::{Context, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use super::super::exit::FAILURE;
use super::super::output;
use super::super::signals::without_ignored;
use super::messages::{KeeperMessage, KeeperRequest, MessageReader, send};
use gnntop_analysis::source::process::Process;
use gnntop_analysis::source::{Control, Progress, Source, Status, exit_record};
use gnntop_analysis::stream::Sink;
use gnntop_wire::Item;

/// A program that a keeper owns.
pub(super) struct KeeperClient {
    pid: u32,
    log: Option<PathBuf>,
    answers: Option<PathBuf>,
    inbox: Arc<Mutex<Inbox>>,
    signal_sender: SignalSender,
}

/// What the keeper has said since the program was started.
struct Inbox {
    socket: UnixStream,
    incoming: MessageReader,
    warnings: Vec<String>,
    /// Lines that were not printed yet.
    unprinted: Vec<String>,
    /// How the program ended, once it has.
    ended: Option<u8>,
    /// Why it died, in a paragraph and in a word, until the view has it.
    died: Option<(String, String)>,
}

impl KeeperClient {
    /// Starts a keeper with this command line, and waits until it has started the program.
    ///
    /// # Errors
    /// If there is no such program, or the system cannot start it.
    pub(super) fn start(
        words: &[OsString],
        variables: impl Iterator<Item = (&'static str, OsString)>,
    ) -> anyhow::Result<Self> {
        let own = std::env::current_exe().context("cannot find the gnntop program itself")?;
        let (socket, theirs) = UnixStream::pair().context("cannot open a socket to the keeper")?;
        // The keyboard belongs to the view; piped input belongs to the program.
        let stdin = if io::stdin().is_terminal() { Stdio::null() } else { Stdio::inherit() };
        let mut keeper = Command::new(own);
        keeper.args(words).envs(variables).stdin(stdin).stdout(OwnedFd::from(theirs)).stderr(Stdio::null());
        keeper.spawn().context("cannot start the keeper")?;
        // It holds the other end of the socket until it is gone.
        drop(keeper);
        Self::handshake(socket)
    }

    fn handshake(socket: UnixStream) -> anyhow::Result<Self> {
        let mut incoming = MessageReader::default();
        while let Some(told) = incoming.next(&socket) {
            match told {
                KeeperMessage::Warning(text) => output::print_note(&format_warning(&text)),
                KeeperMessage::Refused(why) => bail!(why),
                KeeperMessage::Started { pid, log, answers } => {
                    let voice = SignalSender(socket.try_clone().context("cannot talk to the keeper")?);
                    let inbox = Inbox {
                        socket,
                        incoming,
                        warnings: Vec::new(),
                        unprinted: Vec::new(),
                        ended: None,
                        died: None,
                    };
                    return Ok(Self { pid, log, answers, inbox: Arc::new(Mutex::new(inbox)), signal_sender: voice });
                }
                KeeperMessage::Ended { .. } => break,
            }
        }
        bail!("the keeper ended before it started the program")
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
    pub(super) fn signal_sender(&self) -> &SignalSender {
        &self.signal_sender
    }

    /// The exit code, if it has ended within `wait`. Prints what its keeper says meanwhile.
    pub(super) fn ended_within(&self, wait: Duration) -> Option<u8> {
        let mut inbox = lock(&self.inbox);
        inbox.poll(wait);
        inbox.unprinted.drain(..).for_each(|line| output::print_note(&line));
        inbox.ended
    }

    /// The source, which also reports the keeper's warnings.
    pub(super) fn warn_in(&self, source: Box<dyn Source>) -> Box<dyn Source> {
        Box::new(WarningSource { source, inbox: Arc::clone(&self.inbox) })
    }
}

impl Inbox {
    /// Takes in what has arrived, or arrives within `wait`.
    fn poll(&mut self, wait: Duration) {
        if self.ended.is_some() {
            return;
        }
        // If it cannot be set, the read waits, or not, and is repeated.
        let _ = self.socket.set_nonblocking(wait.is_zero());
        let _ = self.socket.set_read_timeout(Some(wait).filter(|wait| !wait.is_zero()));
        while self.ended.is_none()
            && let Some(told) = self.incoming.next(&self.socket)
        {
            match told {
                KeeperMessage::Warning(text) => {
                    self.unprinted.push(format_warning(&text));
                    self.warnings.push(text);
                }
                KeeperMessage::Ended { code, lines, died } => {
                    self.unprinted.extend(lines);
                    self.died = died;
                    self.ended = Some(code);
                }
                KeeperMessage::Started { .. } | KeeperMessage::Refused(_) => (),
            }
        }
        if self.ended.is_none() && self.incoming.is_over() {
            self.unprinted.push("gnntop: the keeper was killed, so the program's exit code is unknown".to_owned());
            self.ended = Some(FAILURE);
        }
    }
}

fn lock(inbox: &Mutex<Inbox>) -> MutexGuard<'_, Inbox> {
    inbox.lock().unwrap_or_else(PoisonError::into_inner)
}

struct WarningSource {
    source: Box<dyn Source>,
    inbox: Arc<Mutex<Inbox>>,
}

impl Source for WarningSource {
    fn poll(&mut self, sink: &mut dyn Sink, budget: Duration) -> Progress {
        let died = {
            let mut inbox = lock(&self.inbox);
            inbox.poll(Duration::ZERO);
            inbox.died.take()
        };
        let mut progress = self.source.poll(sink, budget);
        // Also for a program that has published nothing, so that it has no session to add this to.
        if let Some((text, cause)) = died {
            sink.apply(Item::Definitions(exit_record::facts(&text, &cause).to_vec()));
            progress.changed = true;
        }
        progress
    }

    fn status(&self) -> Status {
        let mut status = self.source.status();
        let inbox = lock(&self.inbox);
        status.messages.extend(inbox.warnings.iter().cloned());
        if let Some(code) = inbox.ended.filter(|code| *code != 0) {
            status.messages.push(format!("ended with exit code {code}; o: its output"));
        }
        status
    }

    fn control(&mut self, control: Control) {
        self.source.control(control);
    }
}

impl fmt::Display for KeeperClient {
    /// How to return to it, how to stop it, and where its output is.
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

/// Sends signals to a program through its keeper.
pub(super) struct SignalSender(UnixStream);

impl SignalSender {
    /// The same for another thread.
    ///
    /// # Errors
    /// When the system has no handle to give.
    pub(super) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Has a signal passed on to the program and what it has started.
    pub(super) fn signal(&self, signal: i32) {
        send(&self.0, &KeeperRequest::Signal(signal));
    }
}

fn format_warning(text: &str) -> String {
    format!("gnntop: warning: {text}")
}

/// What happens to the program when the terminal closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(in super::super) enum OnHangup {
    /// It keeps running
    Keep,
    /// It gets SIGHUP
    Stop,
}

/// Holds caught signals until there is a program to pass them on to.
pub(super) struct SignalRelay {
    signals: Signals,
    on_hangup: OnHangup,
}

/// The signal that asked for an end, once one has.
#[derive(Clone, Default)]
pub(super) struct Interrupted(Arc<AtomicI32>);

impl Interrupted {
    pub(super) fn signal(&self) -> Option<i32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
    }
}

impl SignalRelay {
    /// Starts catching what a terminal and a scheduler send.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub(super) fn catch(on_hangup: OnHangup) -> io::Result<Self> {
        let signals = Signals::new(without_ignored([SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2]))?;
        Ok(Self { signals, on_hangup })
    }

    /// Passes them on from now on.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn forward(self, voice: SignalSender) -> io::Result<Interrupted> {
        let interrupted = Interrupted::default();
        let noted = interrupted.clone();
        thread::Builder::new().name("gnntop signals".to_owned()).spawn(move || self.run(&voice, &noted))?;
        Ok(interrupted)
    }

    fn run(mut self, voice: &SignalSender, interrupted: &Interrupted) {
        for signal in self.signals.forever() {
            if signal != SIGHUP || self.on_hangup == OnHangup::Stop {
                voice.signal(signal);
            }
            if matches!(signal, SIGINT | SIGTERM | SIGHUP) {
                interrupted.0.store(signal, Ordering::Relaxed);
            }
        }
    }
}
