//! What the two ends of a line say: each message is a line of JSON, some with bytes behind it.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use gnntop_sessions::Stopped;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What both ends speak. An end that speaks another one is refused.
pub(super) const PROTOCOL: u32 = 1;
/// Longest line of the far end.
const MAX_LINE: usize = 64 << 10;
/// Most bytes behind a line.
pub(super) const MAX_BYTES: usize = 64 << 20;

/// What the far end says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum FromFar {
    /// The first line. Shells may print anything before it.
    Hello { protocol: u32, version: String },
    /// Its monotonic clock, in answer to a [`ToFar::Ping`].
    Pong { monotonic_ns: u64 },
    /// A session, and whether it lives. Comes before its files, on each change, and as a heartbeat.
    Session {
        name: String,
        alive: bool,
        stopped: Option<(u64, String)>,
        /// When one that has ended was written last, in nanoseconds since 1970.
        #[serde(default)]
        last_active_ns: Option<u64>,
    },
    /// Bytes that are added to a file of a session, `len` of them behind this line.
    Append { session: String, file: String, at: u64, len: usize },
    /// A file of a session that is replaced by the `len` bytes behind this line.
    Replace { session: String, file: String, len: usize },
    /// A file of a session that is gone.
    Remove { session: String, file: String },
    /// Everything has been sent.
    Synced,
    /// Why there is nothing to send.
    Problem { text: String },
}

/// What the near end says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToFar {
    /// Asks for the clock.
    Ping,
    /// What it has of each session's files, in bytes: begin.
    Have { sessions: BTreeMap<String, BTreeMap<String, u64>> },
}

impl FromFar {
    /// The number of bytes behind it.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Append { len, .. } | Self::Replace { len, .. } => *len,
            _ => 0,
        }
    }

    /// Session `name`, as its publisher says, which was written last at this time.
    pub(super) fn session(name: &str, publisher: &gnntop_sessions::Publisher, last_active: Option<SystemTime>) -> Self {
        let stopped = publisher.stopped.as_ref().map(|stopped| (stopped.wall_ns, stopped.reason.clone()));
        let last_active =
            last_active.filter(|_| !publisher.alive).and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let last_active_ns = last_active.and_then(|time| u64::try_from(time.as_nanos()).ok());
        Self::Session { name: name.to_owned(), alive: publisher.alive, stopped, last_active_ns }
    }
}

/// Since when a session cannot write.
pub(super) fn stopped(said: Option<(u64, String)>) -> Option<Stopped> {
    said.map(|(wall_ns, reason)| Stopped { wall_ns, reason })
}

/// Writes a message and what is behind it.
pub(super) fn write(to: &mut impl Write, message: &impl Serialize, bytes: &[u8]) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.write_all(bytes)
}

/// Reads a line of JSON; `None` at the end. A line that is not what is expected is an error.
pub(super) fn read<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    read_at_most(from, MAX_LINE)
}

/// Reads a message of the near end, which may say what it has of many sessions.
pub(super) fn read_near(from: &mut impl BufRead) -> io::Result<Option<ToFar>> {
    read_at_most(from, MAX_BYTES)
}

fn read_at_most<T: DeserializeOwned>(from: &mut impl BufRead, most: usize) -> io::Result<Option<T>> {
    match read_line(from, most)? {
        None => Ok(None),
        Some(line) => serde_json::from_slice(&line).map(Some).map_err(io::Error::from),
    }
}

/// Reads lines until the first one of gnntop; `None` if there is none.
pub(super) fn read_hello(from: &mut impl BufRead) -> io::Result<Option<(u32, String)>> {
    let mut left = MAX_LINE;
    while let Some(line) = read_line(from, left)? {
        if let Ok(FromFar::Hello { protocol, version }) = serde_json::from_slice(&line) {
            return Ok(Some((protocol, gnntop_wire::text::clean(version.as_bytes()))));
        }
        left = left.saturating_sub(line.len() + 1);
    }
    Ok(None)
}

fn read_line(from: &mut impl BufRead, most: usize) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    from.by_ref().take(most as u64).read_until(b'\n', &mut line)?;
    match line.pop() {
        None if most > 0 => Ok(None),
        Some(b'\n') => Ok(Some(line)),
        Some(_) if line.len() + 1 < most => Ok(None), // cut in the middle
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "it sends lines that are too long")),
    }
}

/// Reads what is behind a message into `bytes`.
pub(super) fn read_bytes(from: &mut impl Read, len: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
    if len > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it sends files that are too long"));
    }
    bytes.clear();
    from.take(len as u64).read_to_end(bytes)?;
    if bytes.len() < len { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_their_bytes_round_trip() {
        let append = FromFar::Append { session: "a-1-00000000".into(), file: "x".into(), at: 7, len: 3 };
        let mut line = Vec::new();
        write(&mut line, &append, b"\n\n\n").unwrap();
        write(&mut line, &FromFar::Synced, b"").unwrap();
        let (mut from, mut bytes) = (line.as_slice(), Vec::new());
        assert_eq!(read::<FromFar>(&mut from).unwrap(), Some(append));
        read_bytes(&mut from, 3, &mut bytes).unwrap();
        assert_eq!(bytes, b"\n\n\n");
        assert_eq!(read(&mut from).unwrap(), Some(FromFar::Synced));
        assert_eq!(read::<FromFar>(&mut from).unwrap(), None);
    }

    #[test]
    fn a_line_that_is_cut_or_too_long_is_no_message() {
        let mut cut = &b"\"Syn"[..];
        assert_eq!(read::<FromFar>(&mut cut).unwrap(), None);
        let long = vec![b'x'; MAX_LINE + 1];
        assert!(read::<FromFar>(&mut long.as_slice()).is_err());
        assert!(read::<FromFar>(&mut &b"[]\n"[..]).is_err());
        assert!(read_bytes(&mut &b"ab"[..], 3, &mut Vec::new()).is_err());
        assert!(read_bytes(&mut &b"ab"[..], usize::MAX, &mut Vec::new()).is_err());
    }

    #[test]
    fn what_a_shell_prints_first_is_passed_over() {
        let mut text = b"Welcome to node7\n{}\n".to_vec();
        write(&mut text, &FromFar::Hello { protocol: 1, version: "0.1.0".into() }, b"").unwrap();
        assert_eq!(read_hello(&mut text.as_slice()).unwrap(), Some((1, "0.1.0".into())));
        assert_eq!(read_hello(&mut &b"bash: gnntop: not found\n"[..]).unwrap(), None);
        assert!(read_hello(&mut vec![b'\n'; MAX_LINE + 9].as_slice()).is_err());
    }
}
