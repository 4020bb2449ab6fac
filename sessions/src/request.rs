//! How `gnntop trace` asks a running program for a deep trace, and how the program answers: two small files in the session's
//! directory. The asker writes the request, locked for as long as it waits; a request that is removed, or that nobody holds
//! any more, is withdrawn. The program replaces its answer as it proceeds.
//!
//! ```text
//! request   trace ID STEPS             1 to 100 steps; the program refuses others
//! answer    ID began STEP              tracing from this step on
//!           ID done FIRST LAST SPANS   `trace.json` is complete; SPANS of its spans are in the stream. It has fewer steps than
//!                                      asked for if more would have taken too much memory
//!           ID failed WHY
//! ```

use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use gnntop_wire::text::clean;

use crate::error::Error;
use crate::layout;
use crate::private_dir::PrivateDir;

/// Most steps that may be asked for: torch keeps every operator of them in memory until the end.
pub const MAX_STEPS: u32 = 100;
/// Longest text of a request or an answer, in bytes.
const MAX_LEN: u64 = 4096;

/// A request for a deep trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Differs from those of earlier requests.
    pub id: u64,
    /// Number of whole steps to trace.
    pub steps: u32,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "trace {:016x} {}", self.id, self.steps)
    }
}

/// How far a program has got with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It traces from this step on.
    Began {
        /// Number of the first step.
        step: u64,
    },
    /// The trace has been written.
    Done {
        /// Number of the first step.
        first: u64,
        /// Number of the last step.
        last: u64,
        /// Spans of the trace that are also in the session's stream.
        spans: u64,
    },
    /// It could not be done.
    Failed {
        /// Why.
        why: String,
    },
}

impl Answer {
    /// Parses an answer; `None` if it is not an answer to this request, or not yet complete.
    pub fn parse(text: &str, request: &Request) -> Option<Self> {
        let line = text.strip_suffix('\n')?.strip_prefix(&format!("{:016x} ", request.id))?;
        let (kind, rest) = line.split_once(' ')?;
        let mut numbers = rest.split(' ').map(|number| number.parse().ok());
        match kind {
            "began" => Some(Self::Began { step: numbers.next()?? }),
            "done" => {
                let (first, last, spans) = (numbers.next()??, numbers.next()??, numbers.next()??);
                Some(Self::Done { first, last, spans })
            }
            "failed" => Some(Self::Failed { why: clean(rest.as_bytes()) }),
            _ => None,
        }
    }
}

impl Request {
    fn new(steps: u32) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { id: (now.as_nanos() as u64) ^ u64::from(std::process::id()).rotate_left(48), steps }
    }
}

/// The text of the request in a session's directory; `None` if there is none, if it is not a whole one of this user, or if
/// nobody waits for it any more.
pub fn read(session: &Path) -> Option<String> {
    let request = PrivateDir::open(session).ok()?.read(layout::REQUEST_FILE).ok()?;
    let is_awaited = is_awaited(&request);
    text(request).filter(|text| is_awaited && text.ends_with('\n'))
}

/// Whether the process that wrote this request still waits.
fn is_awaited(request: &File) -> bool {
    // Shared, so that two that look at the same time do not mistake each other for it.
    matches!(request.try_lock_shared(), Err(TryLockError::WouldBlock))
}

fn text(file: File) -> Option<String> {
    let mut text = String::new();
    file.take(MAX_LEN).read_to_string(&mut text).ok()?;
    Some(text)
}

/// A request that waits for its answer. It is withdrawn when dropped, and what the program has written is removed.
#[derive(Debug)]
pub struct Pending {
    session: PrivateDir,
    request: Request,
    /// Locked for as long as this exists.
    _file: File,
}

impl Pending {
    /// Asks the program of the session in this directory to trace this many steps.
    ///
    /// # Errors
    /// [`Error::Requested`] if somebody else waits for a trace of it; others if nothing can be written there.
    pub fn new(session: &Path, steps: u32) -> Result<Self, Error> {
        let session = PrivateDir::open(session)?;
        let request = Request::new(steps);
        let mut file = session.open_or_create(layout::NEW_REQUEST_FILE)?;
        lock(&file)?;
        // Nobody else can write a request now, so this one can be the only one.
        if session.read(layout::REQUEST_FILE).is_ok_and(|other| is_awaited(&other)) {
            let _ = session.remove(layout::NEW_REQUEST_FILE);
            return Err(Error::Requested);
        }
        file.set_len(0)?;
        file.write_all(request.to_string().as_bytes())?;
        session.rename(layout::NEW_REQUEST_FILE, layout::REQUEST_FILE)?;
        Ok(Self { session, request, _file: file })
    }

