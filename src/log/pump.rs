//! Takes a program's output out of its pipe into the log. The program never waits for a disk: one thread empties the pipe,
//! another one writes. Of what comes faster than it can be written the newest is kept, and the rest is counted.

use std::io::{self, PipeReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use super::bounded::BoundedLog;

/// Most bytes of output that may wait for the disk.
const MAX_WAITING: usize = 4 << 20;
/// What is read from the pipe at a time: as much as one holds.
const CHUNK: usize = 64 << 10;

/// The way of a program's output into its log, for as long as any process holds the other end of the pipe.
#[derive(Debug)]
pub struct Pump {
    pipe: PipeReader,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<PumpState>,
    changed: Condvar,
}

/// Output without a gap in it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Piece {
    /// Bytes before it that are lost.
    lost: u64,
    bytes: Vec<u8>,
}

/// Output on its way.
#[derive(Debug, Default)]
struct PumpState {
    waiting: Vec<Piece>,
    /// Bytes that ever came out of the pipe.
    taken: u64,
    /// Bytes of them that are in the log, or lost.
    done: u64,
    is_writing: bool,
    /// Whether output is lost that the log does not report.
    has_untold_losses: bool,
    /// Nobody holds the other end any more.
    is_over: bool,
}

impl PumpState {
    fn push(&mut self, bytes: &[u8]) {
        self.taken += bytes.len() as u64;
        let waiting: usize = self.waiting.iter().map(|piece| piece.bytes.len()).sum();
        // A program's last words matter most.
        if waiting + bytes.len() > MAX_WAITING {
            let lost = self.waiting.drain(..).map(|piece| piece.lost + piece.bytes.len() as u64).sum();
            self.waiting.push(Piece { lost, bytes: Vec::new() });
        }
        match self.waiting.last_mut() {
            Some(newest) => newest.bytes.extend_from_slice(bytes),
            None => self.waiting.push(Piece { lost: 0, bytes: bytes.to_vec() }),
        }
    }

    /// Notes output that is lost after what waits.
    fn lose(&mut self, bytes: u64) {
        match self.waiting.last_mut().filter(|newest| newest.bytes.is_empty()) {
            Some(newest) => newest.lost += bytes,
            None => self.waiting.push(Piece { lost: bytes, bytes: Vec::new() }),
        }
    }
}

impl Pump {
    /// Starts to fill `log` with what is written into the pipe, whose other readers may take some of it.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(pipe: PipeReader, log: BoundedLog) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        let shared = Arc::<Shared>::default();
        let (from, to) = (pipe.try_clone()?, Arc::clone(&shared));
        thread::Builder::new().name("gnntop output".to_owned()).spawn(move || to.fill(from))?;
        let from = Arc::clone(&shared);
        thread::Builder::new().name("gnntop log".to_owned()).spawn(move || from.empty(log))?;
        Ok(Self { pipe, shared })
    }

    /// Waits until all that was written into the pipe so far is in the log; says whether it is.
    pub fn wait_written(&self, at_most: Duration) -> bool {
        let give_up_at = Instant::now() + at_most;
        let in_pipe = || rustix::io::ioctl_fionread(&self.pipe).unwrap_or(0);
        let mut state = self.shared.lock();
        let until = state.taken + in_pipe();
        loop {
            // What came after that, such as from a process that was left behind, is not waited for.
            let is_taken = state.is_over || state.taken >= until || in_pipe() == 0;
            if is_taken && state.done >= until.min(state.taken) {
                return true;
            }
            let left = give_up_at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.shared.wait(state, left.min(Duration::from_millis(10)));
        }
    }

    /// Whether output is lost that the log does not report, as where the disk has become full.
    pub fn has_untold_losses(&self) -> bool {
        self.shared.lock().has_untold_losses
    }

    /// Counts output that another reader of the pipe has dropped.
    pub fn lose(&self, bytes: u64) {
        self.shared.lock().lose(bytes);
        self.shared.changed.notify_all();
    }

    /// Waits until no process holds the other end of the pipe any more and everything is written.
    pub fn wait_for_the_end(&self) {
        let mut state = self.shared.lock();
        while !(state.is_over && state.waiting.is_empty() && !state.is_writing) {
            state = self.shared.wait(state, Duration::from_secs(1));
        }
    }
}

impl Shared {
    /// A lock whose holders leave it consistent, so that a panic elsewhere does not matter.
    fn lock(&self) -> MutexGuard<'_, PumpState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, PumpState>, at_most: Duration) -> MutexGuard<'a, PumpState> {
        self.changed.wait_timeout(state, at_most).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Empties the pipe until its other end is closed.
    fn fill(&self, mut pipe: PipeReader) {
        let mut bytes = vec![0; CHUNK];
        loop {
            // Waited for without the lock and read with it, so that nothing is ever between the pipe and the queue.
            let _ = poll(&mut [PollFd::new(&pipe, PollFlags::IN)], None);
            let mut state = self.lock();
            match pipe.read(&mut bytes) {
                Ok(len @ 1..) => state.push(&bytes[..len]),
                Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => (),
                Ok(0) | Err(_) => {
                    state.is_over = true;
                    self.changed.notify_all();
                    return;
                }
            }
            self.changed.notify_all();
        }
    }

    /// Writes what comes, as long as this process lives: what another reader has dropped may be said last.
    fn empty(&self, mut log: BoundedLog) -> ! {
        let mut state = self.lock();
        loop {
            if state.waiting.is_empty() {
                state = self.wait(state, Duration::from_secs(1));
                continue;
            }
            let (waiting, taken) = (std::mem::take(&mut state.waiting), state.taken);
            state.is_writing = true;
            drop(state);
            for piece in waiting {
                log.lose(piece.lost);
                log.write(&piece.bytes);
            }
            state = self.lock();
            (state.is_writing, state.done) = (false, taken);
            state.has_untold_losses = log.has_untold_losses();
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn everything_written_reaches_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let private = gnntop_sessions::PrivateDir::open(dir.path()).unwrap();
        private.create_log("a.log").unwrap();
        let (pipe, mut end) = io::pipe().unwrap();
        let pump = Pump::start(pipe, BoundedLog::open(private, "a.log").unwrap()).unwrap();
        let text: String = (0..50_000).map(|line| format!("line {line}\n")).collect();
        end.write_all(text.as_bytes()).unwrap();
        assert!(pump.wait_written(LONG));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        pump.lose(7);
        drop(end);
        pump.wait_for_the_end();
        let whole = format!("{text}[gnntop: 7 bytes of output are lost here: they could not be written]\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), whole);
    }

    #[test]
    fn slow_disk_keeps_newest_output_and_counts_the_rest() {
        let mut state = PumpState::default();
        (0..3).for_each(|piece| state.push(&vec![piece; MAX_WAITING / 2]));
        assert_eq!(state.waiting, [Piece { lost: MAX_WAITING as u64, bytes: vec![2; MAX_WAITING / 2] }]);
    }

    #[test]
    fn lost_output_is_noted_between_what_came_before_and_after_it() {
        let mut state = PumpState::default();
        state.push(b"before");
        (0..2).for_each(|_| state.lose(5));
        state.push(b"after");
        let piece = |lost, bytes: &[u8]| Piece { lost, bytes: bytes.to_vec() };
        assert_eq!(state.waiting, [piece(0, b"before"), piece(10, b"after")]);
    }
}
