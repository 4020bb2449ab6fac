//! Reads many runs on a thread of its own, so that a file system that hangs makes rows old and never stops the screen.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::app::{Action, RunRow};
use gnntop_analysis::figures::elapsed_time;
use gnntop_analysis::many_runs::RunsWatch;

/// Time between two new pictures of the table: ages are in seconds, and each picture costs a frame.
const EVERY: Duration = Duration::from_millis(500);
/// A thread that has not answered for so long waits for its files.
const PATIENCE: Duration = Duration::from_secs(5);

/// What was read.
struct Read {
    rows: Vec<RunRow>,
    problem: Option<String>,
}

/// The rows of many runs, whenever they are asked for.
pub struct RunsFeed {
    /// A request for rows. The thread ends when this is dropped.
    asked: Sender<()>,
    read: Receiver<Read>,
    /// Since when an answer is awaited.
    waiting_since: Option<Instant>,
    answered: Option<Instant>,
    /// Whole seconds of silence that were reported.
    reported_s: u64,
}

impl RunsFeed {
    /// Starts the thread, which reads only when it is asked.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start(mut watch: RunsWatch) -> io::Result<Self> {
        let ((asked, asking), (answer, read)) = (mpsc::channel(), mpsc::channel());
        let work = move || {
            while asking.recv().is_ok() {
                watch.poll();
                let problem = (!watch.problems().is_empty()).then(|| watch.problems().join("; "));
                if answer.send(Read { rows: watch.rows(), problem }).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("gnntop runs".to_owned()).spawn(work)?;
        Ok(Self { asked, read, waiting_since: None, answered: None, reported_s: 0 })
    }

    /// Asks if it is time, and returns what is new.
    pub fn poll(&mut self, now: Instant) -> Option<Action> {
        if let Ok(Read { rows, problem }) = self.read.try_recv() {
            (self.waiting_since, self.answered, self.reported_s) = (None, Some(now), 0);
            return Some(Action::RunsListed { rows: Some(rows), problem });
        }
        let Some(since) = self.waiting_since else {
            if self.answered.is_none_or(|answered| now.saturating_duration_since(answered) >= EVERY) {
                self.waiting_since = self.asked.send(()).is_ok().then_some(now);
            }
            return None;
        };
        let silent = now.saturating_duration_since(since);
        if silent < PATIENCE || silent.as_secs() == self.reported_s {
            return None;
        }
        self.reported_s = silent.as_secs();
        let problem = format!("the sessions' file system has not answered for {}", elapsed_time(silent));
        Some(Action::RunsListed { rows: None, problem: Some(problem) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_analysis::energy::Assumptions;
    use gnntop_analysis::many_runs::SessionsPlace;

    #[test]
    fn rows_are_read_when_asked_for_and_not_too_often() {
        let dir = tempfile::tempdir().unwrap();
        let watch = RunsWatch::new(vec![SessionsPlace::Own(dir.path().into())], true, Assumptions::default());
        let mut feed = RunsFeed::start(watch).unwrap();
        let now = Instant::now();
        let first = loop {
            if let Some(action) = feed.poll(now) {
                break action;
            }
        };
        assert_eq!(first, Action::RunsListed { rows: Some(Vec::new()), problem: None });
        assert_eq!(feed.poll(now), None);
        assert_eq!(feed.waiting_since, None, "it is too early to ask again");
        feed.poll(now + EVERY);
        assert!(feed.waiting_since.is_some());
    }

    #[test]
    fn a_silent_thread_is_reported_once_a_second() {
        let (asked, _asking) = mpsc::channel();
        let (_answer, read) = mpsc::channel();
        let mut feed = RunsFeed { asked, read, waiting_since: None, answered: None, reported_s: 0 };
        let now = Instant::now();
        assert_eq!(feed.poll(now), None);
        assert_eq!(feed.poll(now + PATIENCE / 2), None);
        let Some(Action::RunsListed { rows: None, problem: Some(problem) }) = feed.poll(now + PATIENCE) else {
            panic!("nothing is said")
        };
        assert_eq!(problem, "the sessions' file system has not answered for 5s");
        assert_eq!(feed.poll(now + PATIENCE), None);
        assert!(feed.poll(now + PATIENCE * 2).is_some());
    }
}
