//! What a session's lock file shows about its publisher: whether it lives, and since when it cannot write; or in a copy,
//! what its heartbeat shows.

use std::fs::{File, TryLockError};
use std::io::Read as _;
use std::time::Duration;

use gnntop_wire::ClockOffset;
use gnntop_wire::text::clean;

/// Bytes of the lock file; always the same.
pub(crate) const LEN: usize = 256;
/// How the lock file begins while the stream is being written.
const PUBLISHING: &str = "publishing";
/// How it begins while the stream is not being written.
const STOPPED: &str = "stopped";
/// How it begins in the copy of a session that has ended, which no process of any machine locks.
const COPIED: &str = "copied";

/// The stream can no longer be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Since when, in nanoseconds since 1970.
    pub wall_ns: u64,
    /// Why, as words to follow "published until 14:02:11, then".
    pub reason: String,
}

/// What a session's lock file shows about its publisher.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Publisher {
    /// Whether it lives.
    pub alive: bool,
    /// Since when it cannot write its stream, if it reports that. Safe to show.
    pub stopped: Option<Stopped>,
    /// What else is known where the session is a copy, whose program may run elsewhere.
    pub copy: Option<CopyState>,
}

/// What is known of the program where the session is a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyState {
    /// For how long nothing was heard of it, if that is longer than usual.
    pub silent: Option<Duration>,
    /// Why nothing newer comes, if that is known. Safe to show.
    pub trouble: Option<String>,
    /// From the program's monotonic clock to this machine's, if they were compared.
    pub clock: Option<ClockOffset>,
}

impl Publisher {
    /// Reads a session's lock file, which was just opened, and takes its lock from no one.
    pub(crate) fn read(lock: &File) -> Self {
        // A shared lock, so that two that look at the same time do not see each other. It is released when the file closes.
        let alive = matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock));
        let mut bytes = Vec::new();
        let read = lock.take(LEN as u64).read_to_end(&mut bytes);
        Self { alive, stopped: read.ok().and_then(|_| parse(&bytes)), copy: None }
    }
}

/// The content of the lock file; `None` means that the stream is being written.
pub(crate) fn text(stopped: Option<&Stopped>) -> [u8; LEN] {
    padded(&stopped.map_or_else(|| PUBLISHING.to_owned(), stopped_text))
}

/// The content of the lock file in the copy of a session that has ended.
pub(crate) fn copied_text(stopped: Option<&Stopped>) -> [u8; LEN] {
    padded(&stopped.map_or_else(|| COPIED.to_owned(), |stopped| format!("{COPIED} {}", stopped_text(stopped))))
}

/// Whether the lock file with this content is that of a copy.
pub(crate) fn is_copied(bytes: &[u8]) -> bool {
    bytes.starts_with(COPIED.as_bytes())
}

fn stopped_text(stopped: &Stopped) -> String {
    format!("{STOPPED} {} {}", stopped.wall_ns, stopped.reason)
}

fn padded(line: &str) -> [u8; LEN] {
    let mut bytes = [b' '; LEN];
    let len = line.floor_char_boundary(LEN - 1);
    bytes[..len].copy_from_slice(&line.as_bytes()[..len]);
    bytes[LEN - 1] = b'\n';
    bytes
}

/// Reads a lock file's content; `None` if it does not report a stop.
fn parse(bytes: &[u8]) -> Option<Stopped> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix(COPIED).map_or(&*text, str::trim_start);
    let (wall_ns, reason) = text.strip_prefix(STOPPED)?.strip_prefix(' ')?.split_once(' ')?;
    Some(Stopped { wall_ns: wall_ns.parse().ok()?, reason: clean(reason.trim_end().as_bytes()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopped_round_trip() {
        let stopped = Stopped { wall_ns: 1_700_000_000_123_456_789, reason: "the disk was full".to_owned() };
        assert_eq!(parse(&text(Some(&stopped))), Some(stopped.clone()));
        assert_eq!(parse(&text(None)), None);
        assert_eq!((parse(&copied_text(Some(&stopped))), parse(&copied_text(None))), (Some(stopped.clone()), None));
        assert!(is_copied(&copied_text(None)) && is_copied(&copied_text(Some(&stopped))) && !is_copied(&text(None)));
        let long = Stopped { wall_ns: u64::MAX, reason: "é".repeat(1000) };
        assert!(parse(&text(Some(&long))).unwrap().reason.starts_with("éé"));
    }

    #[test]
    fn parse_refuses_other_text_and_control_characters() {
        for bytes in [&b""[..], b"stopped", b"stopped x y", b"\xff\xff", &[b's'; 5000]] {
            assert_eq!(parse(bytes), None);
        }
        assert_eq!(parse(b"stopped 7 a\x1b[2Jb\n").unwrap().reason, "a\u{fffd}[2Jb");
    }
}
