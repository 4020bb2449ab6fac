//! Keeps input from a pipe in a file, up to a limit, so that a recording can be played as a file once it is complete:
//! backwards too, and with its ranks in parallel.
//!
//! ```text
//! pipe ─▶ thread ─▶ temporary file, up to the bound ─▶ reader
//!             └───▶ a few chunks in memory, after it ───┘
//! ```

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tempfile::{NamedTempFile, TempPath};

use super::platform::{ReadAt, path_of_open};

/// Most bytes kept: a recording of days. Later input is read as it is played.
pub(super) const MAX_BYTES: u64 = 256 << 20;
/// Bytes read at a time.
pub(super) const CHUNK_LEN: usize = 64 * 1024;
/// A pipe without data for this long is written in real time...
const PAUSE: Duration = Duration::from_millis(100);
/// ...and one that takes longer to read is not waited for.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The file. It is removed when this is dropped.
pub(super) struct PipeFile {
    place: FileLocation,
    fill: Arc<SharedFill>,
}

/// Location of the file.
enum FileLocation {
    /// Unlinked, so it is removed when the process ends, however that happens.
    Handle {
        path: PathBuf,
        #[expect(dead_code, reason = "held, as the path is about it")]
        open: File,
    },
    /// Kept by name, if an unlinked file cannot be opened again.
    Name(TempPath),
}

impl FileLocation {
    fn new(open: File, name: TempPath) -> Self {
        match path_of_open(&open) {
            Some(path) => Self::Handle { path, open },
            None => Self::Name(name),
        }
    }
}

/// The reading end of the file.
pub(super) struct PipeFileReader {
    file: File,
    read: u64,
    fill: Arc<SharedFill>,
}

/// Result of reading from [`PipeFileReader`].
pub(super) enum PipeFileRead {
    /// These bytes are next.
    Chunk(Vec<u8>),
    /// Nothing more is available now.
    Nothing,
    /// That was all.
    End,
    /// What follows is not in the file.
    Elsewhere,
}

/// How far the file is filled.
#[derive(Default)]
struct SharedFill {
    state: Mutex<FillState>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
struct FillState {
    len: u64,
    phase: FillPhase,
}

/// Whether more comes into the file.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum FillPhase {
    /// More may come.
    #[default]
    Open,
    /// The pipe has ended and the file is complete.
    Complete,
    /// The file has reached its limit, or the system accepts no more: what follows is elsewhere.
    Full,
}

impl SharedFill {
    fn get(&self) -> MutexGuard<'_, FillState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, change: impl FnOnce(&mut FillState)) {
        change(&mut self.get());
        self.changed.notify_all();
    }
}

impl PipeFile {
    /// A file, its reader, and its writer.
    ///
    /// # Errors
    /// If there is no room for temporary files.
    pub(super) fn create() -> io::Result<(Self, PipeFileReader, PipeFileWriter)> {
        let (file, name) = NamedTempFile::with_prefix("gnntop-pipe-")?.into_parts();
        let (reading, filling) = (File::open(&name)?, Arc::<SharedFill>::default());
        let place = FileLocation::new(file.try_clone()?, name);
        let kept = PipeFileReader { file: reading, read: 0, fill: Arc::clone(&filling) };
        let filler = PipeFileWriter { file, fill: Arc::clone(&filling) };
        Ok((Self { place, fill: filling }, kept, filler))
    }

    /// Path of the file.
    pub(super) fn path(&self) -> &Path {
        match &self.place {
            FileLocation::Handle { path, .. } => path,
            FileLocation::Name(name) => name,
        }
    }

    /// Whether the pipe has ended and all of its input is in the file.
    pub(super) fn is_complete(&self) -> bool {
        self.fill.get().phase == FillPhase::Complete
    }

    /// Whether more has come than the file holds.
    pub(super) fn is_full(&self) -> bool {
        self.fill.get().phase == FillPhase::Full
    }

