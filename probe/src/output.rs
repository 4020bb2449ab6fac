//! The stream's destination: a session's directory of bounded segments, or a recording.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use gnntop_sessions::{HeldFile, LiveLock, NamedDir, PrivateDir, Stopped, layout, user_file};

use crate::past::SessionPast;
use crate::warning::Warning;

/// A segment of this size is closed and the next one begun.
const SEGMENT_BYTES: u64 = 4 << 20;

/// The past gets a session's bytes divided by this.
const PAST_SHARE: u64 = 2;

/// A session smaller than this did not fill the disk, and keeps what it has.
const GIVES_WAY_BYTES: u64 = 1 << 20;

/// Most segments kept, in case a file size limit makes many small ones.
const MAX_SEGMENTS: usize = 1024;

/// An open destination of the stream.
#[derive(Debug)]
pub(crate) enum Output {
    /// A live session: the newest segments; the oldest are dropped beyond a bound.
    Session(Segments),
    /// A recording: everything, in one file.
    Recording {
        /// The path, for messages.
        path: PathBuf,
        /// The open file.
        file: HeldFile,
        /// Its length in bytes, always whole frames.
        len: u64,
    },
}

/// The segments of a live session.
#[derive(Debug)]
pub(crate) struct Segments {
    dir: NamedDir,
    /// Held while the session lives.
    lock: LiveLock,
    current: Option<HeldFile>,
    /// Number and size of each segment on disk, oldest first.
    segments: VecDeque<(u64, u64)>,
    next: u64,
    /// Most bytes that the segments may take together.
    max_bytes: u64,
    /// The remains of the dropped segments.
    past: Box<SessionPast>,
    /// A segment of this size is closed and the next one begun.
    segment_bytes: u64,
}

impl Output {
    /// Opens a session's directory under `sessions`. Its segments together take at most about `max_bytes`.
    pub(crate) fn session(sessions: &Path, name: &str, max_bytes: u64) -> Result<Self, Warning> {
        let all = PrivateDir::create(sessions).map_err(|error| Warning::unusable(sessions, error))?;
        let dir = all.create_dir(name).map_err(|error| Warning::unusable(&sessions.join(name), error))?;
        let lock =
            LiveLock::create(&dir).map_err(|error| Warning::unusable(&dir.path().join(layout::LOCK_FILE), error))?;
        let dir = dir.named().map_err(|error| Warning::unusable(dir.path(), error))?;
        Ok(Self::Session(Segments {
            past: Box::new(SessionPast::new(dir.clone(), max_bytes / PAST_SHARE)),
            dir,
            lock,
            current: None,
            segments: VecDeque::new(),
            next: 0,
            max_bytes: (max_bytes - max_bytes / PAST_SHARE).max(2 * SEGMENT_BYTES),
            segment_bytes: SEGMENT_BYTES,
        }))
    }

    /// Creates a recording; an existing file is left alone.
    pub(crate) fn recording(path: &Path) -> Result<Self, Warning> {
        let path = path.to_owned();
        match user_file::create_log(&path).and_then(HeldFile::new) {
            Ok(file) => Ok(Self::Recording { path, file, len: 0 }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(Warning::RecordingExists { path }),
            Err(error) => Err(Warning::Write { path, error }),
        }
    }

    /// Whether the next write must begin a segment.
    pub(crate) fn is_segment_full(&self) -> bool {
        match self {
            Self::Session(segments) => {
                segments.segments.back().is_some_and(|&(_, size)| size >= segments.segment_bytes)
            }
            Self::Recording { .. } => false,
        }
    }

    /// Begins a new segment. In a recording, segments follow each other in the one file.
    pub(crate) fn begin_segment(&mut self) -> Result<(), Warning> {
        match self {
            Self::Session(segments) => segments.begin(),
            Self::Recording { .. } => Ok(()),
        }
    }

    /// Reports that the stream is written from now on, or since when it is not.
    pub(crate) fn report(&self, stopped: Option<&Stopped>) {
        if let Self::Session(segments) = self {
            segments.lock.report(stopped);
        }
    }

    /// Appends bytes, whole frames at a time: either all of them or none.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Warning> {
        match self {
            Self::Session(segments) => segments.write(bytes),
            Self::Recording { path, file, len } => {
                let written = append(file, || user_file::append(path), len, bytes);
                written.map_err(|error| Warning::Write { path: path.clone(), error })
            }
        }
    }
}

