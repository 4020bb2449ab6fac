//! One session and its copy.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use gnntop_sessions::copy::{CopyReader, CopyWriter};
use gnntop_sessions::{BEAT_INTERVAL, Error, Heartbeat, PrivateDir};

/// A session that is being copied.
pub(super) struct CopiedSession {
    dir: PathBuf,
    reader: CopyReader,
    writer: CopyWriter,
    last_beat: Instant,
    /// Whether the copy says that it has ended.
    is_over: bool,
}

impl CopiedSession {
    /// Begins the copy of the session in `dir`, or continues one, as a live session of the directory `to`.
    pub(super) fn begin(dir: &Path, to: &PrivateDir) -> Result<Self, Error> {
        let name = dir.file_name().and_then(|name| name.to_str()).ok_or(Error::NotASession)?;
        let writer = CopyWriter::open(to, name)?;
        // Before anything else: what has neither a heartbeat nor a lock has ended.
        writer.beat(&Heartbeat::now())?;
        let reader = CopyReader::new(dir, writer.copied().clone());
        Ok(Self { dir: dir.to_owned(), reader, writer, last_beat: Instant::now(), is_over: false })
    }

    /// Copies what is new. With `is_last`, nothing follows once the session has ended, or was removed. Returns whether that is so.
    pub(super) fn update(&mut self, is_last: bool) -> Result<bool, Error> {
        if self.is_over && !self.dir.exists() {
            return Ok(is_last);
        }
        let writer = &mut self.writer;
        let publisher = self.reader.read(&mut |change| writer.apply(&change).map_err(io::Error::from))?;
        if publisher.alive && self.last_beat.elapsed() >= BEAT_INTERVAL {
            self.writer.beat(&Heartbeat { stopped: publisher.stopped.clone(), ..Heartbeat::now() })?;
            self.last_beat = Instant::now();
        }
        if !publisher.alive && !self.is_over {
            self.writer.end(publisher.stopped.as_ref())?;
            self.is_over = true;
        }
        Ok(self.is_over && is_last)
    }
}