    /// Waits, but only for a moment, while the pipe still has data: what `cat` writes to a pipe is all available at once.
    pub(super) fn wait_briefly(&self) {
        let give_up = Instant::now() + MAX_WAIT;
        let mut filled = self.fill.get();
        while filled.phase == FillPhase::Open {
            let rest = give_up.saturating_duration_since(Instant::now()).min(PAUSE);
            let (woken, waited) = self.fill.changed.wait_timeout(filled, rest).unwrap_or_else(PoisonError::into_inner);
            if waited.timed_out() {
                return;
            }
            filled = woken;
        }
    }
}

/// The writing end of the file.
pub(super) struct PipeFileWriter {
    file: File,
    fill: Arc<SharedFill>,
}

impl PipeFileWriter {
    /// Reads `input` to its end: into the file up to `most_bytes`, then into `rest`.
    pub(super) fn fill(mut self, mut input: impl Read, most_bytes: u64, rest: &SyncSender<io::Result<Vec<u8>>>) {
        loop {
            let mut chunk = vec![0; CHUNK_LEN];
            let read = match input.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(0) => return self.close(FillPhase::Complete),
                read => read,
            };
            let failed = read.is_err();
            let result = read.map(|len| {
                chunk.truncate(len);
                chunk
            });
            if let Ok(chunk) = &result
                && self.write(chunk, most_bytes)
            {
                continue;
            }
            self.close(FillPhase::Full);
            if rest.send(result).is_err() || failed {
                return;
            }
        }
    }

    /// Writes a chunk to the file, if it still accepts it.
    fn write(&mut self, chunk: &[u8], most_bytes: u64) -> bool {
        let FillState { len, phase } = *self.fill.get();
        let has_room = phase == FillPhase::Open && len + chunk.len() as u64 <= most_bytes;
        let is_kept = has_room && self.file.write_all(chunk).is_ok();
        if is_kept {
            self.fill.set(|filled| filled.len += chunk.len() as u64);
        }
        is_kept
    }

    /// Marks the file as finished.
    fn close(&self, phase: FillPhase) {
        self.fill.set(|filled| {
            if filled.phase == FillPhase::Open {
                filled.phase = phase;
            }
        });
    }
}

impl PipeFileReader {
    /// What is available now.
    pub(super) fn try_read(&mut self) -> io::Result<PipeFileRead> {
        let filled = *self.fill.get();
        self.next(filled)
    }

    /// The same, waiting until there is something.
    pub(super) fn read(&mut self) -> io::Result<PipeFileRead> {
        let read = self.read;
        let is_dry = |filled: &mut FillState| filled.phase == FillPhase::Open && filled.len <= read;
        let filled = self.fill.changed.wait_while(self.fill.get(), is_dry);
        let filled = *filled.unwrap_or_else(PoisonError::into_inner);
        self.next(filled)
    }

    fn next(&mut self, filled: FillState) -> io::Result<PipeFileRead> {
        if self.read < filled.len {
            let room = usize::try_from(filled.len - self.read).unwrap_or(CHUNK_LEN).min(CHUNK_LEN);
            let mut chunk = vec![0; room];
            self.file.read_exact_at(&mut chunk, self.read)?;
            self.read += room as u64;
            return Ok(PipeFileRead::Chunk(chunk));
        }
        Ok(match filled.phase {
            FillPhase::Open => PipeFileRead::Nothing,
            FillPhase::Complete => PipeFileRead::End,
            FillPhase::Full => PipeFileRead::Elsewhere,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn pipe_file_is_unlinked() {
        let (spool, mut kept, filler) = PipeFile::create().unwrap();
        let (rest, _) = std::sync::mpsc::sync_channel(1);
        filler.fill(&b"all of it"[..], MAX_BYTES, &rest);
        assert_eq!(std::fs::metadata(spool.path()).unwrap().nlink(), 0);
        assert_eq!(std::fs::read(spool.path()).unwrap(), b"all of it");
        assert!(matches!(kept.read().unwrap(), PipeFileRead::Chunk(chunk) if chunk == b"all of it"));
    }
}
