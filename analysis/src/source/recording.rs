//! Reads a recording: a file, standard input, or all segments left by a session.
//!
//! A recording is hostile input. It is read piece by piece, so that its beginning shows at once however long it is. Damage
//! is skipped and counted, and anything that is not a recording is rejected in one line.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use gnntop_sessions::{SessionDir, user_file};
use gnntop_wire::{FORMAT_MAJOR, StreamReader};

use super::chunks::RecordingPast;
use super::file_format::{check_format, describe_other_format};
use super::holes::Holes;
use super::outline::{Outline, TimeSpan};
use super::owner::{FrameOwner, apply_past};
use super::pipe::{Pipe, PipeRead};
use super::polling::{Progress, Source, Status};
use super::tally::Tally;
use crate::stream::Sink;

/// Bytes read and passed on between two checks of the clock.
const CHUNK_LEN: usize = 256 * 1024;
/// Bytes at the start in which a recording must have a good frame.
const SNIFF_LEN: usize = 4 << 20;

/// Name of standard input in messages.
pub(super) const STDIN: &str = "standard input";

/// Why a recording cannot be opened. One line each, with the file's name.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The system's read failed.
    #[error("cannot read {path}: {error}")]
    Io {
        /// The file.
        path: String,
        /// The system's error.
        error: io::Error,
    },
    /// It has nothing that can be shown.
    #[error("{path} {reason}")]
    NotARecording {
        /// The file.
        path: String,
        /// What it is instead.
        reason: &'static str,
    },
    /// It is to be played together with one of another run.
    #[error("{path} and {other} are from different runs: compare them with --against")]
    OtherRun {
        /// The first file.
        path: String,
        /// The other one.
        other: String,
    },
    /// It was written by a later gnntop.
    #[error("{path} is written in format {major}, this gnntop reads up to {FORMAT_MAJOR}: update gnntop")]
    Newer {
        /// The file.
        path: String,
        /// Its major format version.
        major: u64,
    },
}

/// A recording being read.
pub struct Recording {
    /// Its name in messages.
    title: String,
    input: Input,
    /// The summary of what is before, to be passed on first.
    past: Option<RecordingPast>,
    reader: StreamReader,
    /// Bytes that were checked when the recording was opened and are still to be passed on.
    head: VecDeque<u8>,
    ended: Option<String>,
    tally: Tally,
    chunk: Vec<u8>,
    /// Bytes left of the part to be read.
    remaining: u64,
    holes: Holes,
    owner: FrameOwner,
}

enum Input {
    /// The open file, and the segments of the session that follow it.
    Files {
        open: File,
        later: Option<(SessionDir, VecDeque<u64>)>,
    },
    Pipe(Pipe),
}

/// The result of [`Recording::advance`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordingAdvance {
    /// An item was passed on, or bytes were read.
    Read,
    /// A pipe has no data now.
    Idle,
    /// Everything was read.
    End,
}

