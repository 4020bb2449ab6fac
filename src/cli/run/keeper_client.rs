//! The program as seen by the command that started its keeper: where it is, how it ended, and how to signal it. Signals that are
//! sent to `gnntop run` are meant for the program: a thread passes them on.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, thread};

use anyhow::{Context, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;

use super::super::exit::{FAILURE, NotStarted};
use super::super::layers::Layer;
use super::super::output;
use super::super::passing_on::passed_on;
use super::super::signals::without_ignored;
use super::child::log_place;
use super::execution::execute_in_child;
use super::messages::{KeeperMessage, KeeperRequest, MessageReader, send};
use gnntop_analysis::source::process::Process;
use gnntop_analysis::source::{Status, exit_record};
use gnntop_analysis::stream::Sink;
use gnntop_wire::Item;

/// A program that a keeper owns.
pub(super) struct KeeperClient {
    pid: u32,
    log: Option<PathBuf>,
    answers: Option<PathBuf>,
    inbox: KeeperInbox,
    signal_sender: SignalSender,
}

/// What the keeper says, for the view and for the command that opens it: its warnings, and how the program ended.
#[derive(Clone)]
pub(super) struct KeeperInbox(Arc<Mutex<Inbox>>);

/// What the keeper has said since the program was started.
struct Inbox {
    socket: UnixStream,
    incoming: MessageReader,
    warnings: Vec<String>,
    /// Lines that were not printed yet.
    unprinted: Vec<String>,
    /// Whether a signal was for the view alone, until that is asked for.
    hung_up: bool,
    /// How the program ended, once it has.
    ended: Option<u8>,
    /// Why it died, in a paragraph and in a word, until the view has it.
    died: Option<(String, String)>,
}

impl KeeperClient {
    /// Starts a keeper with this command line, and waits until it has started the program. The keeper gets our terminal if the program
    /// is to have it.
    ///
    /// # Errors
    /// If there is no such program, or the system cannot start it.
    pub(super) fn start(
        words: &[OsString],
        variables: impl Iterator<Item = (&'static str, OsString)>,
        gives_terminal: bool,
    ) -> anyhow::Result<Self> {
        let own = std::env::current_exe().context("cannot find the gnntop program itself")?;
        let (socket, theirs) = UnixStream::pair().context("cannot open a socket to the keeper")?;
        // The keyboard belongs to the view; piped input belongs to the program.
        let has_keyboard = gives_terminal || !io::stdin().is_terminal();
        let nothing = || {
            let opened = File::options().read(true).write(true).open("/dev/null");
            opened.map(Stdio::from).context("cannot open /dev/null")
        };
        let stdin = if has_keyboard { Stdio::inherit() } else { nothing()? };
        let terminal = gives_terminal.then(|| io::stdout().as_fd().try_clone_to_owned()).transpose()?;
        let mut keeper = Command::new(own);
        keeper.args(words).envs(variables).stdin(stdin).stdout(OwnedFd::from(theirs));
        keeper.stderr(terminal.map_or_else(nothing, |terminal| Ok(Stdio::from(terminal)))?);
        execute_in_child(&mut keeper).context("cannot start the keeper")?;
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
                KeeperMessage::Refused { why, code } => return Err(NotStarted { why, code }.into()),
                KeeperMessage::Started { pid, log, answers } => {
                    let signal_sender = SignalSender(socket.try_clone().context("cannot talk to the keeper")?);
                    return Ok(Self { pid, log, answers, inbox: KeeperInbox::new(socket, incoming), signal_sender });
                }
                KeeperMessage::HungUp => (),
                KeeperMessage::Ended { .. } => break,
            }
        }
        bail!("gnntop's keeper was killed while it started the program, which may be running: `ps` shows whether it is")
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
        let mut inbox = self.inbox.lock();
        inbox.poll(wait);
        inbox.unprinted.drain(..).for_each(|line| output::print_note(&line));
        inbox.ended
    }

    /// Whether a signal has come that is for the view alone, since the last call.
    pub(super) fn take_hangup(&self) -> bool {
        std::mem::take(&mut self.inbox.lock().hung_up)
    }

    /// What its keeper says, for a view of the program.
    pub(super) fn inbox(&self) -> KeeperInbox {
        self.inbox.clone()
    }
}

