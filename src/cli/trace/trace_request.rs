//! A request in a session's directory, and the wait for its answer.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use gnntop_sessions::Error;
use gnntop_sessions::request::{Answer, Pending};

use super::followed_session::FollowedSession;
use crate::cli::{output, signals};
use gnntop_analysis::figures::elapsed_time;

/// Time between two looks for the answer.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// A request to a program.
pub(super) struct TraceRequest(Pending);

/// How the wait ended.
pub(super) enum WaitOutcome {
    /// The trace is complete.
    Done(WrittenTrace),
    /// This signal came.
    Interrupted(i32),
}

/// A trace that the program has written.
pub(super) struct WrittenTrace {
    /// Number of the first step, and of the last.
    pub(super) first: u64,
    pub(super) last: u64,
    /// Spans of it that are also in the session.
    pub(super) spans: u64,
    /// Keeps the file until it has been fetched.
    pub(super) pending: Pending,
}

impl TraceRequest {
    /// Asks the program of the session in `dir` to trace this many steps.
    ///
    /// # Errors
    /// If somebody else waits for a trace of it, or nothing can be written there.
    pub(super) fn send(dir: &Path, steps: u32) -> anyhow::Result<Self> {
        Pending::new(dir, steps).map(Self).map_err(|error| match error {
            Error::Requested => anyhow!("another `gnntop trace` waits for this program: try again when it has ended"),
            other => anyhow!("cannot ask the program: {} {other}", dir.display()),
        })
    }

    /// Waits for the trace, and shows how far it has got.
    ///
    /// # Errors
    /// If the program cannot, ends, or takes too long.
    pub(super) fn wait(
        self,
        watched: &FollowedSession,
        interruption: &signals::Interruption,
        until: Instant,
    ) -> anyhow::Result<WaitOutcome> {
        let asked_at = Instant::now();
        let waited = loop {
            if let Some(signal) = interruption.take() {
                break Ok(WaitOutcome::Interrupted(signal));
            }
            // Before the answer is read: the program may answer and end, or answer at the last moment.
            let (is_alive, is_late) = (watched.is_alive(), Instant::now() >= until);
            let answer = self.0.answer();
            match answer {
                Some(Answer::Done { first, last, spans }) => {
                    break Ok(WaitOutcome::Done(WrittenTrace { first, last, spans, pending: self.0 }));
                }
                Some(Answer::Failed { why }) => {
                    break Err(anyhow::anyhow!("{} cannot be traced: {why}", watched.label()));
                }
                began => output::show_progress(&self.progress(began.as_ref(), asked_at.elapsed())),
            }
            if !is_alive {
                break Err(anyhow::anyhow!("{} ended before the trace was complete", watched.label()));
            }
            if is_late {
                break Err(anyhow::anyhow!("{}", self.lateness(watched)));
            }
            thread::sleep(POLL_INTERVAL);
        };
        output::show_progress("");
        waited
    }

    fn progress(&self, began: Option<&Answer>, waited: Duration) -> String {
        let steps = self.0.request().steps;
        match began {
            Some(Answer::Began { step }) if steps == 1 => format!("tracing step {step}: {}", elapsed_time(waited)),
            Some(Answer::Began { step }) => {
                format!("tracing steps {step} to {}: {}", step + u64::from(steps) - 1, elapsed_time(waited))
            }
            _ => format!("waiting for the end of a step: {}", elapsed_time(waited)),
        }
    }

    fn lateness(&self, watched: &FollowedSession) -> String {
        let (label, pid) = (watched.label(), watched.pid());
        match self.0.answer() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_request_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let _first = TraceRequest::send(dir.path(), 5).unwrap();
        let error = TraceRequest::send(dir.path(), 1).err().unwrap().to_string();
        assert!(error.starts_with("another `gnntop trace` waits"), "{error}");
        let error = TraceRequest::send(&dir.path().join("none"), 1).err().unwrap().to_string();
        assert!(error.starts_with("cannot ask the program: ") && error.contains("/none cannot be accessed"), "{error}");
    }
}