impl Recording {
    /// Opens the recording at `path`; `-` is standard input, a directory is an ended session's.
    ///
    /// # Errors
    /// If the file cannot be read, has no frame in its first 4 MiB, or begins in a newer format.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        let title = path.display().to_string();
        let failed = |error| RecordingError::Io { path: title.clone(), error };
        if path == Path::new("-") {
            return Self::from_pipe(STDIN, io::stdin());
        }
        if path.is_dir() {
            return Self::from_session(path, title);
        }
        let open = File::open(path).map_err(failed)?;
        // A named pipe, or the result of a shell's <(...), arrives as it is written, like standard input.
        if !open.metadata().map_err(failed)?.is_file() {
            return Self::from_pipe(&title, open);
        }
        Self::start(title, Input::Files { open, later: None })
    }

    /// The same recording under another name.
    pub(super) fn with_title(self, title: Option<&str>) -> Self {
        let title = title.map_or(self.title, str::to_owned);
        Self { title, ..self }
    }

    fn from_session(dir: &Path, title: String) -> Result<Self, RecordingError> {
        let failed = |error| RecordingError::Io { path: title.clone(), error };
        let session = SessionDir::open(dir).map_err(|error| failed(error.into()))?;
        let mut numbers = VecDeque::from(session.segments().map_err(|error| failed(error.into()))?);
        let Some(first) = numbers.pop_front() else {
            return Err(RecordingError::NotARecording { path: title, reason: "has no session segments" });
        };
        let open = session.segment(first).map_err(|error| failed(error.into()))?;
        Self::start(title, Input::Files { open, later: Some((session, numbers)) })
    }

    fn from_pipe(title: &str, input: impl Read + Send + 'static) -> Result<Self, RecordingError> {
        let title = title.to_owned();
        match Pipe::read_ahead(input) {
            Ok(pipe) => Self::from_open_pipe(pipe, title),
            Err(error) => Err(RecordingError::Io { path: title, error }),
        }
    }

    /// Reads from this pipe.
    pub(super) fn from_open_pipe(pipe: Pipe, title: String) -> Result<Self, RecordingError> {
        Self::start(title, Input::Pipe(pipe))
    }

    fn start(title: String, input: Input) -> Result<Self, RecordingError> {
        Self::start_with(title, input, u64::MAX)
    }

    fn new(title: String, input: Input, remaining: u64) -> Self {
        let (reader, head, ended, past) = (StreamReader::new(), VecDeque::new(), None, None);
        let (tally, chunk, owner) = (Tally::default(), vec![0; CHUNK_LEN], FrameOwner::default());
        Self { title, input, past, reader, head, ended, tally, chunk, remaining, holes: Holes::default(), owner }
    }

    /// Reads on until it is clear whether this is a recording; at most `left` bytes of each file.
    fn start_with(title: String, input: Input, left: u64) -> Result<Self, RecordingError> {
        let mut recording = Self::new(title, input, left);
        let mut sniffer = StreamReader::new();
        loop {
            let len = recording.read_waiting().map_err(|error| recording.io_error(error))?;
            recording.head.extend(&recording.chunk[..len]);
            sniffer.fill(&recording.chunk[..len]);
            if len == 0 {
                sniffer.finish();
            }
            match check_format(&mut sniffer) {
                Some(Ok(())) => return Ok(recording),
                Some(Err(major)) => return Err(RecordingError::Newer { path: recording.title, major }),
                None if len == 0 || recording.head.len() >= SNIFF_LEN => {
                    let reason = describe_other_format(recording.head.make_contiguous());
                    return Err(RecordingError::NotARecording { path: recording.title, reason });
                }
                None => (),
            }
        }
    }

    /// Reads this part of the file, which is positioned at its start, after `before`. `u64::MAX` is the file's end.
    pub(super) fn open_after_past(
        title: String,
        open: File,
        part: Range<u64>,
        before: RecordingPast,
    ) -> Result<Self, RecordingError> {
        let left = if part.end == u64::MAX { u64::MAX } else { part.end.saturating_sub(part.start) };
        let input = Input::Files { open, later: None };
        let recording = if left == 0 { Self::new(title, input, left) } else { Self::start_with(title, input, left)? };
        Ok(Self { past: Some(before), reader: StreamReader::with_offset(part.start), ..recording })
    }

    fn io_error(&self, error: io::Error) -> RecordingError {
        RecordingError::Io { path: self.title.clone(), error }
    }

    /// Fills `chunk` from the open file or the pipe, waiting for the pipe if necessary; returns 0 at the end.
    fn read_waiting(&mut self) -> io::Result<usize> {
        match &mut self.input {
            Input::Files { open, .. } => read_within(open, &mut self.chunk, &mut self.remaining),
            Input::Pipe(pipe) => {
                let bytes = pipe.read()?.unwrap_or_default();
                self.chunk[..bytes.len()].copy_from_slice(&bytes);
                Ok(bytes.len())
            }
        }
    }

    /// Passes on one item, or reads more.
    pub(super) fn advance(&mut self, sink: &mut dyn Sink) -> RecordingAdvance {
        if let Some(summary) = self.past.take() {
            apply_past(summary, &mut self.tally, &mut self.owner, sink);
            return RecordingAdvance::Read;
        }
        if let Some(item) = self.reader.next() {
            self.tally.note(&item);
            if self.owner.accept(&item) {
                sink.apply(item);
            }
            return RecordingAdvance::Read;
        }
        if self.ended.is_some() {
            return RecordingAdvance::End;
        }
        self.refill().unwrap_or_else(|error| {
            self.reader.finish();
            self.ended = Some(format!("cannot be read further: {error}"));
            RecordingAdvance::Read
        })
    }

    /// How far the file was read, in bytes.
    pub(super) fn offset(&self) -> u64 {
        self.reader.offset()
    }

    /// Gives the reader more bytes: from the head, the open file, the next file or the pipe.
    fn refill(&mut self) -> io::Result<RecordingAdvance> {
        if !self.head.is_empty() {
            let len = self.head.len().min(CHUNK_LEN);
            let bytes: Vec<u8> = self.head.drain(..len).collect();
            self.reader.fill(&bytes);
            return Ok(RecordingAdvance::Read);
        }
        let len = match &mut self.input {
            Input::Files { open, .. } => read_within(open, &mut self.chunk, &mut self.remaining)?,
            Input::Pipe(pipe) => match pipe.try_read()? {
                PipeRead::Nothing => return Ok(RecordingAdvance::Idle),
                PipeRead::End => 0,
                PipeRead::Chunk(bytes) => {
                    self.reader.fill(&bytes);
                    return Ok(RecordingAdvance::Read);
                }
            },
        };
        self.reader.fill(&self.chunk[..len]);
        if len == 0 {
            self.next_file()?;
        } else if let Input::Files { open, .. } = &mut self.input {
            self.holes.skip(open, &self.chunk[..len], &mut self.remaining, &mut self.reader)?;
        }
        Ok(RecordingAdvance::Read)
    }

    /// At the end of a file: continues with the next, or ends. Each file is first read up to any damage at its end.
    fn next_file(&mut self) -> io::Result<()> {
        if let Input::Files { open, later: Some((session, numbers)) } = &mut self.input
            && let Some(next) = numbers.pop_front()
        {
            // Segments are whole frames unless their publisher was killed, which can only affect the last one. The reader
            // continues across the boundary and skips anything else.
            *open = session.segment(next)?;
            return Ok(());
        }
        self.reader.finish();
        self.ended = Some("end of the recording".to_owned());
        Ok(())
    }

    /// Reads everything to the end.
    pub fn read_all(&mut self, sink: &mut dyn Sink) {
        loop {
            match self.advance(sink) {
                RecordingAdvance::Read => (),
                RecordingAdvance::End => return,
                RecordingAdvance::Idle => match self.read_waiting() {
                    Ok(len) => {
                        self.reader.fill(&self.chunk[..len]);
                        // A closed pipe stays closed: the next call finds its end.
                    }
                    Err(error) => self.ended = Some(format!("cannot be read further: {error}")),
                },
            }
        }
    }

    /// When the recording at `path` begins and ends, on the clock of its first session; `None` for a pipe, or if nothing in
    /// it has a time.
    pub fn time_span(path: &Path) -> Option<TimeSpan> {
        if !path.is_dir() {
            return Some(Outline::scan(&user_file::open(path).ok()?)?.span);
        }
        let session = SessionDir::open(path).ok()?;
        let segments = session.segments().ok()?.into_iter();
        let files: Vec<File> = segments.filter_map(|number| session.segment(number).ok()).collect();
        let first_ns = files.iter().find_map(|file| Some(Outline::scan(file)?.span.first_ns))?;
        let last_ns = files.iter().rev().find_map(|file| Some(Outline::scan(file)?.span.last_ns))?;
        Some(TimeSpan { first_ns, last_ns: last_ns.max(first_ns) })
    }

    /// The parts of a file that are to be read in parallel; `None` if it is not a file.
    pub(super) fn outline(path: &Path) -> Option<Outline> {
        Outline::scan(&user_file::open(path).ok()?)
    }

    /// Opens a stretch of the file at `path`, which begins with a whole frame.
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn open_part(path: &Path, part: &Range<u64>) -> Result<Self, RecordingError> {
        let title = path.display().to_string();
        let failed = |error| RecordingError::Io { path: title.clone(), error };
        let mut open = File::open(path).map_err(failed)?;
        open.seek(SeekFrom::Start(part.start)).map_err(failed)?;
        let input = Input::Files { open, later: None };
        Self::start_with(title, input, part.end.saturating_sub(part.start))
    }
}