#[cfg(test)]
impl Output {
    /// Uses smaller segments than any program has, and as many bytes for the past as for the segments.
    pub(crate) fn shrink(&mut self, segment_bytes: u64, max_bytes: u64) {
        if let Self::Session(segments) = self {
            (segments.segment_bytes, segments.max_bytes) = (segment_bytes, max_bytes);
            *segments.past = SessionPast::new(segments.dir.clone(), max_bytes);
        }
    }

    /// Number of the oldest segment.
    pub(crate) fn oldest_segment(&self) -> Option<u64> {
        if let Self::Session(segments) = self { segments.segments.front().map(|&(number, _)| number) } else { None }
    }
}

impl Segments {
    fn begin(&mut self) -> Result<(), Warning> {
        if self.segments.back().is_some_and(|&(_, size)| size == 0) {
            // Nothing was written to it yet, and a viewer may wait for it.
            return Ok(());
        }
        self.drop_oldest();
        let name = layout::segment_file_name(self.next);
        let file = self.dir.open().and_then(|dir| Ok(HeldFile::new(dir.create_log(&name)?)?));
        self.current = Some(file.map_err(|error| Warning::unusable(&self.dir.path().join(name), error))?);
        self.segments.push_back((self.next, 0));
        self.next += 1;
        Ok(())
    }

    /// Makes room for one more segment.
    fn drop_oldest(&mut self) {
        let mut bytes = self.total_bytes();
        while !self.segments.is_empty()
            && (bytes + self.segment_bytes > self.max_bytes || self.segments.len() >= MAX_SEGMENTS)
        {
            self.read_oldest();
            // The figures are written before the segment is removed. If that fails, they are written with the next ones.
            let _ = self.past.commit();
            bytes -= self.remove_oldest();
        }
    }

    /// Adds the oldest segment to the figures over the past.
    fn read_oldest(&mut self) {
        if let Some(&(number, _)) = self.segments.front() {
            self.past.read_rest(number);
        }
    }