impl KeeperInbox {
    fn new(socket: UnixStream, incoming: MessageReader) -> Self {
        let (warnings, unprinted) = (Vec::new(), Vec::new());
        let inbox = Inbox { socket, incoming, warnings, unprinted, hung_up: false, ended: None, died: None };
        Self(Arc::new(Mutex::new(inbox)))
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
                KeeperMessage::HungUp => self.hung_up = true,
                KeeperMessage::Ended { code, lines, died } => {
                    self.unprinted.extend(lines);
                    self.died = died;
                    self.ended = Some(code);
                }
                KeeperMessage::Started { .. } | KeeperMessage::Refused { .. } => (),
            }
        }
        if self.ended.is_none() && self.incoming.is_over() {
            self.unprinted.push("gnntop: the keeper was killed, so the program's exit code is unknown".to_owned());
            self.ended = Some(FAILURE);
        }
    }
}

impl Layer for KeeperInbox {
    fn after_poll(&mut self, sink: &mut dyn Sink) -> bool {
        let mut inbox = self.lock();
        // A death that is heard of now is passed on after the next poll: the program's last events come first.
        let died = inbox.died.take();
        inbox.poll(Duration::ZERO);
        let Some((text, cause)) = died else { return false };
        // Also for a program that has published nothing, so that it has no session to add this to.
        sink.apply(Item::Definitions(vec![exit_record::fact(&text, &cause)]));
        true
    }

    fn amend(&self, status: &mut Status) {
        let inbox = self.lock();
        status.messages.extend(inbox.warnings.iter().cloned());
        if let Some(code) = inbox.ended.filter(|code| *code != 0) {
            status.messages.push(format!("ended with exit code {code}; o: its output"));
        }
    }
}

impl fmt::Display for KeeperClient {
    /// How to return to it, how to stop it, and where its output is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pid = self.pid;
        let log = self.log.as_deref().map_or_else(|| "not kept".to_owned(), log_place);
        write!(
            f,
            "  to see it again:  gnntop attach {pid}\n  to stop it:       gnntop stop {pid}\n  its output:       {log}"
        )
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
    pub(super) fn catch(on_hangup: OnHangup, gives_terminal: bool) -> io::Result<Self> {
        // The keeper and the program are in another session than the terminal, which tells only us its new size.
        let signals = Signals::new(without_ignored(passed_on().chain(gives_terminal.then_some(SIGWINCH))))?;
        Ok(Self { signals, on_hangup })
    }

    /// Passes them on from now on.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn forward(self, sender: SignalSender) -> io::Result<Interrupted> {
        let interrupted = Interrupted::default();
        let noted = interrupted.clone();
        thread::Builder::new().name("gnntop signals".to_owned()).spawn(move || self.run(&sender, &noted))?;
        Ok(interrupted)
    }

    fn run(mut self, sender: &SignalSender, interrupted: &Interrupted) {
        for signal in self.signals.forever() {
            if signal != SIGHUP || self.on_hangup == OnHangup::Stop {
                sender.signal(signal);
            }
            if matches!(signal, SIGINT | SIGTERM | SIGHUP) {
                interrupted.0.store(signal, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_analysis::ranks::Run;

    /// The inbox of a keeper, and the keeper's end of their socket.
    fn inbox() -> (KeeperInbox, UnixStream) {
        let (ours, keepers) = UnixStream::pair().unwrap();
        (KeeperInbox::new(ours, MessageReader::default()), keepers)
    }

    fn has_died(run: &Run) -> bool {
        run.store().session().death_text().is_some()
    }

    #[test]
    fn death_reaches_the_sink_once_and_after_the_next_poll() {
        let (mut inbox, keeper) = inbox();
        let died = Some(("It was killed.".to_owned(), "killed".to_owned()));
        send(&keeper, &KeeperMessage::Ended { code: 137, lines: Vec::new(), died });
        let mut run = Run::default();
        assert!(!inbox.after_poll(&mut run) && !has_died(&run), "events that were published before come first");
        assert!(inbox.after_poll(&mut run) && has_died(&run));
        assert!(!inbox.after_poll(&mut Run::default()), "once");
        let mut status = Status::default();
        inbox.amend(&mut status);
        assert_eq!(status.messages, ["ended with exit code 137; o: its output"]);
    }

    #[test]
    fn warnings_of_the_keeper_stay_in_the_status() {
        let (mut inbox, keeper) = inbox();
        send(&keeper, &KeeperMessage::Warning("the disk is full".to_owned()));
        assert!(!inbox.after_poll(&mut Run::default()));
        for _ in 0..2 {
            let mut status = Status::default();
            inbox.amend(&mut status);
            assert_eq!(status.messages, ["the disk is full"]);
        }
    }
}
