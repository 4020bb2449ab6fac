//! Skips the beginning of long recordings: what is before some chunk's end is taken from the summaries there, as a late
//! viewer takes it from the session.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::Path;

use gnntop_sessions::user_file;

use super::chunks::Chunks;
use super::recording::{Recording, RecordingError};

/// The longest recording that is read event by event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullReadLimit {
    /// In bytes.
    pub bytes: u64,
    /// In events, without those in its first chunk and after its last.
    pub events: u64,
}

/// A recording up to this long is read event by event, in less than a second even if its events are dense.
pub const FULL_READ_LIMIT: FullReadLimit = FullReadLimit { bytes: 96 << 20, events: 10_000_000 };
/// Of a longer one, the last part with this many steps is read: as many as a screen keeps individually.
const NEWEST_STEPS: u64 = 1 << 18;
/// At most this many bytes of it, and the rest of a chunk.
const NEWEST_BYTES: u64 = 16 << 20;
/// Most events in a byte.
const MAX_EVENTS_A_BYTE: u64 = 4;

/// How much of a recording is read event by event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    AllEvents,
    /// All of it, although it is long: it has no summaries, or they are damaged.
    WithoutSummaries,
    /// Events after this instant, on the clock of the first session; summaries cover what was before.
    After {
        /// The newest event covered only by summaries, in nanoseconds.
        last_ns: u64,
    },
}

impl Recording {
    /// Opens the recording at `path` like [`Recording::open`], but begins near its end if it is longer than `short` and has
    /// summaries of what is before.
    ///
    /// # Errors
    /// As for [`Recording::open`].
    pub fn open_with_past(path: &Path, short: FullReadLimit) -> Result<(Self, Extent), RecordingError> {
        let file = user_file::open(path).ok();
        let len = file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |meta| meta.len());
        let may_be_long = len > short.bytes.min(short.events / MAX_EVENTS_A_BYTE);
        let chunks = file.filter(|_| may_be_long).and_then(|file| Chunks::open(&file));
        if len <= short.bytes && chunks.as_ref().is_none_or(|chunks| chunks.events() <= short.events) {
            return Ok((Self::open(path)?, Extent::AllEvents));
        }
        let place = chunks.as_ref().and_then(|chunks| Some((chunks, newest_chunk(chunks, len)?)));
        match place.and_then(|(chunks, chunk)| Some((Self::open_after(path, chunks, chunk)?, chunks.last_ns(chunk)))) {
            Some((recording, last_ns)) => Ok((recording, Extent::After { last_ns })),
            None => Ok((Self::open(path)?, Extent::WithoutSummaries)),
        }
    }

    /// Opens the recording at `path` for a part that ends at `until_ns`, on the clock of the first session: like
    /// [`Recording::open`], or so that of a long one the newest `steps` steps up to then are read event by event, and summaries
    /// cover what is before them.
    ///
    /// # Errors
    /// As for [`Recording::open`].
    pub fn open_until(path: &Path, until_ns: u64, steps: u64, short: FullReadLimit) -> Result<Self, RecordingError> {
        Self::open_at(path, short, |chunks| chunks.before_steps_until(until_ns, steps))
    }

    /// Opens the recording at `path` like [`Recording::open`], but a long one at the last chunk before this step.
    ///
    /// # Errors
    /// As for [`Recording::open`].
    pub fn open_before_step(path: &Path, step: u64, short: FullReadLimit) -> Result<Self, RecordingError> {
        Self::open_at(path, short, |chunks| chunks.before_step(step))
    }

    /// Opens a recording at the end of the chunk that `choose` names, if it is longer than `short`.
    fn open_at(
        path: &Path,
        short: FullReadLimit,
        choose: impl FnOnce(&Chunks) -> Option<usize>,
    ) -> Result<Self, RecordingError> {
        let chunks = Self::long_chunks(path, short);
        let summed = chunks.and_then(|chunks| Self::open_after(path, &chunks, choose(&chunks)?));
        summed.map_or_else(|| Self::open(path), Ok)
    }

    /// The chunks of a recording that is longer than `short`.
    fn long_chunks(path: &Path, short: FullReadLimit) -> Option<Chunks> {
        let file = user_file::open(path).ok()?;
        let len = file.metadata().ok()?.len();
        if len <= short.bytes.min(short.events / MAX_EVENTS_A_BYTE) {
            return None;
        }
        let chunks = Chunks::open(&file)?;
        (len > short.bytes || chunks.events() > short.events).then_some(chunks)
    }

    /// Opens the first `len` bytes of the recording at `path`: summaries of its older chunks, then at most `newest` bytes event
    /// by event, or the newest chunk if that is longer. `None` without chunks, or if a summary is damaged.
    pub fn open_newest(path: &Path, len: u64, newest: u64) -> Option<Self> {
        let chunks = Chunks::open(&user_file::open(path).ok()?)?;
        // One that ends with these bytes would leave no step event by event.
        let followed = chunks.after_byte(len.saturating_sub(newest)).filter(|chunk| chunks.next_offset(*chunk) < len);
        let earlier = || chunks.before_byte(len.saturating_sub(1)).or_else(|| chunks.before_byte(len));
        let chunk = followed.or_else(earlier)?;
        Self::open_between(path, &chunks, chunk, len)
    }

    /// Opens the file at `path` at the end of a chunk; `None` where what that says is damaged, or nothing follows.
    pub(super) fn open_after(path: &Path, chunks: &Chunks, chunk: usize) -> Option<Self> {
        Self::open_between(path, chunks, chunk, u64::MAX)
    }

    fn open_between(path: &Path, chunks: &Chunks, chunk: usize, end: u64) -> Option<Self> {
        let summary = chunks.past(chunk)?;
        let mut open = File::open(path).ok()?;
        let at = chunks.next_offset(chunk);
        open.seek(SeekFrom::Start(at)).ok()?;
        Self::open_after_past(path.display().to_string(), open, at..end, summary).ok()
    }
}

/// The chunk at whose end the newest part of a recording of `len` bytes begins.
fn newest_chunk(chunks: &Chunks, len: u64) -> Option<usize> {
    let chunk = chunks.before_byte(len.saturating_sub(NEWEST_BYTES.min(len / 4)))?;
    Some(chunks.before_newest_steps(NEWEST_STEPS, chunk).unwrap_or(chunk))
}