    /// Reads part of the next segment to be dropped, twice as fast as the newest one grows.
    fn read_ahead(&mut self, written: usize) {
        let goes_next = self.total_bytes() + 2 * self.segment_bytes > self.max_bytes && self.segments.len() > 1;
        if let Some(&(number, _)) = self.segments.front().filter(|_| goes_next) {
            self.past.read_ahead(number, 2 * written);
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Warning> {
        loop {
            let (Some(file), Some((number, size))) = (&mut self.current, self.segments.back_mut()) else {
                return Err(Warning::Write {
                    path: self.dir.path().to_owned(),
                    error: io::Error::other("no segment was begun"),
                });
            };
            let name = layout::segment_file_name(*number);
            let reopen = || Ok(self.dir.open()?.append(&name)?);
            let Err(error) = append(file, reopen, size, bytes) else {
                self.read_ahead(bytes.len());
                return Ok(());
            };
            let path = self.dir.path().join(name);
            if error.kind() == ErrorKind::FileTooLarge && *size > 0 {
                self.segment_bytes = *size;
            } else if is_full(&error) && self.segments.len() > 1 && self.total_bytes() >= GIVES_WAY_BYTES {
                // A disk with room for only some of the segments keeps the newest.
                self.read_oldest();
                self.remove_oldest();
                let _ = self.past.commit();
                continue;
            }
            return Err(Warning::Write { path, error });
        }
    }

    fn total_bytes(&self) -> u64 {
        self.segments.iter().map(|&(_, size)| size).sum()
    }

    fn remove_oldest(&mut self) -> u64 {
        let Some((number, size)) = self.segments.pop_front() else { return 0 };
        // A viewer that is reading it keeps its open file. A file that cannot be removed is found by pruning.
        let _ = self.dir.open().and_then(|dir| dir.remove(&layout::segment_file_name(number)));
        size
    }
}

/// Whether the disk, or the user's quota, is full.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Appends bytes to a file of `len` bytes, opened again if the program has closed it. If not all of them can be written, none
/// is.
fn append(
    file: &mut HeldFile,
    reopen: impl FnOnce() -> io::Result<File>,
    len: &mut u64,
    bytes: &[u8],
) -> io::Result<()> {
    let mut open = file.get_or_open(reopen)?;
    match open.write_all(bytes) {
        Ok(()) => {
            *len += bytes.len() as u64;
            Ok(())
        }
        Err(error) => {
            // Half a frame would look like damage to readers. If it cannot be removed, they skip it.
            let _ = file.get().map(|open| open.set_len(*len));
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, OpenOptions};
    use std::os::unix::fs::MetadataExt;

    fn segment_files(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| layout::segment_number(name).is_some())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn session_stays_within_max_bytes() {
        let temp = tempfile::tempdir().unwrap();
        // Half of it is for the past.
        let mut output = Output::session(temp.path(), "s", 6 * SEGMENT_BYTES).unwrap();
        let chunk = vec![7; SEGMENT_BYTES as usize / 2];
        output.begin_segment().unwrap();
        for _ in 0..20 {
            if output.is_segment_full() {
                output.begin_segment().unwrap();
            }
            output.write(&chunk).unwrap();
        }
        let dir = temp.path().join("s");
        let names = segment_files(&dir);
        assert_eq!(names.len(), 3, "{names:?}");
        assert_eq!(names[2], layout::segment_file_name(9));
        for name in names {
            assert_eq!(fs::metadata(dir.join(name)).unwrap().mode() & 0o777, 0o600);
        }
    }

    /// A segment whose file accepts nothing, as on a full disk.
    fn full(output: &mut Output) -> &mut Segments {
        let Output::Session(segments) = output else { unreachable!() };
        segments.current = Some(HeldFile::new(OpenOptions::new().write(true).open("/dev/full").unwrap()).unwrap());
        segments
    }

    #[test]
    fn full_disk_drops_oldest_segments_and_keeps_whole_frames() {
        let temp = tempfile::tempdir().unwrap();
        let mut output = Output::session(temp.path(), "s", 0).unwrap();
        let whole = vec![7; GIVES_WAY_BYTES as usize];
        for _ in 0..3 {
            output.begin_segment().unwrap();
            output.write(&whole).unwrap();
        }
        full(&mut output);
        assert!(matches!(output.write(b"more"), Err(Warning::Write { .. })));
        let dir = temp.path().join("s");
        assert_eq!(segment_files(&dir), [layout::segment_file_name(2)], "the newest stays");
        assert_eq!(fs::read(dir.join(layout::segment_file_name(2))).unwrap(), whole);
        // A segment to which nothing could be written is reused.
        output.begin_segment().unwrap();
        full(&mut output);
        assert!(output.write(b"preamble").is_err());
        output.begin_segment().unwrap();
        assert_eq!(segment_files(&dir).last(), Some(&layout::segment_file_name(3)));
    }

    #[test]
    fn a_live_session_is_locked() {
        let temp = tempfile::tempdir().unwrap();
        let output = Output::session(temp.path(), "s", 0).unwrap();
        let lock = File::open(temp.path().join("s").join(layout::LOCK_FILE)).unwrap();
        assert!(lock.try_lock_shared().is_err());
        drop(output);
        lock.try_lock_shared().unwrap();
    }

    #[test]
    fn session_starts_later_after_failed_start() {
        let temp = tempfile::tempdir().unwrap();
        let sessions = temp.path().join("sessions");
        fs::write(&sessions, "in the way").unwrap();
        assert!(Output::session(&sessions, "s", 0).is_err());
        fs::remove_file(&sessions).unwrap();
        Output::session(&sessions, "s", 0).unwrap();
    }

    #[test]
    fn recording_refuses_existing_file() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a.gnntop");
        Output::recording(&path).unwrap().write(b"bytes").unwrap();
        assert!(matches!(Output::recording(&path), Err(Warning::RecordingExists { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"bytes");
    }
}
