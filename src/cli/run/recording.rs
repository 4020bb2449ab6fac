//! `gnntop run --record`: follows the session of the program beside the view, on its own thread.

use std::fs::{File, OpenOptions};
use std::io::Seek;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::super::new_file::{self, NewFile};
use super::super::retention::{Retention, RetentionLimits};
use super::super::source_recorder::SourceRecorder;
use crate::death::Death;
use gnntop_analysis::recorder::RecorderOptions;
use gnntop_analysis::source::process::Process;
use gnntop_analysis::source::{Hardware, Launcher, ProgramSession, exit_record, follow};
use gnntop_wire::Definition;

/// Time between two looks at the session.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// After the program's end, its session is waited for this long.
const GRACE: Duration = Duration::from_secs(2);

/// The file that will be the recording.
pub(super) struct RecordingFile {
    file: NewFile,
    name: String,
    bound: Option<Retention>,
    /// Whether there is not a single event in it.
    is_empty: bool,
}

/// What is recorded while the program publishes nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unpublished {
    /// Its hardware, seen from outside.
    Hardware,
    Nothing,
}

/// A recording that is being written.
pub(super) struct ActiveRecording {
    ended: Arc<ProgramEnd>,
    thread: JoinHandle<RecordingOutcome>,
}

/// What the program's owner sends to its recorder.
#[derive(Default)]
struct ProgramEnd {
    has_come: AtomicBool,
    /// Why the program died, if it did; set before.
    death: OnceLock<Definition>,
}

impl ProgramEnd {
    fn is_set(&self) -> bool {
        self.has_come.load(Ordering::Acquire)
    }
}

/// How a recording ended.
pub(super) enum RecordingOutcome {
    /// It is complete; this says what is in it.
    Recorded(String),
    /// The program published nothing, and there is no file.
    Nothing,
    /// It could not be written to its end, which was reported when it happened. What was written before is kept.
    Failed,
}

/// The message for [`RecordingOutcome::Nothing`].
pub(super) const NOTHING_RECORDED: &str = "the program published nothing, so nothing was recorded";

impl RecordingFile {
    /// Makes the file before anything is started, so that a wrong name costs nothing. It stays within `limits`.
    ///
    /// # Errors
    /// As [`NewFile::create`], and for a pipe that would be waited for, which would keep the program from starting.
    pub(super) fn create(path: &Path, force: bool, limits: Option<RetentionLimits>) -> anyhow::Result<Self> {
        new_file::remove_abandoned(path.parent().unwrap_or(Path::new("")));
        if is_pipe_without_reader(path) {
            bail!("{} is a pipe that nothing reads: start its reader first, or name a file", path.display());
        }
        let (file, name) = (NewFile::create(path, force, &[])?, path.display().to_string());
        if limits.is_some() && file.path().is_none() {
            bail!("--keep and --slow need a regular file: {name} is a device or a pipe");
        }
        Ok(Self { file, name, bound: limits.map(Retention::new), is_empty: true })
    }

    /// Leaves everything as it was: the program could not be started.
    pub(super) fn discard(self) {
        self.file.discard();
    }

    /// Starts recording the session of process `pid`, which has started at `since`. `warn` is called when something
    /// cannot be recorded.
    pub(super) fn follow(
        mut self,
        pid: u32,
        session: ProgramSession,
        unpublished: Unpublished,
        warn: impl Fn(&str) + Send + 'static,
    ) -> anyhow::Result<ActiveRecording> {
        let program_ended = Arc::<ProgramEnd>::default();
        let ended = Arc::clone(&program_ended);
        let follow = move || match self.record(pid, session, &ended, unpublished, &warn) {
            // An older recording is worth more than one with nothing in it.
            Ok(Some(_)) if self.is_empty && self.file.replaces() => {
                self.file.discard();
                RecordingOutcome::Nothing
            }
            Ok(Some(summary)) => match self.file.finish() {
                Ok(()) => RecordingOutcome::Recorded(summary),
                Err(error) => {
                    warn(&format!("{error:#}"));
                    RecordingOutcome::Failed
                }
            },
            Ok(None) => {
                self.file.discard();
                RecordingOutcome::Nothing
            }
            Err(error) => {
                // What was written stays, and so does an older file that it should have replaced.
                let kept = self.file.keep_partial();
                warn(&format!("{} ends here: {error:#}; the program keeps running", kept.display()));
                RecordingOutcome::Failed
            }
        };
        let thread = thread::Builder::new().name("gnntop recorder".to_owned()).spawn(follow);
        Ok(ActiveRecording { ended: program_ended, thread: thread.context("cannot start the recorder")? })
    }

