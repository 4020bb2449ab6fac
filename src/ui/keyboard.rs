//! Notices that the terminal itself is gone, which crossterm does not tell: it reads no keys from it for ever.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsRawFd, RawFd};

/// The terminal that keys come from: standard input, or the controlling terminal where input is a pipe.
pub struct Keyboard {
    terminal: Option<File>,
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

    /// Whether the terminal was closed.
    pub fn is_gone(&self) -> bool {
        let mut watched = libc::pollfd { fd: self.fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `watched` is one valid pollfd, and 1 is its number; a timeout of 0 does not wait.
        let ready = unsafe { libc::poll(&raw mut watched, 1, 0) };
        ready > 0 && watched.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0
    }
}
