//! A process that reaches another machine, and all that it starts: `ssh` may be a script that runs the real one, or leaves
//! something behind. They are ended together, and no pipe is waited on for longer than its process runs.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::super::exit::FAILURE;

/// Time between two looks whether somebody has ended what is waited for.
const TURN: Duration = Duration::from_millis(50);
/// A pipe that says nothing for so long after its process is gone is held by what that has left behind.
const AFTER_EXIT: Duration = Duration::from_secs(1);
/// What fits into a pipe at least, once it takes anything (POSIX's `PIPE_BUF` on Linux; more than that elsewhere).
const PIECE: usize = 512;

/// A process that reaches another machine, in a process group of its own.
#[derive(Debug)]
pub(super) struct FarProcess {
    child: Child,
    pid: Option<Pid>,
}

impl FarProcess {
    /// Starts it. Ctrl-C in the terminal does not reach it: that is for this process.
    ///
    /// # Errors
    /// If that fails; the error names the program.
    pub(super) fn start(mut command: Command) -> io::Result<Self> {
        let program = command.get_program().to_string_lossy().into_owned();
        let started = command.process_group(0).spawn();
        let child =
            started.map_err(|error| io::Error::new(error.kind(), format!("cannot start {program}: {error}")))?;
        let pid = Pid::from_raw(child.id().cast_signed());
        Ok(Self { child, pid })
    }

    /// Its standard input, until `is_over` is set.
    pub(super) fn input(&mut self, is_over: &Arc<AtomicBool>) -> Option<Pipe<ChildStdin>> {
        let end = self.child.stdin.take()?;
        Some(self.pipe(end, is_over))
    }

    /// Its standard output, until `is_over` is set.
    pub(super) fn output(&mut self, is_over: &Arc<AtomicBool>) -> Option<Pipe<ChildStdout>> {
        let end = self.child.stdout.take()?;
        Some(self.pipe(end, is_over))
    }

    /// Its standard error, until `is_over` is set.
    pub(super) fn errors(&mut self, is_over: &Arc<AtomicBool>) -> Option<Pipe<ChildStderr>> {
        let end = self.child.stderr.take()?;
        Some(self.pipe(end, is_over))
    }

    fn pipe<E>(&self, end: E, is_over: &Arc<AtomicBool>) -> Pipe<E> {
        Pipe { end, pid: self.pid, is_over: Arc::clone(is_over) }
    }

    /// Waits for its end for at most this long, then ends it and all that it has started.
    pub(super) fn end(mut self, grace: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + grace;
        while !has_exited(self.pid) && Instant::now() < until {
            thread::sleep(TURN.min(grace));
        }
        self.kill()
    }

    fn kill(&mut self) -> Option<ExitStatus> {
        // Before it is waited for, no other process can have its number.
        if let Some(pid) = self.pid.take() {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = self.child.kill();
        }
        self.child.wait().ok()
    }
}

impl Drop for FarProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Whether it has ended; its exit code stays.
fn has_exited(pid: Option<Pid>) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    pid.is_none_or(|pid| !matches!(waitid(WaitId::Pid(pid), options), Ok(None)))
}

/// The exit code of a process, as a shell gives it.
pub(super) fn exit_code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILURE)
}

/// An end of a pipe to a process. It is at its end too when that process is gone and only others hold the pipe, or when it is over.
#[derive(Debug)]
pub(super) struct Pipe<E> {
    end: E,
    pid: Option<Pid>,
    is_over: Arc<AtomicBool>,
}

impl<E: AsFd> Pipe<E> {
    /// Waits until it can be read or written; `false` if that will not be.
    fn wait(&self, events: PollFlags) -> io::Result<bool> {
        let mut gone_since = None;
        loop {
            if self.is_over.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let turn = Timespec::try_from(TURN).unwrap_or_default();
            match poll(&mut [PollFd::new(&self.end, events)], Some(&turn)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => (),
                Ok(_) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
            if has_exited(self.pid) && gone_since.get_or_insert_with(Instant::now).elapsed() >= AFTER_EXIT {
                return Ok(false);
            }
        }
    }
}

impl<E: AsFd + Read> Read for Pipe<E> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.wait(PollFlags::IN)? { self.end.read(bytes) } else { Ok(0) }
    }
}

impl<E: AsFd + Write> Write for Pipe<E> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.wait(PollFlags::OUT)? {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.end.write(&bytes[..bytes.len().min(PIECE)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.end.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    fn shell(script: &str) -> FarProcess {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        FarProcess::start(shell).unwrap()
    }

    #[test]
    fn what_a_process_leaves_behind_holds_no_pipe_open() {
        // In a session of its own, where nothing that is sent to the group reaches it.
        let mut process = shell("setsid sh -c 'while kill -0 '$PPID'; do sleep 0.1; done' 2>&1 & echo said; exit 7");
        let is_over = Arc::default();
        let mut said = String::new();
        process.output(&is_over).unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((said.as_str(), process.end(Duration::ZERO).unwrap().code()), ("said\n", Some(7)));
    }

    #[test]
    fn children_end_with_their_process() {
        let mut process = shell("sleep 600 & sleep 600; true");
        let is_over = Arc::default();
        let mut output = process.output(&is_over).unwrap();
        process.end(Duration::ZERO);
        // Nobody holds the other end any more.
        assert!(poll(&mut [PollFd::new(&output.end, PollFlags::IN)], None).is_ok());
        assert_eq!(output.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn a_pipe_is_over_when_that_is_said() {
        let mut process = shell("exec sleep 600");
        let is_over = Arc::new(AtomicBool::new(true));
        assert_eq!(process.output(&is_over).unwrap().read(&mut [0]).unwrap(), 0);
        assert!(process.input(&is_over).unwrap().write_all(b"x").is_err());
    }
}
