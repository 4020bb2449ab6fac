//! Where sessions are on disk and what their files are called. The publisher writes them, viewers follow them. These are
//! only names; nothing here touches the disk.
//!
//! ```text
//! $GNNTOP_DIR/                          else $XDG_RUNTIME_DIR/gnntop, else gnntop-UID in the temporary folder; mode 0700
//!   pna-4711-5f3a90c2/                  one session: name, process id, start of its session id; mode 0700
//!     live                              locked (flock) by the publisher as long as it lives; see [`Stopped`](crate::Stopped)
//!     alive                             in a copy, in place of `live`: see [`Heartbeat`](crate::Heartbeat)
//!     00000000.gnntop, 00000001.gnntop  segments, oldest first; the last one grows; mode 0600
//!     past                              what is left of the segments before these; replaced whole, by way of `past.new`
//!     past-00000000, past-00000001      slices of that time, as many bytes of each as `past` says
//!     request, answer, trace.json       what `gnntop trace` asks for, and what came of it; see [`request`](crate::request)
//! ```

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::platform::user_id;

/// Extension of segments and recordings.
pub const EXTENSION: &str = "gnntop";
/// File in a session's directory that its publisher keeps locked while it lives.
pub const LOCK_FILE: &str = "live";
/// File in the directory of a session's copy that says when its program was last heard of, in place of a lock.
pub const ALIVE_FILE: &str = "alive";
/// Name of that file until it is complete.
pub const NEW_ALIVE_FILE: &str = "alive.new";
/// File in a session's directory with what is left of dropped segments.
pub const PAST_FILE: &str = "past";
/// Name of that file until it is complete.
pub const NEW_PAST_FILE: &str = "past.new";
/// File in a session's directory with what a person asks of the program.
pub const REQUEST_FILE: &str = "request";
/// Name of that file until it is complete.
pub const NEW_REQUEST_FILE: &str = "request.new";
/// File in a session's directory with the program's answer.
pub const ANSWER_FILE: &str = "answer";
/// Name of that file until it is complete.
pub const NEW_ANSWER_FILE: &str = "answer.new";
/// File in a session's directory with the trace that was asked for, until it is fetched.
pub const TRACE_FILE: &str = "trace.json";
/// Name of that file until it is complete: what torch's profiler writes.
pub const NEW_TRACE_FILE: &str = "trace.json.tmp";
/// Longest part of a session's name in its directory's name, in characters.
const MAX_NAME_IN_PATH: usize = 40;

/// The directory that holds all sessions of this user, from the environment.
pub fn sessions_dir() -> PathBuf {
    sessions_dir_from(|name| std::env::var_os(name), &temporary_dir(), user_id())
}

/// The directory for temporary files: an empty or relative `TMPDIR` would be the directory that a program works in.
pub fn temporary_dir() -> PathBuf {
    temporary_dir_from(std::env::var_os("TMPDIR"))
}

/// The same of another process, with this `TMPDIR`.
pub fn temporary_dir_from(variable: Option<OsString>) -> PathBuf {
    variable.map(PathBuf::from).filter(|dir| dir.is_absolute()).unwrap_or_else(|| PathBuf::from("/tmp"))
}

/// The directory that holds all sessions of the user `uid`; `env` looks up environment variables, of another process, too.
pub fn sessions_dir_from(env: impl Fn(&str) -> Option<OsString>, temporary: &Path, uid: u32) -> PathBuf {
    let set = |name| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("GNNTOP_DIR")
        .or_else(|| set("XDG_RUNTIME_DIR").map(|dir| dir.join("gnntop")))
        .unwrap_or_else(|| temporary.join(format!("gnntop-{uid}")))
}

/// The name of a session's directory. Characters outside `[A-Za-z0-9._-]` become `_`.
pub fn session_dir_name(name: &str, pid: u32, session_id: u128) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
    let name: String = name.chars().take(MAX_NAME_IN_PATH).map(safe).collect();
    let name = name.trim_start_matches('.');
    let name = if name.is_empty() { "run" } else { name };
    format!("{name}-{pid}-{:08x}", (session_id >> 96) as u32)
}

/// Whether a directory's name has the form of a session's: name, process id, start of the session id.
pub fn is_session_dir_name(name: &str) -> bool {
    let mut parts = name.rsplitn(3, '-');
    let (id, pid, rest) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default(), parts.next());
    let is_id = id.len() == 8 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_id && pid.parse::<u32>().is_ok() && rest.is_some_and(|name| !name.is_empty())
}

/// The file name of a segment.
pub fn segment_file_name(segment: u64) -> String {
    format!("{segment:08}.{EXTENSION}")
}

