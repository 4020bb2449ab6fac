//! Notices between two waits that the terminal itself is gone.
//!
//! crossterm reads a terminal that was hung up over and over without ever coming back, so it is asked only when the
//! terminal is still there. A terminal that is closed while crossterm waits is not noticed: waiting here instead
//! would hand it keys and a new size at once, of which it forgets one.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// The terminal that keys come from: standard input, or the controlling terminal where input is a pipe.
pub struct Keyboard {
    terminal: Option<File>,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// There may be input, or time is up, or a signal came.
    Over,
    /// The terminal was closed.
    HungUp,
}

impl Keyboard {
    /// The keyboard of this process.
    pub fn open() -> Self {
        let terminal = if io::stdin().is_terminal() { None } else { File::open("/dev/tty").ok() };
        Self { terminal }
    }

    fn fd(&self) -> RawFd {
        self.terminal.as_ref().map_or(libc::STDIN_FILENO, AsRawFd::as_raw_fd)
    }

    /// Waits for input, for at most `time`.
    pub fn wait(&self, time: Duration) -> io::Result<Waited> {
        let mut watched = libc::pollfd { fd: self.fd(), events: libc::POLLIN, revents: 0 };
        let milliseconds = libc::c_int::try_from(time.as_millis()).unwrap_or(libc::c_int::MAX);
        // SAFETY: `watched` is one valid pollfd, and 1 is its number.
        if unsafe { libc::poll(&raw mut watched, 1, milliseconds) } < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(Waited::Over) } else { Err(error) };
        }
        let gone = watched.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0;
        Ok(if gone { Waited::HungUp } else { Waited::Over })
    }
}
