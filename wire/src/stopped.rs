//! The text of a publisher's lock file while it cannot write its stream. The file gets its room when the session begins, so
//! that it can still be written when the disk is full.

use crate::text::clean;

/// Bytes of the lock file; always the same.
pub const LOCK_FILE_LEN: usize = 256;
/// How the lock file begins while the stream is being written.
const PUBLISHING: &str = "publishing";
/// How it begins while the stream is not being written.
const STOPPED: &str = "stopped";

/// The stream can no longer be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Since when, in nanoseconds since 1970.
    pub wall_ns: u64,
    /// Why, as words to follow "published until 14:02:11, then".
    pub reason: String,
}

impl Stopped {
    /// The content of the lock file; `None` means that the stream is being written.
    pub fn lock_file(stopped: Option<&Self>) -> [u8; LOCK_FILE_LEN] {
        let line = match stopped {
            None => PUBLISHING.to_owned(),
            Some(Self { wall_ns, reason }) => format!("{STOPPED} {wall_ns} {reason}"),
        };
        let mut bytes = [b' '; LOCK_FILE_LEN];
        let len = line.floor_char_boundary(LOCK_FILE_LEN - 1);
        bytes[..len].copy_from_slice(&line.as_bytes()[..len]);
        bytes[LOCK_FILE_LEN - 1] = b'\n';
        bytes
    }

    /// Reads a lock file's content; `None` if it does not report a stop. The reason is safe to show.
    pub fn of_lock_file(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LOCK_FILE_LEN)]);
        let (wall_ns, reason) = text.strip_prefix(STOPPED)?.strip_prefix(' ')?.split_once(' ')?;
        Some(Self { wall_ns: wall_ns.parse().ok()?, reason: clean(reason.trim_end().as_bytes()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read_again_and_takes_the_same_room() {
        let stopped = Stopped { wall_ns: 1_700_000_000_123_456_789, reason: "the disk was full".to_owned() };
        assert_eq!(Stopped::of_lock_file(&Stopped::lock_file(Some(&stopped))), Some(stopped));
        assert_eq!(Stopped::of_lock_file(&Stopped::lock_file(None)), None);
        let long = Stopped { wall_ns: u64::MAX, reason: "é".repeat(1000) };
        assert!(Stopped::of_lock_file(&Stopped::lock_file(Some(&long))).unwrap().reason.starts_with("éé"));
    }

    #[test]
    fn anything_else_says_nothing_and_drives_no_terminal() {
        for bytes in [&b""[..], b"stopped", b"stopped x y", b"\xff\xff", &[b's'; 5000]] {
            assert_eq!(Stopped::of_lock_file(bytes), None);
        }
        assert_eq!(Stopped::of_lock_file(b"stopped 7 a\x1b[2Jb\n").unwrap().reason, "a\u{fffd}[2Jb");
    }
}