/// The number of the segment with this file name; `None` for other files.
pub fn segment_number(file_name: &str) -> Option<u64> {
    let digits = file_name.strip_suffix(EXTENSION)?.strip_suffix('.')?;
    let plain = digits.len() >= 8 && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

/// The name of a file with slices of the past.
pub fn slices_file_name(number: u64) -> String {
    format!("{PAST_FILE}-{number:08}")
}

/// Whether this names a file of a session that is only ever added to: a segment, or one with slices of the past.
pub(crate) fn grows(file_name: &str) -> bool {
    let digits = file_name.strip_prefix(PAST_FILE).and_then(|rest| rest.strip_prefix('-'));
    let is_slices = digits.is_some_and(|digits| digits.len() >= 8 && digits.bytes().all(|b| b.is_ascii_digit()));
    is_slices || segment_number(file_name).is_some()
}

/// Whether this names a file of a session: a segment, the lock, one of the past or of a request. Such files are removed with it.
pub fn is_session_file(file_name: &str) -> bool {
    let of_request = [REQUEST_FILE, NEW_REQUEST_FILE, ANSWER_FILE, NEW_ANSWER_FILE, TRACE_FILE, NEW_TRACE_FILE];
    let of_publisher = [LOCK_FILE, ALIVE_FILE, NEW_ALIVE_FILE, PAST_FILE, NEW_PAST_FILE];
    grows(file_name) || of_publisher.contains(&file_name) || of_request.contains(&file_name)
}

/// Environment variable: the id that a person has given a run.
pub const RUN: &str = "GNNTOP_RUN";
/// Environment variable: when `gnntop run --run` was called, in milliseconds since 1970. Each call is a start of the run.
pub const RUN_STARTED_MS: &str = "GNNTOP_RUN_STARTED_MS";
/// Environment variable: how far a person means the run to go, such as `20000` steps or `10ep`.
pub const GOAL: &str = "GNNTOP_GOAL";
/// Environment variable: a value that all ranks started by one `gnntop run` share.
pub const LAUNCH: &str = "GNNTOP_LAUNCH";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_dir_follows_environment() {
        let dir = |vars: &[(&str, &str)]| {
            let env = |name: &str| vars.iter().find(|v| v.0 == name).map(|v| v.1.into());
            sessions_dir_from(env, Path::new("/tmp"), 7)
        };
        assert_eq!(dir(&[("GNNTOP_DIR", "/a"), ("XDG_RUNTIME_DIR", "/b")]), Path::new("/a"));
        assert_eq!(dir(&[("GNNTOP_DIR", ""), ("XDG_RUNTIME_DIR", "/b")]), Path::new("/b/gnntop"));
        assert_eq!(dir(&[]), Path::new("/tmp/gnntop-7"));
    }

    #[test]
    fn temporary_files_are_never_in_the_directory_that_a_program_works_in() {
        let dir = |variable: Option<&str>| temporary_dir_from(variable.map(OsString::from));
        assert_eq!(dir(Some("/scratch")), Path::new("/scratch"));
        for variable in [None, Some(""), Some("."), Some("tmp")] {
            assert_eq!(dir(variable), Path::new("/tmp"), "{variable:?}");
        }
    }

    #[test]
    fn session_dir_name_stays_in_directory() {
        let id = 0x5f3a_90c2_u128 << 96;
        assert_eq!(session_dir_name("pna", 4711, id), "pna-4711-5f3a90c2");
        assert_eq!(session_dir_name("../../etc", 1, id), "_.._etc-1-5f3a90c2");
        assert_eq!(session_dir_name("", 1, id), "run-1-5f3a90c2");
        assert!(session_dir_name(&"x".repeat(1_000_000), 1, id).len() < 80);
    }

    #[test]
    fn is_session_dir_name_accepts_only_sessions() {
        assert!(is_session_dir_name(&session_dir_name("a b-c", 4711, u128::MAX)));
        assert!(is_session_dir_name("pna-1-00000000") && is_session_dir_name("-1-00000000-1-00000000"));
        for other in ["", "pna", "pna-4711-best", "pna-x-00000000", "-1-00000000", "pna-1-0000000A", "pna-1-000000000"]
        {
            assert!(!is_session_dir_name(other), "{other}");
        }
        assert!(is_session_file(LOCK_FILE) && is_session_file(&segment_file_name(7)));
        assert!(!is_session_file("notes.txt") && !is_session_file("mine.gnntop") && !is_session_file("live.old"));
    }

    #[test]
    fn segment_file_name_round_trip() {
        assert_eq!(segment_number(&segment_file_name(12)), Some(12));
        assert_eq!(segment_number(&segment_file_name(123_456_789_012)), Some(123_456_789_012));
        for known in [
            "live",
            "alive",
            "alive.new",
            "past",
            "past.new",
            "00000012.gnntop",
            &slices_file_name(7),
            "request",
            "trace.json.tmp",
        ] {
            assert!(is_session_file(known), "{known}");
        }
        for other in ["past-1", "past-0000000x", "notes", "past2"] {
            assert!(!is_session_file(other), "{other}");
        }
        for other in ["live", "1.gnntop", "0000000x.gnntop", "00000000.tmp", ".gnntop"] {
            assert_eq!(segment_number(other), None, "{other}");
        }
    }
}
