//! What stays of a session's segments when they are dropped: read back, added up, written beside those that follow.
//!
//! Each segment is read once, in pieces while it is the next to go. What its seconds and minutes come to is appended to files
//! of slices; then `past` is replaced, which has the figures over the whole time and says how much of which files counts.
//! Only after that is the segment removed. So whenever the program is killed, the past and the segments tell the whole run:
//! a segment that is in both is known by its number.

mod slice_files;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use gnntop_history::Digest;
use gnntop_wire::past::{Past as Entry, put_past};
use gnntop_wire::{StreamReader, layout, put_definitions, put_segment};

use self::slice_files::{Kind, SliceFiles};
use crate::directory::create;

/// Bytes that are read at a time.
const CHUNK_LEN: usize = 64 * 1024;
/// Slices that wait for room on the disk; beyond this the oldest are let go.
const MOST_WAITING: usize = 4096;

/// The past of one session.
#[derive(Debug)]
pub(crate) struct Past {
    dir: PathBuf,
    digest: Digest,
    reading: Option<Reading>,
    files: SliceFiles,
    /// Closed slices that are not written yet.
    seconds: Vec<Entry>,
    minutes: Vec<Entry>,
}

/// The segment that is being read.
#[derive(Debug)]
struct Reading {
    number: u64,
    file: File,
    reader: StreamReader,
    chunk: Vec<u8>,
}

impl Past {
    /// Of a session in `dir` that has dropped nothing yet. Its files take about `max_bytes` at most.
    pub(crate) fn new(dir: &Path, max_bytes: u64) -> Self {
        Self {
            dir: dir.to_owned(),
            digest: Digest::new(),
            reading: None,
            files: SliceFiles::new(dir, max_bytes),
            seconds: Vec::new(),
            minutes: Vec::new(),
        }
    }

    /// Reads up to `bytes` of a segment that will be dropped, so that little is left to be read when it is.
    pub(crate) fn read_ahead(&mut self, segment: u64, bytes: usize) {
        let mut left = bytes.div_ceil(CHUNK_LEN);
        while left > 0 && self.read_chunk(segment).is_ok_and(|len| len > 0) {
            left -= 1;
        }
    }

    /// Reads what is left of a segment, which is complete. What cannot be read is missing from the figures.
    pub(crate) fn read_whole(&mut self, segment: u64) {
        while self.read_chunk(segment).is_ok_and(|len| len > 0) {}
        if let Some(mut reading) = self.reading.take() {
            reading.reader.finish();
            self.digest_items(&mut reading);
        }
        let closed = self.digest.take_closed();
        self.seconds.extend(closed.seconds);
        self.minutes.extend(closed.minutes);
        for waiting in [&mut self.seconds, &mut self.minutes] {
            waiting.drain(..waiting.len().saturating_sub(MOST_WAITING));
        }
    }

    /// Reads a piece; 0 at the end.
    fn read_chunk(&mut self, segment: u64) -> io::Result<usize> {
        let mut reading = match self.reading.take() {
            Some(reading) if reading.number == segment => reading,
            _ => Reading::open(&self.dir, segment)?,
        };
        let len = reading.file.read(&mut reading.chunk)?;
        reading.reader.fill(&reading.chunk[..len]);
        self.digest_items(&mut reading);
        self.reading = Some(reading);
        Ok(len)
    }

    fn digest_items(&mut self, reading: &mut Reading) {
        while let Some(item) = reading.reader.next() {
            self.digest.apply(item);
        }
    }

    /// Writes what was read. Where there is no room, what is not written is kept, and written when this is next called.
    pub(crate) fn commit(&mut self) -> io::Result<()> {
        self.files.append(Kind::Seconds, &mut self.seconds)?;
        self.files.append(Kind::Minutes, &mut self.minutes)?;
        self.files.make_room()?;
        let mut bytes = Vec::new();
        if let Some(info) = self.digest.info() {
            put_segment(&mut bytes, info);
        }
        put_definitions(&mut bytes, self.digest.definitions());
        put_past(&mut bytes, &self.digest.whole(self.files.listed()));
        self.replace(&bytes)?;
        self.files.remove_unlisted();
        Ok(())
    }

    fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        let new = self.dir.join(layout::NEW_PAST_FILE);
        let _ = fs::remove_file(&new);
        create(&new)?.write_all(bytes)?;
        fs::rename(&new, self.dir.join(layout::PAST_FILE))
    }
}

impl Reading {
    fn open(dir: &Path, number: u64) -> io::Result<Self> {
        let file = File::open(dir.join(layout::segment_file_name(number)))?;
        Ok(Self { number, file, reader: StreamReader::new(), chunk: vec![0; CHUNK_LEN] })
    }
}
