//! `gnntop keep`, which `gnntop run` starts: the process that owns the program. It leads its own session, so that
//! closing a terminal or a view does not affect it. It writes the program's recording, waits for its end and
//! stores how it ended.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;

use super::super::exit::{FAILURE, NotStarted, SUCCESS};
use super::super::otlp::{OtlpArguments, OtlpSettings};
use super::super::passing_on::passed_on;
use super::super::retention::RetentionLimits;
use super::super::signals::without_ignored;
use super::child::{Child, OutputPlace, WAIT_INTERVAL};
use super::inherited::Inherited;
use super::messages::{KeeperMessage, KeeperRequest, MessageReader, send};
use super::post_mortem::{examine, note_end};
use super::pushing::ActivePush;
use super::python::{PythonSetup, program_session};
use super::recording::{ActiveRecording, NOTHING_RECORDED, RecordingFile, RecordingOutcome, Unpublished};
use super::register::ProgramRegistration;
use super::sharing::ActiveShare;
use super::starter::Starter;
use super::train_job::{ActiveTrainJob, TrainJob};
use crate::death::{Death, ProcessEnd};

/// A signal that arrives on two ways does so within this time.
const SAME_WITHIN: Duration = Duration::from_millis(200);

const EXAMPLES: &str = "\
Examples:
  gnntop keep --name pna -- gnntop train pna      started by `gnntop run pna`; not for use by hand";

/// Own a program for `gnntop run`
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in super::super) struct KeepArguments {
    /// Name of the program
    #[arg(long)]
    name: String,
    /// Record its session into this file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    /// Keep the recording below this many bytes
    #[arg(long, value_name = "BYTES")]
    keep: Option<u64>,
    /// Keep this many of its slowest steps in full
    #[arg(long, value_name = "N")]
    slow: Option<u32>,
    /// Have the Pythons in it show what they do
    #[arg(long)]
    python: bool,
    /// Give it the terminal that standard input and standard error are
    #[arg(long)]
    tty: bool,
    #[command(flatten)]
    otlp: OtlpArguments,
    /// Copy its sessions into this directory
    #[arg(long, value_name = "DIR")]
    share: Option<PathBuf>,
    /// The program with its arguments
    #[arg(value_name = "CMD", last = true, required = true)]
    command: Vec<OsString>,
}

/// What a keeper shall record.
pub(super) struct RecordOptions {
    pub(super) path: PathBuf,
    pub(super) force: bool,
    /// Size that the recording stays below, in bytes.
    pub(super) keep: Option<u64>,
    /// Its slowest steps that are kept in full.
    pub(super) slow: Option<u32>,
}

/// What `gnntop run` tells a keeper.
pub(super) struct KeptOptions<'a> {
    pub(super) name: &'a str,
    pub(super) record: Option<RecordOptions>,
    pub(super) python: bool,
    pub(super) tty: bool,
    pub(super) otlp: Option<&'a str>,
    pub(super) share: Option<&'a Path>,
}

impl KeptOptions<'_> {
    /// The command line of the keeper of this program.
    pub(super) fn command_line(&self, command: &[OsString]) -> Vec<OsString> {
        let with_path = |option: &str, path: &Path| {
            let mut word = OsString::from(option);
            word.push(path);
            word
        };
        // Names may begin with a hyphen.
        let mut words = vec!["keep".into(), format!("--name={}", self.name).into()];
        if let Some(RecordOptions { path, force, keep, slow }) = &self.record {
            words.push(with_path("--record=", path));
            words.extend(force.then(|| "--force".into()));
            words.extend(keep.map(|keep| format!("--keep={keep}").into()));
            words.extend(slow.map(|slow| format!("--slow={slow}").into()));
        }
        words.extend(self.python.then(|| "--python".into()));
        words.extend(self.tty.then(|| "--tty".into()));
        words.extend(self.otlp.map(|address| format!("--otlp={address}").into()));
        words.extend(self.share.map(|dir| with_path("--share=", dir)));
        words.push("--".into());
        words.extend(command.iter().cloned());
        words
    }
}

