//! Long recordings are not read from their beginning: what lies before some chunk's end is taken from the summaries there, as
//! who attaches late takes it from the session.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::Path;

use super::chunks::Chunks;
use super::recording::{Recording, RecordingError};
use super::trusted;

/// A recording up to this long is read event by event.
pub const READ_WHOLE_BYTES: u64 = 96 << 20;
/// Of a longer one at least so much at its end is, so that its newest steps are there one by one.
const NEWEST_BYTES: u64 = 16 << 20;

/// How much of a recording is read event by event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// All of it, although it is long: it says nowhere what the time before comes to, or that is damaged.
    WithoutSummaries,
    /// What came after this instant, on the clock of the first session; what was before is told by summaries.
    After {
        /// The newest event that only summaries tell of, in nanoseconds.
        last_ns: u64,
    },
}

impl Recording {
    /// Opens the recording at `path` as [`Recording::open`] does, and begins near its end where it is longer than
    /// `whole_bytes` and has summaries of what lies before.
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn open_summed(path: &Path, whole_bytes: u64) -> Result<(Self, Extent), RecordingError> {
        let file = trusted::open_through_links(path).ok();
        let len = file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |meta| meta.len());
        let Some(file) = file.filter(|_| len > whole_bytes) else { return Ok((Self::open(path)?, Extent::Whole)) };
        let newest = |chunks: &Chunks| chunks.before_byte(len.saturating_sub(NEWEST_BYTES.min(len / 4)));
        let chunks = Chunks::of(&file);
        let place = chunks.as_ref().and_then(|chunks| Some((chunks, newest(chunks)?)));
        match place.and_then(|(chunks, chunk)| Some((Self::open_after(path, chunks, chunk)?, chunks.last_ns(chunk)))) {
            Some((recording, last_ns)) => Ok((recording, Extent::After { last_ns })),
            None => Ok((Self::open(path)?, Extent::WithoutSummaries)),
        }
    }

    /// Opens the file at `path` at the end of a chunk; `None` where what that says is damaged, or nothing follows.
    pub(super) fn open_after(path: &Path, chunks: &Chunks, chunk: usize) -> Option<Self> {
        let summary = chunks.summary(chunk)?;
        let mut open = File::open(path).ok()?;
        let at = chunks.goes_on_at(chunk);
        open.seek(SeekFrom::Start(at)).ok()?;
        Self::begin_at(path.display().to_string(), open, at, summary).ok()
    }
}
