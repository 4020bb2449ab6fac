//! What remains of dropped segments: read back, added up, and written beside the segments that follow.
//!
//! Each segment is read once, in pieces, while it is the next to be dropped. Its slices are appended to the slice files.
//! Then `past` is replaced: it has the figures over the whole time and says how much of which slice files counts. Only then
//! is the segment removed. So the past and the segments cover the whole run whenever the program is killed; a segment in
//! both is recognised by its number.

mod slice_files;
#[cfg(test)]
mod tests;

use std::io;
use std::os::unix::fs::FileExt;

use gnntop_history::Digest;
use gnntop_sessions::{NamedDir, layout};
use gnntop_wire::past::{PastEntry as Entry, put_past};
use gnntop_wire::{StreamReader, put_definitions, put_segment};

use self::slice_files::{SliceFiles, SliceKind};

/// Bytes read at a time.
const CHUNK_LEN: usize = 64 * 1024;
/// Most slices that wait for room on the disk; beyond this the oldest are discarded.
const MAX_WAITING: usize = 4096;

/// The past of one session.
#[derive(Debug)]
pub(crate) struct SessionPast {
    dir: NamedDir,
    digest: Digest,
    reading: Option<SegmentReading>,
    files: SliceFiles,
    /// Closed slices, not yet written.
    seconds: Vec<Entry>,
    minutes: Vec<Entry>,
}

/// The segment being read.
#[derive(Debug)]
struct SegmentReading {
    number: u64,
    /// Bytes read.
    at: u64,
    reader: StreamReader,
    chunk: Vec<u8>,
}

impl SessionPast {
    /// The past of a session in `dir` that has dropped nothing yet. Its files take at most about `max_bytes`.
    pub(crate) fn new(dir: NamedDir, max_bytes: u64) -> Self {
        Self {
            digest: Digest::new(),
            reading: None,
            files: SliceFiles::new(dir.clone(), max_bytes),
            dir,
            seconds: Vec::new(),
            minutes: Vec::new(),
        }
    }

    /// Reads up to `bytes` of a segment that will be dropped, so that little is left to read when it is.
    pub(crate) fn read_ahead(&mut self, segment: u64, bytes: usize) {
        let mut left = bytes.div_ceil(CHUNK_LEN);
        while left > 0 && self.read_chunk(segment).is_ok_and(|len| len > 0) {
            left -= 1;
        }
    }

    /// Reads the rest of a complete segment. Unreadable parts are missing from the figures.
    pub(crate) fn read_rest(&mut self, segment: u64) {
        while self.read_chunk(segment).is_ok_and(|len| len > 0) {}
        if let Some(mut reading) = self.reading.take() {
            reading.reader.finish();
            self.digest_items(&mut reading);
        }
        let closed = self.digest.take_closed();
        self.seconds.extend(closed.seconds);
        self.minutes.extend(closed.minutes);
        for waiting in [&mut self.seconds, &mut self.minutes] {
            waiting.drain(..waiting.len().saturating_sub(MAX_WAITING));
        }
    }

    /// Reads a piece and returns its length; 0 at the end.
    fn read_chunk(&mut self, segment: u64) -> io::Result<usize> {
        let file = self.dir.open()?.read(&layout::segment_file_name(segment))?;
        let mut reading = match self.reading.take() {
            Some(reading) if reading.number == segment => reading,
            _ => SegmentReading { number: segment, at: 0, reader: StreamReader::new(), chunk: vec![0; CHUNK_LEN] },
        };
        let len = file.read_at(&mut reading.chunk, reading.at)?;
        reading.at += len as u64;
        reading.reader.fill(&reading.chunk[..len]);
        self.digest_items(&mut reading);
        self.reading = Some(reading);
        Ok(len)
    }

    fn digest_items(&mut self, reading: &mut SegmentReading) {
        while let Some(item) = reading.reader.next() {
            self.digest.apply(item);
        }
    }

    /// Writes what was read. If there is no room, the rest is kept and written by the next call.
    pub(crate) fn commit(&mut self) -> io::Result<()> {
        self.files.append(SliceKind::Seconds, &mut self.seconds)?;
        self.files.append(SliceKind::Minutes, &mut self.minutes)?;
        self.files.make_room()?;
        let mut bytes = Vec::new();
        if let Some(info) = self.digest.info() {
            put_segment(&mut bytes, info);
        }
        put_definitions(&mut bytes, self.digest.definitions());
        put_past(&mut bytes, &self.digest.past_entries(self.files.listed()));
        self.dir.open()?.replace(layout::PAST_FILE, layout::NEW_PAST_FILE, &bytes)?;
        self.files.remove_unlisted();
        Ok(())
    }
}