/// Does `gnntop keep`: standard output is a socket to the process that started it.
pub(in super::super) fn keep(arguments: &KeepArguments) -> anyhow::Result<u8> {
    let inherited = Inherited::find();
    let starter = UnixStream::from(io::stdout().as_fd().try_clone_to_owned().context("no socket to `gnntop run`")?);
    starter.peer_addr().context("`gnntop keep` is started by `gnntop run`")?;
    // It fails if this process already leads a session, which is just as good.
    let _ = rustix::process::setsid();
    match start(arguments, &starter) {
        Ok(kept) => {
            inherited.close();
            kept.wait(&starter)?;
            Ok(SUCCESS)
        }
        Err(error) => {
            let code = error.downcast_ref::<NotStarted>().map_or(FAILURE, |error| error.code);
            send(&starter, &KeeperMessage::Refused { why: format!("{error:#}"), code });
            Ok(FAILURE)
        }
    }
}

/// A program that is owned.
struct KeptProgram {
    child: Child,
    signals: Signals,
    recording: Option<ActiveRecording>,
    push: Option<ActivePush>,
    train_job: Option<ActiveTrainJob>,
    share: Option<ActiveShare>,
    registered: ProgramRegistration,
    /// The last signal that was passed on, and when.
    passed_on: Option<(i32, Instant)>,
    started: SystemTime,
    /// Removes the folder in which its Pythons answer when dropped.
    python: PythonSetup,
}

/// Starts the program and everything that belongs to it.
fn start(arguments: &KeepArguments, starter: &UnixStream) -> anyhow::Result<KeptProgram> {
    let signals = Signals::new(without_ignored(passed_on().filter(|signal| *signal != SIGQUIT)))?;
    let KeepArguments { name, record, force, keep, slow, python, tty, otlp, share, command } = arguments;
    let limits = RetentionLimits::new(*keep, *slow);
    let otlp = otlp.otlp.as_deref().map(OtlpSettings::new).transpose()?;
    let file = record.as_deref().map(|path| RecordingFile::create(path, *force, limits)).transpose()?;
    let warned = Arc::new(starter.try_clone()?);
    let warn = move |text: &str| send(&warned, &KeeperMessage::Warning(text.to_owned()));
    let python = if *python { PythonSetup::new(command, &warn) } else { PythonSetup::disabled() };
    let started = SystemTime::now();
    let variables = python.variables().map(|(name, value)| (name, value.as_os_str()));
    let place = if *tty { OutputPlace::Terminal } else { OutputPlace::Log };
    let child = match Child::start(command, name, variables, place, warn.clone()) {
        Ok(child) => child,
        Err(error) => {
            file.into_iter().for_each(RecordingFile::discard);
            return Err(error);
        }
    };
    python.join_children(child.pid());
    // From here on the program runs: what does not work is said, and it does without.
    let or_warn = |what: &str, error: &dyn std::fmt::Display| warn(&format!("{what}: {error}"));
    // How `gnntop stop --kill` asks, also where a shell has had it ignored; the program keeps what the shell gave it.
    let _ = signals.add_signal(SIGQUIT).inspect_err(|error| or_warn("cannot catch SIGQUIT", error));
    let session = || program_session(child.pid(), started, python.answers());
    let follow = |file: RecordingFile| file.follow(child.pid(), session(), Unpublished::Hardware, warn.clone());
    let recording = file.map(follow).transpose().inspect_err(|error| or_warn("cannot record", error)).ok().flatten();
    let push = otlp.map(|settings| ActivePush::start(settings, session(), warn.clone()));
    let push = push.transpose().inspect_err(|error| or_warn("cannot send figures", error)).ok().flatten();
    let train_job = TrainJob::from_env().and_then(|job| {
        let start = |job| ActiveTrainJob::start(job, session(), warn.clone()).map_err(|error| error.to_string());
        job.map(start).transpose()
    });
    let train_job = train_job.inspect_err(|why| warn(why)).ok().flatten();
    let share = share.as_deref().map(|to| ActiveShare::start(to, child.pid(), started, python.answers(), warn.clone()));
    let share = share.transpose().inspect_err(|error| or_warn("cannot share the sessions", error)).ok().flatten();
    let registered = ProgramRegistration::new(name, child.pid(), command, child.log_path(), record.as_deref());
    let (log, answers) = (child.log_path().map(Path::to_owned), python.answers().map(Path::to_owned));
    send(starter, &KeeperMessage::Started { pid: child.pid(), log, answers });
    Ok(KeptProgram { child, signals, recording, push, train_job, share, registered, passed_on: None, started, python })
}

