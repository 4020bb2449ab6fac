//! Where the stream goes: a session's directory of bounded segments, or straight into a recording.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use gnntop_wire::layout;

use crate::directory;
use crate::live_lock::LiveLock;
use crate::warning::Warning;

/// Size from which a segment is closed and the next one begun.
const SEGMENT_BYTES: u64 = 4 << 20;

/// An open place to write the stream to.
#[derive(Debug)]
pub(crate) enum Output {
    /// A live session: the newest segments, the oldest dropped beyond a bound.
    Session(Segments),
    /// A recording: everything, in one file.
    Recording {
        /// The file's name, for messages.
        path: PathBuf,
        /// The file.
        file: File,
    },
}

/// The segments of a live session.
#[derive(Debug)]
pub(crate) struct Segments {
    dir: PathBuf,
    /// Held as long as the session lives.
    _lock: LiveLock,
    current: Option<File>,
    /// Number and size of each segment on disk, oldest first.
    kept: VecDeque<(u64, u64)>,
    next: u64,
    max_bytes: u64,
}

impl Output {
    /// Opens a session's directory under `sessions`; together its segments take at most about `max_bytes`.
    pub(crate) fn session(sessions: &Path, name: &str, max_bytes: u64) -> Result<Self, Warning> {
        directory::prepare(sessions)?;
        let dir = sessions.join(name);
        directory::make(&dir)?;
        let lock_path = dir.join(layout::LOCK_FILE);
        let lock = create(&lock_path).and_then(LiveLock::new);
        let lock = lock.map_err(|error| Warning::Write { path: lock_path, error })?;
        Ok(Self::Session(Segments {
            dir,
            _lock: lock,
            current: None,
            kept: VecDeque::new(),
            next: 0,
            max_bytes: max_bytes.max(2 * SEGMENT_BYTES),
        }))
    }

    /// Creates a recording; an existing file is left alone.
    pub(crate) fn recording(path: &Path) -> Result<Self, Warning> {
        let path = path.to_owned();
        match create(&path) {
            Ok(file) => Ok(Self::Recording { path, file }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(Warning::RecordingExists { path }),
            Err(error) => Err(Warning::Write { path, error }),
        }
    }

    /// Whether the next write must begin a segment.
    pub(crate) fn is_segment_full(&self) -> bool {
        match self {
            Self::Session(segments) => segments.kept.back().is_some_and(|&(_, size)| size >= SEGMENT_BYTES),
            Self::Recording { .. } => false,
        }
    }

    /// Begins a new segment; in a recording segments follow each other in the one file.
    pub(crate) fn begin_segment(&mut self) -> Result<(), Warning> {
        match self {
            Self::Session(segments) => segments.begin(),
            Self::Recording { .. } => Ok(()),
        }
    }

    /// Appends bytes, whole frames at a time.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Warning> {
        match self {
            Self::Session(segments) => segments.write(bytes),
            Self::Recording { path, file } => {
                file.write_all(bytes).map_err(|error| Warning::Write { path: path.clone(), error })
            }
        }
    }
}

impl Segments {
    fn begin(&mut self) -> Result<(), Warning> {
        self.drop_oldest();
        let path = self.dir.join(layout::segment_file_name(self.next));
        self.current = Some(create(&path).map_err(|error| Warning::Write { path, error })?);
        self.kept.push_back((self.next, 0));
        self.next += 1;
        Ok(())
    }

    /// Makes room for one more segment.
    fn drop_oldest(&mut self) {
        let mut bytes: u64 = self.kept.iter().map(|&(_, size)| size).sum();
        while bytes + SEGMENT_BYTES > self.max_bytes {
            let Some((number, size)) = self.kept.pop_front() else { return };
            // A viewer that reads it just now keeps its open file; a failure leaves a file that pruning finds.
            let _ = fs::remove_file(self.dir.join(layout::segment_file_name(number)));
            bytes -= size;
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Warning> {
        let no_segment = || io::Error::other("no segment was begun");
        let written = self.current.as_mut().ok_or_else(no_segment).and_then(|file| file.write_all(bytes));
        if let Some((_, size)) = self.kept.back_mut() {
            *size += bytes.len() as u64;
        }
        written.map_err(|error| {
            let number = self.kept.back().map_or(0, |&(number, _)| number);
            Warning::Write { path: self.dir.join(layout::segment_file_name(number)), error }
        })
    }
}

/// Creates a file for this user alone; never follows a link, never opens what is there already.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn a_session_never_grows_past_its_bound() {
        let temp = tempfile::tempdir().unwrap();
        let mut output = Output::session(temp.path(), "s", 3 * SEGMENT_BYTES).unwrap();
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
    fn a_recording_overwrites_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a.gnntop");
        Output::recording(&path).unwrap().write(b"bytes").unwrap();
        assert!(matches!(Output::recording(&path), Err(Warning::RecordingExists { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"bytes");
    }
}
