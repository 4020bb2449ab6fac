//! A program's output, as its owner sees it: another process, the collector, writes it to the log. If that one is stopped or
//! killed, the owner empties the pipe itself and drops what was in it, so that the program neither waits nor ends.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gnntop_sessions::{Error, PrivateDir};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::collect::CollectArguments;
use super::messages::{MessageReader, ToCollector, send};

/// Time between two looks at a pipe that has output in it.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// A collector that does not answer for this long is stopped, or hangs. Longer than it takes to settle.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes dropped at a time: as much as a pipe holds.
const CHUNK: usize = 64 << 10;

/// The message if the collector was killed, or could not write the log at all.
const ENDED: &str = "the process that writes the program's output to its log has ended: output is lost from now on";

/// The output of one program.
pub(super) struct Output {
    log: PathBuf,
    collector: Arc<Mutex<Collector>>,
    /// Ends after the last writer.
    guard: JoinHandle<()>,
}

/// The process that empties the pipe.
struct Collector {
    socket: UnixStream,
    incoming: MessageReader,
    /// Messages that it has not answered, and the last answer.
    unanswered: usize,
    answer: bool,
}

impl Output {
    /// Creates the log of this name in `dir` and starts its collector. Returns the end of the pipe that the program writes to.
    ///
    /// # Errors
    /// If the log cannot be created, or the system has no pipe or process to give.
    pub(super) fn start(
        dir: &PrivateDir,
        name: &str,
        warn: impl Fn(&str) + Send + 'static,
    ) -> Result<(Self, PipeWriter), Error> {
        dir.create_log(name)?;
        let (log, (pipe, end)) = (dir.path().join(name), io::pipe()?);
        // It has two readers, and none may wait for what the other has read.
        rustix::io::ioctl_fionbio(&pipe, true)?;
        let (socket, theirs) = UnixStream::pair()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(CollectArguments::words(&log)).stdin(pipe.try_clone()?).stdout(OwnedFd::from(theirs));
        let process = std::os::unix::process::CommandExt::process_group(command.stderr(Stdio::null()), 0).spawn()?;
        // It holds the other end of the socket until it is gone.
        drop(command);
        let collector = Collector { socket, incoming: MessageReader::default(), unanswered: 0, answer: false };
        let collector = Arc::new(Mutex::new(collector));
        let guarded = Arc::clone(&collector);
        let guard = move || guard(pipe, &guarded, process, &warn);
        let guard = thread::Builder::new().name("gnntop output".to_owned()).spawn(guard)?;
        Ok((Self { log, collector, guard }, end))
    }

    /// The log.
    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// Waits until all that was written so far is in the log. Does not wait long for a disk that hangs. Returns whether output is lost
    /// that the log does not report.
    pub(super) fn settle(&self) -> bool {
        let mut collector = lock(&self.collector);
        if collector.ask(&ToCollector::Settle) {
            return collector.ask(&ToCollector::HasUntoldLosses) && collector.answer;
        }
        drop(collector);
        // It may be about to end, because the program closed its output before.
        self.wait_closed(POLL_INTERVAL);
        false
    }

    /// Whether no process can write any more and everything is in the log, or is within this time.
    pub(super) fn wait_closed(&self, at_most: Duration) -> bool {
        let give_up_at = Instant::now() + at_most;
        while !self.guard.is_finished() && Instant::now() < give_up_at {
            thread::sleep(Duration::from_millis(10).min(at_most));
        }
        self.guard.is_finished()
    }
}

impl Collector {
    /// Asks it something. Returns whether it, and everything asked before, was answered in time.
    fn ask(&mut self, message: &ToCollector) -> bool {
        self.send(message);
        self.has_answered_until(Instant::now() + PATIENCE)
    }

    /// Whether it has answered everything, or does until then. If this process was stopped meanwhile, the answers are there.
    fn has_answered_until(&mut self, give_up_at: Instant) -> bool {
        loop {
            let left = give_up_at.saturating_duration_since(Instant::now());
            if self.has_answered_within(left) {
                return true;
            }
            if left.is_zero() || self.incoming.is_over() {
                return false;
            }
        }
    }

    /// Asks it something, and leaves the answer for later.
    fn send(&mut self, message: &ToCollector) {
        send(&self.socket, message);
        self.unanswered += 1;
    }

