//! Keeps input from a pipe in a file, up to a limit, so that a recording can be played as a file once it is complete:
//! backwards too, and with its ranks in parallel.
//!
//! ```text
//! pipe ─▶ thread ─▶ temporary file, up to the bound ─▶ reader
//!             └───▶ a few chunks in memory, after it ───┘
//! ```

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tempfile::{NamedTempFile, TempPath};

/// Most bytes kept: a recording of days. Later input is read as it is played.
pub(super) const MOST_BYTES: u64 = 256 << 20;
/// Bytes read at a time.
pub(super) const CHUNK_LEN: usize = 64 * 1024;
/// A pipe without data for this long is written in real time...
const PAUSE: Duration = Duration::from_millis(100);
/// ...and one that takes longer to read is not waited for.
const MOST_WAIT: Duration = Duration::from_secs(1);

/// The file. It is removed when this is dropped.
pub(super) struct Spool {
    place: Place,
    filling: Arc<Filling>,
}

/// Location of the file.
enum Place {
    /// Unlinked, so it is removed when the process ends, however that happens.
    Handle {
        path: PathBuf,
        #[expect(dead_code, reason = "held, as the path is about it")]
        open: File,
    },
    /// Kept by name, if an unlinked file cannot be opened again.
    Name(TempPath),
}

impl Place {
    fn of(open: File, name: TempPath) -> Self {
        let path = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
        if File::open(&path).is_ok() { Self::Handle { path, open } } else { Self::Name(name) }
    }
}

/// The reading end of the file.
pub(super) struct Kept {
    file: File,
    read: u64,
    filling: Arc<Filling>,
}

/// Result of reading from [`Kept`].
pub(super) enum Given {
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
struct Filling {
    state: Mutex<Filled>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
struct Filled {
    len: u64,
    phase: Phase,
}

/// Whether more comes into the file.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    /// More may come.
    #[default]
    Open,
    /// The pipe has ended and the file is complete.
    Whole,
    /// The file has reached its limit, or the system accepts no more: what follows is elsewhere.
    Full,
}

impl Filling {
    fn get(&self) -> MutexGuard<'_, Filled> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, change: impl FnOnce(&mut Filled)) {
        change(&mut self.get());
        self.changed.notify_all();
    }
}

impl Spool {
    /// A file, its reader, and its writer.
    ///
    /// # Errors
    /// If there is no room for temporary files.
    pub(super) fn create() -> io::Result<(Self, Kept, Filler)> {
        let (file, name) = NamedTempFile::with_prefix("gnntop-pipe-")?.into_parts();
        let (reading, filling) = (File::open(&name)?, Arc::<Filling>::default());
        let place = Place::of(file.try_clone()?, name);
        let kept = Kept { file: reading, read: 0, filling: Arc::clone(&filling) };
        let filler = Filler { file, filling: Arc::clone(&filling) };
        Ok((Self { place, filling }, kept, filler))
    }

    /// Path of the file.
    pub(super) fn path(&self) -> &Path {
        match &self.place {
            Place::Handle { path, .. } => path,
            Place::Name(name) => name,
        }
    }

    /// Whether the pipe has ended and all of its input is in the file.
    pub(super) fn is_whole(&self) -> bool {
        self.filling.get().phase == Phase::Whole
    }

    /// Whether more has come than the file holds.
    pub(super) fn is_full(&self) -> bool {
        self.filling.get().phase == Phase::Full
    }

    /// Waits, but only for a moment, while the pipe still has data: what `cat` writes to a pipe is all available at once.
    pub(super) fn settle(&self) {
        let give_up = Instant::now() + MOST_WAIT;
        let mut filled = self.filling.get();
        while filled.phase == Phase::Open {
            let rest = give_up.saturating_duration_since(Instant::now()).min(PAUSE);
            let (woken, waited) =
                self.filling.changed.wait_timeout(filled, rest).unwrap_or_else(PoisonError::into_inner);
            if waited.timed_out() {
                return;
            }
            filled = woken;
        }
    }
}

/// The writing end of the file.
pub(super) struct Filler {
    file: File,
    filling: Arc<Filling>,
}

impl Filler {
    /// Reads `input` to its end: into the file up to `most_bytes`, then into `rest`.
    pub(super) fn fill(mut self, mut input: impl Read, most_bytes: u64, rest: &SyncSender<io::Result<Vec<u8>>>) {
        loop {
            let mut chunk = vec![0; CHUNK_LEN];
            let read = match input.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(0) => return self.close(Phase::Whole),
                read => read,
            };
            let failed = read.is_err();
            let result = read.map(|len| {
                chunk.truncate(len);
                chunk
            });
            if let Ok(chunk) = &result
                && self.keep(chunk, most_bytes)
            {
                continue;
            }
            self.close(Phase::Full);
            if rest.send(result).is_err() || failed {
                return;
            }
        }
    }

    /// Writes a chunk to the file, if it still accepts it.
    fn keep(&mut self, chunk: &[u8], most_bytes: u64) -> bool {
        let Filled { len, phase } = *self.filling.get();
        let has_room = phase == Phase::Open && len + chunk.len() as u64 <= most_bytes;
        let is_kept = has_room && self.file.write_all(chunk).is_ok();
        if is_kept {
            self.filling.set(|filled| filled.len += chunk.len() as u64);
        }
        is_kept
    }

    /// Marks the file as finished.
    fn close(&self, phase: Phase) {
        self.filling.set(|filled| {
            if filled.phase == Phase::Open {
                filled.phase = phase;
            }
        });
    }
}

impl Kept {
    /// What is available now.
    pub(super) fn take(&mut self) -> io::Result<Given> {
        let filled = *self.filling.get();
        self.next(filled)
    }

    /// The same, waiting until there is something.
    pub(super) fn wait(&mut self) -> io::Result<Given> {
        let read = self.read;
        let is_dry = |filled: &mut Filled| filled.phase == Phase::Open && filled.len <= read;
        let filled = self.filling.changed.wait_while(self.filling.get(), is_dry);
        let filled = *filled.unwrap_or_else(PoisonError::into_inner);
        self.next(filled)
    }

    fn next(&mut self, filled: Filled) -> io::Result<Given> {
        if self.read < filled.len {
            let room = usize::try_from(filled.len - self.read).unwrap_or(CHUNK_LEN).min(CHUNK_LEN);
            let mut chunk = vec![0; room];
            self.file.read_exact_at(&mut chunk, self.read)?;
            self.read += room as u64;
            return Ok(Given::Chunk(chunk));
        }
        Ok(match filled.phase {
            Phase::Open => Given::Nothing,
            Phase::Whole => Given::End,
            Phase::Full => Given::Elsewhere,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_file_has_no_name_that_a_killed_process_could_leave_behind() {
        let (spool, mut kept, filler) = Spool::create().unwrap();
        let (rest, _) = std::sync::mpsc::sync_channel(1);
        filler.fill(&b"all of it"[..], MOST_BYTES, &rest);
        assert_eq!(std::fs::metadata(spool.path()).unwrap().nlink(), 0);
        assert_eq!(std::fs::read(spool.path()).unwrap(), b"all of it");
        assert!(matches!(kept.wait().unwrap(), Given::Chunk(chunk) if chunk == b"all of it"));
    }
}