impl Source for Recording {
    fn poll(&mut self, sink: &mut dyn Sink, budget: Duration) -> Progress {
        let began = Instant::now();
        let mut changed = false;
        loop {
            match self.advance(sink) {
                RecordingAdvance::Read => changed = true,
                RecordingAdvance::Idle | RecordingAdvance::End => return Progress { changed, more: false },
            }
            if began.elapsed() >= budget {
                return Progress { changed, more: true };
            }
        }
    }

    fn status(&self) -> Status {
        let title = format!("{}, {}", self.tally.title(), self.title);
        Status { title, left_out: self.owner.left_out(), ..self.tally.status(self.ended.as_deref()) }
    }
}

/// Reads at most `left` bytes, and counts them down.
fn read_within(file: &mut File, chunk: &mut [u8], left: &mut u64) -> io::Result<usize> {
    let room = chunk.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
    let len = read(file, &mut chunk[..room])?;
    // No limit stays no limit.
    *left = if *left == u64::MAX { *left } else { *left - len as u64 };
    Ok(len)
}

/// Reads, and retries if a signal interrupts it.
fn read(input: &mut impl Read, chunk: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::fixture::{self, CollectedItems, START_NS, STEP_NS, SessionDir};
    use super::super::polling::SourceState;
    use std::path::PathBuf;

    use super::*;

    fn written(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.gnntop");
        fs::write(&path, bytes).unwrap();
        (dir, path)
    }

    fn collect(path: &Path) -> (CollectedItems, Status) {
        let mut recording = Recording::open(path).unwrap();
        let mut heard = CollectedItems::default();
        recording.read_all(&mut heard);
        (heard, recording.status())
    }

    fn refusal(bytes: &[u8]) -> String {
        let (_dir, path) = written(bytes);
        let error = Recording::open(&path).map(|_| ()).unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error}");
        error.replace(&path.display().to_string(), "FILE")
    }

    #[test]
    fn recording_is_read_completely() {
        let (_dir, path) = written(&fixture::recording(1000, 50));
        let (heard, status) = collect(&path);
        assert_eq!(heard.steps(), (1..=1000).collect::<Vec<_>>());
        assert_eq!((heard.ends.len(), heard.gaps, heard.damages), (1, 0, 0));
        assert_eq!(status.state, SourceState::Ended("end of the recording".to_owned()));
        assert!(status.title.starts_with("pna (pid 4711), "), "{}", status.title);
        assert!(status.warnings().is_empty());
    }

    #[test]
    fn polling_gives_same_items_as_read_all() {
        let (_dir, path) = written(&fixture::recording(5000, 10));
        let (mut recording, mut heard) = (Recording::open(&path).unwrap(), CollectedItems::default());
        let mut polls = 0;
        while recording.poll(&mut heard, Duration::ZERO).more {
            polls += 1;
        }
        assert!(polls > 500, "{polls}");
        assert_eq!(heard.steps().len(), 5000);
    }

    #[test]
    fn other_files_are_refused_in_one_line() {
        assert_eq!(refusal(b""), "FILE is empty: not a recording");
        assert_eq!(refusal("idx,smiles\n0,CCO é\n".as_bytes()), "FILE is a text file: not a recording");
        assert_eq!(refusal(b"\x1f\x8b\x08\0\0\0"), "FILE is compressed with gzip: unpack it first");
        assert_eq!(refusal(&[0; 10_000]), "FILE is not a recording");
        assert_eq!(refusal(&vec![0xA7; 6 << 20]), "FILE is not a recording");
        assert!(matches!(Recording::open(Path::new("/nowhere/a.gnntop")), Err(RecordingError::Io { .. })));
    }

    #[test]
    fn a_newer_format_is_refused_by_its_number() {
        let mut bytes = fixture::recording(3, 3);
        // The payload of the first frame: the magic word, then the major version in one byte.
        let at = bytes.windows(6).position(|window| window == b"gnntop").unwrap() + 6;
        bytes[at] = 9;
        fixture::mend_first_frame(&mut bytes);
        assert_eq!(refusal(&bytes), "FILE is written in format 9, this gnntop reads up to 1: update gnntop");
    }

    #[test]
    fn truncated_recording_keeps_earlier_events() {
        let whole = fixture::recording(40, 4);
        let (_dir, path) = written(&[]);
        let mut steps_before = 0;
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            match Recording::open(&path) {
                Err(error) => assert!(steps_before == 0, "cut at {cut}: {error}"),
                Ok(mut recording) => {
                    let mut heard = CollectedItems::default();
                    recording.read_all(&mut heard);
                    let steps = heard.steps();
                    assert!(steps.len() >= steps_before && steps.len() % 4 == 0, "cut at {cut}: {steps:?}");
                    assert_eq!(steps, (1..=steps.len() as u64).collect::<Vec<_>>());
                    steps_before = steps.len();
                }
            }
        }
        assert_eq!(steps_before, 40);
    }

    #[test]
    fn flipped_byte_loses_one_frame_and_is_reported() {
        let whole = fixture::recording(40, 4);
        let (_dir, path) = written(&[]);
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x55;
            fs::write(&path, &bytes).unwrap();
            let (heard, status) = collect(&path);
            assert!(heard.steps().len() >= 36, "byte {at}");
            assert!(status.damage.holes >= 1, "byte {at}");
            assert!(status.warnings()[0].starts_with("damaged in "), "{:?}", status.warnings());
        }
    }

    #[test]
    fn a_hole_is_not_read() {
        let whole = fixture::recording(40, 4);
        let (_dir, path) = written(&whole);
        let mut file = File::options().write(true).open(&path).unwrap();
        file.seek(SeekFrom::Start(1 << 40)).unwrap();
        io::Write::write_all(&mut file, &fixture::steps(40..44)).unwrap();
        let (heard, status) = collect(&path);
        assert_eq!((heard.steps(), status.damage.holes), ((1..=44).collect::<Vec<_>>(), 1));
    }

    #[test]
    fn time_span_reads_only_both_ends() {
        let (_dir, path) = written(&fixture::recording(200_000, 1000));
        let expected = TimeSpan { first_ns: START_NS, last_ns: START_NS + 200_000 * STEP_NS };
        assert_eq!(Recording::time_span(&path), Some(expected));
        fs::write(&path, "no time in here").unwrap();
        assert_eq!(Recording::time_span(&path), None);
    }

    #[test]
    fn the_segments_of_a_killed_session_are_one_recording() {
        let dir = tempfile::tempdir().unwrap();
        let session = SessionDir::create(dir.path(), "pna", 4711);
        session.write_segment(2, &[fixture::segment("pna", 4711, 2), fixture::steps(5..8)].concat());
        let cut = fixture::steps(10..12);
        session.write_segment(3, &[fixture::segment("pna", 4711, 3), fixture::steps(8..10)].concat());
        session.append(3, &cut[..cut.len() - 1]);
        let (heard, status) = collect(session.path());
        assert_eq!(heard.steps(), [6, 7, 8, 9, 10]);
        assert_eq!(status.damage.holes, 1);
        let span = Recording::time_span(session.path()).unwrap();
        assert_eq!(span, TimeSpan { first_ns: START_NS, last_ns: START_NS + 10 * STEP_NS });
    }

    #[test]
    fn pipe_is_read_as_it_arrives() {
        let (reading, writing) = io::pipe().unwrap();
        let whole = fixture::recording(20, 4);
        let writer = std::thread::spawn(move || {
            let mut writing = writing;
            for piece in whole.chunks(7) {
                io::Write::write_all(&mut writing, piece).unwrap();
            }
        });
        let mut recording = Recording::from_pipe("pipe", reading).unwrap();
        let mut heard = CollectedItems::default();
        recording.read_all(&mut heard);
        writer.join().unwrap();
        assert_eq!(heard.steps().len(), 20);
        let refused = Recording::from_pipe("pipe", io::empty()).map(|_| ()).unwrap_err().to_string();
        assert_eq!(refused, "pipe is empty: not a recording");
    }
}
