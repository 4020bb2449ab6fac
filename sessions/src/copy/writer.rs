//! A copy of a session, which changes are written into.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::SystemTime;

use super::change::Change;
use crate::error::Error;
use crate::heartbeat::Heartbeat;
use crate::layout;
use crate::private_dir::PrivateDir;
use crate::publisher::{Stopped, copied_text};

/// Most bytes of one copy. A session has 64 MiB; what sends more sends no session.
const MAX_BYTES: u64 = 512 << 20;
/// Most files of one copy.
const MAX_FILES: usize = 4096;

/// Writes a copy. Nothing in what it is given is trusted: names are those of a session's files, sizes are bounded.
#[derive(Debug)]
pub struct CopyWriter {
    dir: PrivateDir,
    /// What it has of each file that grows, in bytes.
    copied: BTreeMap<String, u64>,
    /// Bytes of its past.
    past_len: u64,
}

impl CopyWriter {
    /// Begins the copy of this name among these sessions, or continues it.
    ///
    /// # Errors
    /// If it is no session's name, or its directory cannot be made or read.
    pub fn open(sessions: &PrivateDir, name: &str) -> Result<Self, Error> {
        if !layout::is_session_dir_name(name) {
            return Err(Error::NotASession);
        }
        let dir = sessions.create_dir(name)?;
        let mut copied = BTreeMap::new();
        for name in dir.names()?.iter().filter_map(|name| name.to_str()).filter(|name| layout::grows(name)) {
            copied.insert(name.to_owned(), dir.file(name)?.len);
        }
        let past_len = dir.file(layout::PAST_FILE).map_or(0, |past| past.len);
        Ok(Self { dir, copied, past_len })
    }

    /// What the copy has of each file that grows, in bytes: what its reader needs to know.
    pub fn copied(&self) -> &BTreeMap<String, u64> {
        &self.copied
    }

    /// How many bytes it has in all.
    pub fn bytes(&self) -> u64 {
        self.copied.values().sum::<u64>() + self.past_len
    }

    /// Makes a change. What the copy has already is not written again.
    ///
    /// # Errors
    /// If the name is not that of a session's file, if bytes before these are missing, if it would become too large, or if
    /// the system refuses. What was written until then stays.
    pub fn apply(&mut self, change: &Change<'_>) -> Result<(), Error> {
        match *change {
            Change::Append { file, at, bytes } if layout::grows(file) => self.append(file, at, bytes),
            Change::Replace { file, bytes } if file == layout::PAST_FILE && bytes.len() as u64 <= MAX_BYTES => {
                self.past_len = bytes.len() as u64;
                self.dir.replace(layout::PAST_FILE, layout::NEW_PAST_FILE, bytes)
            }
            Change::Remove { file } if layout::grows(file) => {
                self.copied.remove(file);
                match self.dir.remove(file) {
                    Err(error) if !error.is_not_found() => Err(error),
                    _ => Ok(()),
                }
            }
            _ => Err(Error::NotASession),
        }
    }

    fn append(&mut self, name: &str, at: u64, bytes: &[u8]) -> Result<(), Error> {
        let has = self.copied.get(name).copied();
        let len = has.unwrap_or(0);
        let total = self.copied.values().fold(bytes.len() as u64, |sum, len| sum.saturating_add(*len));
        let is_too_much = total > MAX_BYTES || has.is_none() && self.copied.len() >= MAX_FILES;
        if at > len || is_too_much {
            return Err(Error::NotASession);
        }
        let known = usize::try_from(len - at).unwrap_or(usize::MAX);
        let Some(new) = bytes.get(known..).filter(|new| !new.is_empty()) else { return Ok(()) };
        let mut file = if has.is_some() { self.dir.append(name)? } else { self.dir.create_log(name)? };
        let written = file.write_all(new);
        // Of a write that fails, a part may be there.
        self.copied.insert(name.to_owned(), file.metadata()?.len());
        Ok(written?)
    }

    /// Says that the program lives, or what is known instead.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn beat(&self, heartbeat: &Heartbeat) -> Result<(), Error> {
        match self.dir.remove(layout::LOCK_FILE) {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => (),
        }
        heartbeat.write(&self.dir)
    }

    /// Notes when the original was written last, as files show it. A time that has not come yet is now.
    ///
    /// # Errors
    /// If a file cannot be opened, or the system refuses.
    pub fn note_last_active(&self, time: SystemTime) -> Result<(), Error> {
        let time = time.min(SystemTime::now());
        self.copied.keys().try_for_each(|name| Ok(self.dir.append(name)?.set_modified(time)?))
    }

    /// Says that the program has ended and the copy is complete: it is an ended session like any other then.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn end(&self, stopped: Option<&Stopped>) -> Result<(), Error> {
        self.dir.replace(layout::LOCK_FILE, layout::NEW_ALIVE_FILE, &copied_text(stopped))?;
        match self.dir.remove(layout::ALIVE_FILE) {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }
}