impl KeptProgram {
    fn wait(mut self, starter: &UnixStream) -> anyhow::Result<()> {
        starter.set_nonblocking(true)?;
        let (mut asked, mut asker) = (MessageReader::default(), Starter::find());
        let code = loop {
            asker.observe();
            // A terminal's SIGQUIT does not come here.
            let meant = |signal| if signal == SIGQUIT { SIGKILL } else { signal };
            let mut signals: Vec<i32> = self.signals.pending().map(meant).collect();
            while let Some(KeeperRequest::Signal(signal)) = asked.next(starter) {
                if signal == SIGTERM && asker.was_stopped() {
                    send(starter, &KeeperMessage::HungUp);
                } else {
                    signals.push(signal);
                }
            }
            signals.into_iter().for_each(|signal| self.forward_signal(signal));
            if let Some(code) = self.child.try_wait()? {
                break code;
            }
            thread::sleep(WAIT_INTERVAL);
        };
        starter.set_nonblocking(false)?;
        self.push.iter_mut().for_each(ActivePush::note_end);
        self.train_job.iter_mut().for_each(ActiveTrainJob::note_end);
        let death = examine(&self.child, &self.python, self.started, self.end_signal());
        let silence = if death.is_none() { note_end(&self.child, &self.python, self.started) } else { None };
        self.share.iter_mut().for_each(ActiveShare::note_end);
        let mut lines = self.child.ending_lines(code, death.as_ref());
        lines.extend(silence);
        lines.extend(self.python.result_lines());
        lines.extend(self.finish_recording(starter, death.as_ref()));
        self.registered.set_exit_code(code);
        let late = self.push.take().and_then(ActivePush::wait);
        let late = late.into_iter().chain(self.train_job.take().and_then(ActiveTrainJob::wait));
        let late = late.chain(self.share.take().and_then(ActiveShare::wait));
        late.for_each(|text| send(starter, &KeeperMessage::Warning(text)));
        let died = death.map(|death| (death.text, death.cause.id().to_owned()));
        send(starter, &KeeperMessage::Ended { code, lines, died });
        self.wait_for_output_end();
        Ok(())
    }

    /// Passes a signal on, only once if it arrived on two ways: Slurm sends to each process of a step.
    fn forward_signal(&mut self, signal: i32) {
        if signal == SIGWINCH {
            // The last of many is the one that counts, and none asks for an end.
            return self.child.signal(signal);
        }
        let now = Instant::now();
        let is_same = |(last, at): (i32, Instant)| last == signal && now.duration_since(at) < SAME_WITHIN;
        if !self.passed_on.replace((signal, now)).is_some_and(is_same) {
            self.child.signal(signal);
        }
    }

    /// The signal that was to end it, of those that were passed on.
    fn end_signal(&self) -> Option<i32> {
        let (signal, _) = self.passed_on?;
        let is_to_end = [SIGINT, SIGTERM, SIGHUP, SIGKILL].contains(&signal);
        (is_to_end || self.child.ended() == Some(ProcessEnd::Signal(signal))).then_some(signal)
    }

    /// Processes that the program has left behind may keep writing to the log, until this process is ended.
    fn wait_for_output_end(mut self) {
        drop(self.registered);
        let ends = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
        while !self.child.wait_output_closed(WAIT_INTERVAL) {
            if self.signals.pending().any(|signal| ends.contains(&signal)) {
                return;
            }
        }
    }

    /// Ends the recording, and reports its outcome.
    fn finish_recording(&mut self, starter: &UnixStream, death: Option<&Death>) -> Option<String> {
        match self.recording.take()?.finish(death) {
            RecordingOutcome::Recorded(summary) => Some(format!("recorded {summary}")),
            RecordingOutcome::Nothing => {
                send(starter, &KeeperMessage::Warning(NOTHING_RECORDED.to_owned()));
                None
            }
            RecordingOutcome::Failed => None,
        }
    }
}
