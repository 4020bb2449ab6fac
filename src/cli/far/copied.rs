//! The copies of other machines' sessions, written as they arrive.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use gnntop_sessions::copy::{Change, CopyWriter};
use gnntop_sessions::{Heartbeat, PrivateDir};
use gnntop_wire::ClockOffset;

use super::message::{FromFar, stopped};

/// Most sessions of one machine.
const MAX_SESSIONS: usize = 1024;
/// Most bytes of all copies of one machine: 64 sessions that are full.
const MAX_TOTAL: u64 = 4 << 30;

/// The directory of all copies, and which machine each is of: none may write into that of another.
pub(super) struct Copies {
    dir: PrivateDir,
    owners: Mutex<HashMap<String, String>>,
}

impl Copies {
    /// In this directory.
    pub(super) fn new(dir: PrivateDir) -> Self {
        Self { dir, owners: Mutex::default() }
    }

    /// A copy of this session; `None` if another machine sends it: both see one directory of sessions.
    fn open(&self, session: &str, host: &str) -> io::Result<Option<CopyWriter>> {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = owners.entry(session.to_owned()).or_insert_with(|| host.to_owned());
        if owner == host { Ok(Some(CopyWriter::open(&self.dir, session)?)) } else { Ok(None) }
    }
}

/// The copies of one machine's sessions.
pub(super) struct CopiedSessions {
    host: String,
    copies: Arc<Copies>,
    /// By name; `None` for what another machine sends.
    all: BTreeMap<String, Option<CopiedSession>>,
    /// Bytes that these may have.
    most: u64,
    /// From its clock to this machine's.
    pub(super) clock: Option<ClockOffset>,
}

struct CopiedSession {
    writer: CopyWriter,
    /// The last thing that was heard of it; `None` if it has ended.
    heard: Option<Heartbeat>,
}

impl CopiedSessions {
    /// Those of this machine, of which there are none yet.
    pub(super) fn new(host: String, copies: Arc<Copies>) -> Self {
        Self { host, copies, all: BTreeMap::new(), most: MAX_TOTAL, clock: None }
    }

    /// How many bytes there are of each session's files.
    pub(super) fn have(&self) -> BTreeMap<String, BTreeMap<String, u64>> {
        let own = self.all.iter().filter_map(|(name, session)| Some((name, session.as_ref()?)));
        own.map(|(name, session)| (name.clone(), session.writer.copied().clone())).collect()
    }

    /// Does what a message says, with the bytes behind it.
    ///
    /// # Errors
    /// If it is not allowed, or cannot be written.
    pub(super) fn take(&mut self, message: FromFar, bytes: &[u8]) -> io::Result<()> {
        match message {
            FromFar::Session { name, alive, stopped: said, last_active_ns } => {
                if self.all.len() >= MAX_SESSIONS && !self.all.contains_key(&name) {
                    return Err(io::Error::other("it sends too many sessions"));
                }
                let stopped = stopped(said);
                let heard = Heartbeat { stopped: stopped.clone(), clock: self.clock, ..Heartbeat::now() };
                if !self.all.contains_key(&name) {
                    let writer = self.copies.open(&name, &self.host)?;
                    self.all.insert(name.clone(), writer.map(|writer| CopiedSession { writer, heard: None }));
                }
                let Some(Some(session)) = self.all.get_mut(&name) else { return Ok(()) };
                if alive {
                    session.writer.beat(&heard)?
                } else {
                    session.writer.end(stopped.as_ref())?;
                    let time = last_active_ns.and_then(|ns| UNIX_EPOCH.checked_add(Duration::from_nanos(ns)));
                    time.map_or(Ok(()), |time| session.writer.note_last_active(time))?;
                }
                session.heard = alive.then_some(heard);
                Ok(())
            }
            FromFar::Append { .. } | FromFar::Replace { .. } if self.total() + bytes.len() as u64 > self.most => {
                Err(io::Error::other(format!("its sessions have more than {} GiB", self.most >> 30)))
            }
            FromFar::Append { session, file, at, .. } => {
                self.apply(&session, &Change::Append { file: &file, at, bytes })
            }
            FromFar::Replace { session, file, .. } => self.apply(&session, &Change::Replace { file: &file, bytes }),
            FromFar::Remove { session, file } => self.apply(&session, &Change::Remove { file: &file }),
            _ => Ok(()),
        }
    }

    /// Bytes of all its copies.
    fn total(&self) -> u64 {
        self.all.values().flatten().map(|session| session.writer.bytes()).sum()
    }

    fn apply(&mut self, session: &str, change: &Change<'_>) -> io::Result<()> {
        match self.all.get_mut(session) {
            Some(Some(session)) => Ok(session.writer.apply(change)?),
            Some(None) => Ok(()),
            None => Err(io::Error::other("it sends files of no session")),
        }
    }

    /// Nothing more is heard of those that live, for now.
    pub(super) fn note_trouble(&mut self, why: &str) {
        for session in self.all.values().flatten() {
            if let Some(heard) = &session.heard {
                // The view shows the time since the last heartbeat in any case.
                let _ = session.writer.beat(&Heartbeat { trouble: Some(why.to_owned()), ..heard.clone() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use gnntop_sessions::layout;

    use super::*;

    #[test]
    fn one_machine_has_room_for_so_much_in_all_its_sessions() {
        let dir = tempfile::tempdir().unwrap();
        let copies = Arc::new(Copies::new(PrivateDir::create(&dir.path().join("sessions")).unwrap()));
        let mut copied = CopiedSessions { most: 10, ..CopiedSessions::new("elm".to_owned(), copies) };
        let session = |number: u8| format!("sage-{number}-00000000");
        for number in [1, 2, 3] {
            let alive = FromFar::Session { name: session(number), alive: true, stopped: None, last_active_ns: None };
            copied.take(alive, b"").unwrap();
        }
        let append =
            |number, at| FromFar::Append { session: session(number), file: "00000000.gnntop".into(), at, len: 4 };
        let replace =
            |number| FromFar::Replace { session: session(number), file: layout::PAST_FILE.to_owned(), len: 4 };
        copied.take(append(1, 0), b"1234").unwrap();
        copied.take(replace(2), b"1234").unwrap();
        assert!(copied.take(append(3, 0), b"1234").unwrap_err().to_string().contains("GiB"));
        assert!(copied.take(replace(3), b"1234").is_err());
        copied.take(FromFar::Remove { session: session(1), file: "00000000.gnntop".into() }, b"").unwrap();
        copied.take(append(3, 0), b"1234").unwrap();
    }
}
