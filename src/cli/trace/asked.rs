//! A request in a session's directory, and the wait for its answer.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use gnntop_wire::deep_trace::{Answer, Request};
use gnntop_wire::layout;
use rustix::fs::{FlockOperation, OFlags, flock};

use super::watched::Watched;
use crate::cli::{output, signals};
use gnntop_analysis::figures::elapsed_time;
use gnntop_analysis::source::trusted;

/// Time between two looks for the answer.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Longest answer.
const MAX_ANSWER: u64 = 4096;

/// A request. It is withdrawn when dropped, and what the program has written is removed.
pub(super) struct Asked {
    dir: PathBuf,
    request: Request,
    /// Locked as long as somebody waits for the answer.
    _file: File,
}

/// How the wait ended.
pub(super) enum Waited {
    /// The trace is complete.
    Done(Trace),
    /// This signal came.
    Interrupted(i32),
}

/// A trace that the program has written.
pub(super) struct Trace {
    pub(super) path: PathBuf,
    /// Number of the first step, and of the last.
    pub(super) first: u64,
    pub(super) last: u64,
    /// Spans of it that are also in the session.
    pub(super) spans: u64,
    /// Keeps the file until it has been fetched.
    _asked: Asked,
}

impl Asked {
    /// Asks the program of the session in `dir` to trace this many steps.
    ///
    /// # Errors
    /// If somebody else waits for a trace of it, or nothing can be written there.
    pub(super) fn of(dir: &Path, steps: u32) -> anyhow::Result<Self> {
        let path = dir.join(layout::REQUEST_FILE);
        if trusted::open(&path).is_ok_and(|other| flock(&other, FlockOperation::NonBlockingLockShared).is_err()) {
            bail!("another `gnntop trace` waits for this program: try again when it has ended");
        }
        let request = Request { id: id(), steps };
        let failed = || format!("cannot ask the program: cannot write {}", path.display());
        let file = write(dir, &request).with_context(failed)?;
        Ok(Self { dir: dir.to_owned(), request, _file: file })
    }

    /// Waits for the trace, and shows how far it has got.
    ///
    /// # Errors
    /// If the program cannot, ends, or takes too long.
    pub(super) fn wait(
        self,
        watched: &Watched,
        interruption: &signals::Interruption,
        until: Instant,
    ) -> anyhow::Result<Waited> {
        let asked_at = Instant::now();
        let waited = loop {
            if let Some(signal) = interruption.take() {
                break Ok(Waited::Interrupted(signal));
            }
            let answer = self.answer();
            match answer {
                Some(Answer::Done { first, last, spans }) => {
                    let path = self.dir.join(layout::TRACE_FILE);
                    break Ok(Waited::Done(Trace { path, first, last, spans, _asked: self }));
                }
                Some(Answer::Failed { why }) => {
                    break Err(anyhow::anyhow!("{} cannot be traced: {why}", watched.label()));
                }
                began => output::progress(&self.progress(began.as_ref(), asked_at.elapsed())),
            }
            if !watched.is_alive() {
                break Err(anyhow::anyhow!("{} ended before the trace was complete", watched.label()));
            }
            if Instant::now() >= until {
                break Err(anyhow::anyhow!("{}", self.lateness(watched)));
            }
            thread::sleep(LOOK_INTERVAL);
        };
        output::progress("");
        waited
    }

    fn answer(&self) -> Option<Answer> {
        let file = trusted::open(&self.dir.join(layout::ANSWER_FILE)).ok()?;
        let text = io::read_to_string(io::Read::take(file, MAX_ANSWER)).ok()?;
        Answer::read(&text, &self.request)
    }

    fn progress(&self, began: Option<&Answer>, waited: Duration) -> String {
        let steps = self.request.steps;
        match began {
            Some(Answer::Began { step }) if steps == 1 => format!("tracing step {step}: {}", elapsed_time(waited)),
            Some(Answer::Began { step }) => {
                format!("tracing steps {step} to {}: {}", step + u64::from(steps) - 1, elapsed_time(waited))
            }
            _ => format!("waiting for the end of a step: {}", elapsed_time(waited)),
        }
    }

    fn lateness(&self, watched: &Watched) -> String {
        let (label, pid) = (watched.label(), watched.pid());
        match self.answer() {
            Some(_) => {
                format!("the trace of {label} took too long: trace fewer steps, or wait longer with --within")
            }
            None => format!(
                "{label} finished no step in that time, or runs under an older gnntop: `gnntop attach {pid}` shows what it \
                 is doing"
            ),
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        // A file that cannot be removed goes with the session.
        for name in [layout::REQUEST_FILE, layout::ANSWER_FILE, layout::TRACE_FILE] {
            let _ = fs::remove_file(self.dir.join(name));
        }
    }
}

/// Writes a request, locked, which appears at once and whole.
fn write(dir: &Path, request: &Request) -> io::Result<File> {
    let new = dir.join(layout::NEW_REQUEST_FILE);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let mut file = options.open(&new)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    file.write_all(request.to_string().as_bytes())?;
    fs::rename(&new, dir.join(layout::REQUEST_FILE))?;
    Ok(file)
}

/// A number that no earlier request has had.
fn id() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() as u64) ^ u64::from(std::process::id()).rotate_left(48)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_at_a_time_and_none_is_left_behind() {
        let dir = tempfile::tempdir().unwrap();
        let first = Asked::of(dir.path(), 5).unwrap();
        let text = fs::read_to_string(dir.path().join("request")).unwrap();
        assert!(text.starts_with("trace ") && text.ends_with(" 5\n"), "{text}");
        let error = Asked::of(dir.path(), 1).err().unwrap().to_string();
        assert!(error.starts_with("another `gnntop trace` waits"), "{error}");
        fs::write(dir.path().join("answer"), format!("{:016x} began 7\n", first.request.id)).unwrap();
        assert_eq!(first.answer(), Some(Answer::Began { step: 7 }));
        drop(first);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        // One that was killed has left its request, which nobody holds.
        fs::write(dir.path().join("request"), "trace 1 5\n").unwrap();
        assert!(Asked::of(dir.path(), 1).is_ok());
    }
}