    /// Records until the session ends, or until the program does if it has no session; `None` if nothing was recorded.
    fn record(
        &mut self,
        pid: u32,
        mut session: ProgramSession,
        program: &ProgramEnd,
        unpublished: Unpublished,
        warn: &dyn Fn(&str),
    ) -> anyhow::Result<Option<String>> {
        let mut outside = match unpublished {
            Unpublished::Hardware => record_hardware(pid, self.file.file())?,
            Unpublished::Nothing => None,
        };
        let session = loop {
            // Asked before the look, so that a session of a program that has just ended is still found.
            let last_look = program.is_set();
            if let Some(session) = session.find() {
                break session;
            }
            if let Some(outside) = &mut outside {
                outside.poll()?;
            }
            if last_look {
                let Some(outside) = outside else { return Ok(None) };
                let (summary, is_empty) = finish_hardware(outside, &self.name, program)?;
                self.is_empty = is_empty;
                return Ok(Some(summary));
            }
            thread::sleep(POLL_INTERVAL);
        };
        // The session has the hardware from its own beginning.
        drop(outside);
        let failed = || format!("cannot write {}", self.name);
        let mut file = self.file.file().try_clone().with_context(failed)?;
        file.set_len(0).and_then(|()| file.rewind()).with_context(failed)?;
        let options = RecorderOptions::default();
        let options = self.bound.as_ref().map_or(options.clone(), |bound| bound.options(options));
        let mut recorded = SourceRecorder::new(follow(&session), file, options);
        self.record_to_end(&mut recorded, program)?;
        recorded.finish()?;
        if let Some(bound) = &mut self.bound {
            bound.enforce(&mut recorded, &mut self.file)?;
        }
        self.is_empty = recorded.is_empty();
        recorded.warnings().iter().for_each(|warning| warn(&format!("{}: {warning}", self.name)));
        Ok(Some(recorded.summary(&self.name)))
    }

    /// Records until the program and its session have ended: why the program died is added to the session, and read
    /// there. If the program ends first, its session is waited for a little.
    fn record_to_end(&mut self, recorded: &mut SourceRecorder<File>, program: &ProgramEnd) -> anyhow::Result<()> {
        let mut give_up_at = None;
        loop {
            // Asked before the look, so that what was added before is read.
            let is_over = program.is_set();
            let progress = recorded.poll()?;
            if let Some(bound) = &mut self.bound {
                bound.enforce(recorded, &mut self.file)?;
            }
            if is_over && !progress.more {
                let give_up_at = *give_up_at.get_or_insert_with(|| Instant::now() + GRACE);
                if recorded.end_reason().is_some() || Instant::now() >= give_up_at {
                    return Ok(());
                }
            }
            if !progress.more {
                thread::sleep(POLL_INTERVAL);
            }
        }
    }
}

impl ActiveRecording {
    /// Ends the recording after the program has ended, with the cause if it died.
    pub(super) fn finish(self, death: Option<&Death>) -> RecordingOutcome {
        if let Some(death) = death {
            let _ = self.ended.death.set(exit_record::fact(&death.text, death.cause.id()));
        }
        self.ended.has_come.store(true, Ordering::Release);
        self.thread.join().unwrap_or(RecordingOutcome::Failed)
    }
}

/// The recording of a program's hardware; `None` if it has ended already.
fn record_hardware(pid: u32, file: &File) -> anyhow::Result<Option<SourceRecorder<File>>> {
    let Some(process) = Process::find(pid) else { return Ok(None) };
    let hardware = Hardware::observe(process, Launcher::Gnntop).context("cannot read the sensors")?;
    let file = file.try_clone().context("cannot write the recording")?;
    Ok(Some(SourceRecorder::new(Box::new(hardware), file, RecorderOptions::default())))
}

/// Ends the recording of a program that published nothing. Returns its summary, and whether there is nothing in it.
fn finish_hardware(
    mut outside: SourceRecorder<File>,
    name: &str,
    program: &ProgramEnd,
) -> anyhow::Result<(String, bool)> {
    let give_up_at = Instant::now() + GRACE;
    while outside.end_reason().is_none() && Instant::now() < give_up_at {
        if !outside.poll()?.more {
            thread::sleep(POLL_INTERVAL);
        }
    }
    program.death.get().into_iter().for_each(|death| outside.add(death.clone()));
    outside.finish()?;
    let summary = format!("{}, hardware only: the program published no steps", outside.summary(name));
    Ok((summary, outside.is_empty()))
}

fn is_pipe_without_reader(path: &Path) -> bool {
    let is_pipe = std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
    let opened = || OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path);
    is_pipe && opened().is_err_and(|error| error.raw_os_error() == Some(libc::ENXIO))
}
