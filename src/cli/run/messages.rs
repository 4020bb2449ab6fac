//! The messages between the keeper of a program, the command that started it and the process that collects its output: one line
//! of JSON each, over a socket.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::path_bytes;

/// What the keeper says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum KeeperMessage {
    /// Something that does not work and that the program does without.
    Warning(String),
    /// The program was not started.
    Refused {
        why: String,
        /// The exit code for this.
        code: u8,
    },
    Started {
        pid: u32,
        #[serde(with = "path_bytes")]
        log: Option<PathBuf>,
        /// Where its Pythons answer.
        #[serde(with = "path_bytes")]
        answers: Option<PathBuf>,
    },
    /// A signal was not passed on, because it is for the view alone: a shell that ends sends it to what is stopped.
    HungUp,
    Ended {
        /// Its exit code, 128 + N where signal N ended it.
        code: u8,
        /// Further lines to print.
        lines: Vec<String>,
        /// Why it died, if it did: in a paragraph, and the cause in a word.
        died: Option<(String, String)>,
    },
}

/// What the keeper is asked.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum KeeperRequest {
    /// Pass this signal on.
    Signal(i32),
}

/// What the collector is asked. It answers each with a `bool`, in order.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToCollector {
    /// Whether it is there.
    Ping,
    /// Whether everything that was written so far is in the log.
    Settle,
    /// Whether output is lost that the log does not report.
    HasUntoldLosses,
    /// Its owner has dropped this many bytes of output.
    Dropped(u64),
}

/// Sends a message. If the other side is gone, nothing happens.
pub(super) fn send(mut socket: &UnixStream, message: &impl Serialize) {
    if let Ok(mut line) = serde_json::to_vec(message) {
        line.push(b'\n');
        let _ = socket.write_all(&line);
    }
}

/// The messages that arrive through a socket.
#[derive(Debug, Default)]
pub(super) struct MessageReader {
    bytes: Vec<u8>,
    is_over: bool,
}

impl MessageReader {
    /// The next message. Without one it waits, if the socket waits; `None` if there is none now, or never will be.
    pub(super) fn next<T: DeserializeOwned>(&mut self, mut socket: &UnixStream) -> Option<T> {
        let mut chunk = [0; 4096];
        loop {
            if let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.bytes.drain(..=end).collect();
                match serde_json::from_slice(&line) {
                    Ok(message) => return Some(message),
                    Err(_) => continue,
                }
            }
            match socket.read(&mut chunk) {
                Ok(len @ 1..) => self.bytes.extend_from_slice(&chunk[..len]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Ok(0) | Err(_) => {
                    self.is_over = true;
                    return None;
                }
            }
        }
    }

    /// Whether the other side is gone.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_one_by_one_until_the_end() {
        let (here, there) = UnixStream::pair().unwrap();
        there.set_nonblocking(true).unwrap();
        let mut incoming = MessageReader::default();
        send(&here, &KeeperRequest::Signal(15));
        send(&here, &KeeperRequest::Signal(10));
        for expected in [15, 10] {
            assert!(matches!(incoming.next(&there), Some(KeeperRequest::Signal(signal)) if signal == expected));
        }
        assert!(incoming.next::<KeeperRequest>(&there).is_none() && !incoming.is_over());
        drop(here);
        assert!(incoming.next::<KeeperRequest>(&there).is_none() && incoming.is_over());
        send(&there, &KeeperRequest::Signal(1));
    }
}
