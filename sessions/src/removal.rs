//! Lists and removes ended sessions. The publisher does so when a session begins, `gnntop clean` on request.
//!
//! What is removed must be proved to be a dead session of this user: its name is the one that its first segment gives it,
//! everything in it is a file that [`layout`](crate::layout) knows, all of it belongs to this user, and no process holds the
//! lock, on a file system on which this machine would see that. Anything else stays, such as a copy that a person made.

use std::time::SystemTime;

use crate::ended::Content;
use crate::error::Error;
use crate::layout;
use crate::platform::Kind;
use crate::private_dir::PrivateDir;

/// The directory of all sessions, to remove ended ones from.
#[derive(Debug)]
pub struct Removal {
    sessions: PrivateDir,
    now: SystemTime,
}

/// A session without a visible publisher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleSession {
    /// The name of its directory.
    pub name: String,
    /// Bytes that its files take.
    pub bytes: u64,
    /// Time of the last write.
    pub last_written: SystemTime,
    /// Whether its publisher wrote the end of its stream, and no reason of death was added.
    pub ended_well: bool,
}

/// The entries of the directory of all sessions that have a session's name.
#[derive(Debug, Default)]
pub struct Candidates {
    /// Sessions that seem to have ended, in no order.
    pub idle: Vec<IdleSession>,
    /// Directories that are something else, or a live session, with the reason.
    pub others: Vec<(String, Error)>,
}

impl Removal {
    /// In the directory of all sessions; ages are counted up to `now`.
    pub fn new(sessions: PrivateDir, now: SystemTime) -> Self {
        Self { sessions, now }
    }

    /// What could be removed. That a session has ended is not yet proved: see [`check`](Self::check).
    ///
    /// # Errors
    /// If the directory cannot be listed.
    pub fn candidates(&self) -> Result<Candidates, Error> {
        let mut found = Candidates::default();
        for name in self.sessions.names()? {
            let Some(name) = name.to_str().filter(|name| layout::is_session_dir_name(name)) else { continue };
            if self.sessions.entry(name.as_ref()).is_ok_and(|entry| matches!(entry.kind, Kind::File | Kind::Other)) {
                continue;
            }
            match Content::open(&self.sessions, name) {
                Ok(content) => found.idle.push(IdleSession::from_content(name, &content)),
                Err(error) => found.others.push((name.to_owned(), error)),
            }
        }
        Ok(found)
    }

    /// Proves that it is a dead session of this user.
    ///
    /// # Errors
    /// Says what is in doubt.
    pub fn check(&self, session: &IdleSession) -> Result<(), Error> {
        Content::open(&self.sessions, &session.name)?.check_dead(&session.name, self.now)
    }

    /// Proves that it is a dead session of this user, and removes it.
    ///
    /// # Errors
    /// Says what is in doubt, or what the system refused.
    pub fn remove(&self, session: &IdleSession) -> Result<(), Error> {
        let content = Content::open(&self.sessions, &session.name)?;
        content.check_dead(&session.name, self.now)?;
        content.remove(&self.sessions, &session.name)
    }

    /// The size of its file system in bytes, if known.
    pub fn capacity_bytes(&self) -> Option<u64> {
        self.sessions.capacity_bytes()
    }
}

impl IdleSession {
    fn from_content(name: &str, content: &Content) -> Self {
        let (bytes, last_written) = (content.bytes(), content.last_written());
        Self { name: name.to_owned(), bytes, last_written, ended_well: content.ended_well() }
    }
}