    /// Takes its answers in, or waits for them; returns whether none is missing.
    fn has_answered_within(&mut self, wait: Duration) -> bool {
        // A read that waits for no time is an error; if it cannot be set, the read waits, and is repeated.
        let _ = self.socket.set_read_timeout(Some(wait.max(Duration::from_millis(1))));
        while self.unanswered > 0
            && let Some(answer) = self.incoming.next::<bool>(&self.socket)
        {
            self.unanswered -= 1;
            self.answer = answer;
        }
        self.unanswered == 0
    }
}

/// Watches until the last writer has gone that the pipe is emptied, and then that everything was written.
fn guard(mut pipe: PipeReader, collector: &Mutex<Collector>, mut process: Child, warn: &dyn Fn(&str)) {
    loop {
        let found = poll_pipe(&pipe, None);
        thread::sleep(POLL_INTERVAL);
        if rustix::io::ioctl_fionread(&pipe).unwrap_or(0) == 0 {
            if found.contains(PollFlags::HUP) {
                break;
            }
        } else if !lock(collector).ask(&ToCollector::Ping) {
            drop_output(&mut pipe, collector, warn);
        }
    }
    // It ends when nobody will tell it anything any more.
    let _ = lock(collector).socket.shutdown(Shutdown::Write);
    let _ = process.wait();
}

/// Empties the pipe until the collector answers or the last writer has gone.
fn drop_output(pipe: &mut PipeReader, collector: &Mutex<Collector>, warn: &dyn Fn(&str)) {
    let (mut dropped, mut chunk, mut has_ended) = (0, vec![0; CHUNK], false);
    loop {
        let found = poll_pipe(pipe, Some(POLL_INTERVAL));
        // Without output in it, this is an error.
        dropped += pipe.read(&mut chunk).unwrap_or(0) as u64;
        let mut collector = lock(collector);
        let is_back = !collector.incoming.is_over() && collector.has_answered_within(Duration::ZERO);
        if is_back || found == PollFlags::HUP {
            collector.send(&ToCollector::Dropped(dropped));
        }
        // It may have been stopped before it ended.
        let is_over = collector.incoming.is_over();
        drop(collector);
        if is_over && !std::mem::replace(&mut has_ended, true) {
            warn(ENDED);
        }
        if is_back || found == PollFlags::HUP {
            return;
        }
    }
}

/// What is the matter with the pipe: `IN` if there is output in it, `HUP` if nobody can write any more.
fn poll_pipe(pipe: &PipeReader, at_most: Option<Duration>) -> PollFlags {
    let mut pipes = [PollFd::new(pipe, PollFlags::IN)];
    let at_most = at_most.and_then(|at_most| Timespec::try_from(at_most).ok());
    // Interrupted, it has found nothing.
    let _ = poll(&mut pipes, at_most.as_ref());
    pipes[0].revents()
}

/// A lock whose holders leave it consistent, so that a panic elsewhere does not matter.
fn lock(collector: &Mutex<Collector>) -> MutexGuard<'_, Collector> {
    collector.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io::Write;

    use super::*;

    #[test]
    fn has_answered_until_takes_answers_that_came_in_time() {
        let (socket, theirs) = UnixStream::pair().unwrap();
        let mut collector = Collector { socket, incoming: MessageReader::default(), unanswered: 2, answer: false };
        let long_ago = Instant::now();
        assert!(!collector.has_answered_until(long_ago));
        (0..2).for_each(|_| send(&theirs, &true));
        assert!(collector.has_answered_until(long_ago), "this process was stopped for all the time");
    }

    #[test]
    fn drop_output_reports_collector_that_was_stopped_and_then_killed() {
        let (socket, theirs) = UnixStream::pair().unwrap();
        let mut collector = Collector { socket, incoming: MessageReader::default(), unanswered: 1, answer: false };
        assert!(!collector.has_answered_within(Duration::ZERO) && !collector.incoming.is_over(), "it is stopped");
        drop(theirs);
        let (mut pipe, mut end) = io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&pipe, true).unwrap();
        end.write_all(b"lost").unwrap();
        drop(end);
        let warnings = RefCell::new(Vec::new());
        drop_output(&mut pipe, &Mutex::new(collector), &|text| warnings.borrow_mut().push(text.to_owned()));
        assert_eq!(*warnings.borrow(), [ENDED]);
    }
}