    /// The request.
    pub fn request(&self) -> Request {
        self.request
    }

    /// The program's latest answer.
    pub fn answer(&self) -> Option<Answer> {
        Answer::parse(&text(self.session.read(layout::ANSWER_FILE).ok()?)?, &self.request)
    }

    /// Opens the trace that the program has written.
    ///
    /// # Errors
    /// If there is none that is this user's.
    pub fn trace(&self) -> Result<File, Error> {
        self.session.read(layout::TRACE_FILE).map_err(|error| error.inside(layout::TRACE_FILE))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // A file that cannot be removed goes with the session.
        for name in [layout::REQUEST_FILE, layout::ANSWER_FILE, layout::TRACE_FILE, layout::NEW_TRACE_FILE] {
            let _ = self.session.remove(name);
        }
    }
}

fn lock(file: &File) -> Result<(), Error> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => Error::Requested,
        TryLockError::Error(error) => error.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_and_answer_round_trip() {
        let request = Request { id: 0x5f, steps: 5 };
        assert_eq!(request.to_string(), "trace 000000000000005f 5\n");
        let read = |text: &str| Answer::parse(text, &request);
        assert_eq!(read("000000000000005f began 812\n"), Some(Answer::Began { step: 812 }));
        assert_eq!(
            read("000000000000005f done 812 816 9000\n"),
            Some(Answer::Done { first: 812, last: 816, spans: 9000 })
        );
        let failed = read("000000000000005f failed RuntimeError: a profiler \u{1b}[31mruns\n");
        assert!(
            matches!(failed, Some(Answer::Failed { why }) if why.starts_with("RuntimeError") && !why.contains('\u{1b}'))
        );
    }

    #[test]
    fn answer_parse_refuses_other_text() {
        let request = Request { id: 0x5f, steps: 5 };
        for text in [
            "",
            "000000000000005f began 812",
            "000000000000005e began 812\n",
            "000000000000005f began\n",
            "000000000000005f began x\n",
            "000000000000005f done 1 2\n",
            "000000000000005f other 1\n",
        ] {
            assert_eq!(Answer::parse(text, &request), None, "{text}");
        }
    }

    #[test]
    fn one_request_at_a_time_and_file_is_removed() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        let first = Pending::new(dir, 5).unwrap();
        assert_eq!(read(dir), Some(first.request.to_string()));
        assert!(matches!(Pending::new(dir, 1), Err(Error::Requested)));
        assert_eq!(read(dir), Some(first.request.to_string()), "the first one is as it was");
        std::fs::write(dir.join("answer"), format!("{:016x} began 7\n", first.request.id)).unwrap();
        assert_eq!(first.answer(), Some(Answer::Began { step: 7 }));
        drop(first);
        assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0);
        // One that was killed has left its request, which nobody holds.
        std::fs::write(dir.join("request"), "trace 1 5\n").unwrap();
        assert_eq!(read(dir), None, "nobody waits for it");
        std::fs::write(dir.join("request.new"), "trace 1 500000000000000000000000000000\n").unwrap();
        let next = Pending::new(dir, 1).unwrap();
        assert_eq!(read(dir), Some(next.request.to_string()));
    }

    #[test]
    fn read_ignores_incomplete_request() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("request");
        assert_eq!(read(temp.path()), None);
        for text in [&b"trace 1"[..], &[0xff, 0xfe, b'\n'], &[b'x'; 5000]] {
            std::fs::write(&path, text).unwrap();
            let held = File::open(&path).unwrap();
            held.lock().unwrap();
            assert_eq!(read(temp.path()), None);
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn what_is_no_file_of_this_user_is_neither_request_nor_answer_and_blocks_nobody() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        let pending = Pending::new(dir, 5).unwrap();
        std::fs::write(dir.join("elsewhere"), format!("{:016x} began 7\n", pending.request.id)).unwrap();
        let pipe = |name: &str| {
            rustix::fs::mknodat(rustix::fs::CWD, dir.join(name), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        };
        std::os::unix::fs::symlink(dir.join("elsewhere"), dir.join("answer")).unwrap();
        assert_eq!(pending.answer(), None);
        std::fs::remove_file(dir.join("answer")).unwrap();
        pipe("answer");
        pipe("trace.json");
        assert!(pending.answer().is_none() && pending.trace().is_err());
        drop(pending);
        pipe("request");
        assert_eq!(read(dir), None);
        assert!(Pending::new(dir, 1).is_ok(), "a pipe is no request of somebody else");
    }
}
