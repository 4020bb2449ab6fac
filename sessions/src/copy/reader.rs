//! What a session has that its copy has not.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::change::Change;
use crate::error::Error;
use crate::layout;
use crate::publisher::Publisher;
use crate::session_dir::SessionDir;

/// Most bytes of one change.
const CHUNK_LEN: usize = 256 * 1024;
/// Longest file with what is left of dropped segments; what is longer is not one.
const MAX_PAST: u64 = 64 << 20;

/// Where changes go. An error ends the look.
type ChangeSink<'a> = &'a mut dyn FnMut(Change<'_>) -> io::Result<()>;

/// Looks for what a copy of a session lacks.
#[derive(Debug)]
pub struct CopyReader {
    dir: PathBuf,
    /// What the copy has of each file, in bytes.
    copied: BTreeMap<String, u64>,
    /// When the past that the copy has was written, and its length.
    past: Option<(SystemTime, u64)>,
    chunk: Vec<u8>,
}

impl CopyReader {
    /// Of the session in `dir`, whose copy has these files of these lengths.
    pub fn new(dir: &Path, copied: BTreeMap<String, u64>) -> Self {
        Self { dir: dir.to_owned(), copied, past: None, chunk: vec![0; CHUNK_LEN] }
    }

    /// Passes on everything that the copy lacks, and returns what the session's publisher said before. If it was dead then, the
    /// copy has all that it wrote.
    ///
    /// A reader of the copy finds the session whole after each change: what is left of dropped segments comes before they are
    /// removed, and what it refers to comes before it.
    ///
    /// # Errors
    /// If the session cannot be read, or the copy not be written. The next look continues there.
    pub fn read(&mut self, sink: ChangeSink<'_>) -> Result<Publisher, Error> {
        let session = SessionDir::open(&self.dir)?;
        let publisher = session.publisher();
        let files = session.stream_files()?;
        let past = session.entry(layout::PAST_FILE).map(|found| (found.modified, found.len)).ok();
        let is_new = past.is_some() && past != self.past;
        let bytes = if is_new { Some(read_past(&session)?) } else { None };
        for file in files.iter().filter(|file| layout::segment_number(file).is_none()) {
            self.append(&session, file, sink)?;
        }
        let is_still_newest = || session.entry(layout::PAST_FILE).map(|found| (found.modified, found.len)).ok() == past;
        if !is_still_newest() {
            return Ok(Publisher { alive: true, ..publisher }); // there is more to read, whoever lives
        }
        if let Some(bytes) = bytes {
            sink(Change::Replace { file: layout::PAST_FILE, bytes: &bytes })?;
            self.past = past;
        }
        for file in files.iter().filter(|file| layout::segment_number(file).is_some()) {
            self.append(&session, file, sink)?;
        }
        self.remove_others(&files, sink)?;
        Ok(publisher)
    }

    /// Passes on what a file has more than the copy. One that was removed meanwhile is in a newer past.
    fn append(&mut self, session: &SessionDir, name: &str, sink: ChangeSink<'_>) -> Result<(), Error> {
        let mut at = self.copied.get(name).copied().unwrap_or(0);
        let mut file = match session.read(name) {
            Ok(file) => file,
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(at))?;
        loop {
            let len = fill(&mut file, &mut self.chunk)?;
            if len == 0 {
                return Ok(());
            }
            sink(Change::Append { file: name, at, bytes: &self.chunk[..len] })?;
            at += len as u64;
            self.copied.insert(name.to_owned(), at);
        }
    }

    fn remove_others(&mut self, files: &[String], sink: ChangeSink<'_>) -> Result<(), Error> {
        let gone: Vec<String> = self.copied.keys().filter(|file| !files.contains(file)).cloned().collect();
        for file in gone {
            sink(Change::Remove { file: &file })?;
            self.copied.remove(&file);
        }
        Ok(())
    }
}

fn read_past(session: &SessionDir) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    session.past()?.take(MAX_PAST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads until the chunk is full or the file ends.
fn fill(file: &mut File, chunk: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < chunk.len() {
        match file.read(&mut chunk[len..]) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}
