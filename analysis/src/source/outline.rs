//! Scans a recording before it is read: when it begins and ends, and where recordings were concatenated, as `cat` does with
//! those of a run's ranks. Only headers and a few frames are read.

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::ops::Range;

use gnntop_wire::{HEADER_LEN, Item, SessionInfo, StreamReader, peek};

use super::chunks::Chunks;
use super::platform::ReadAt;
use crate::stream::{Clocks, MAX_SESSIONS};

/// Bytes read at a time.
const CHUNK_LEN: usize = 256 * 1024;
/// Bytes at the start that are searched for the first time stamp.
const HEAD_LEN: u64 = 4 << 20;
/// Bytes at the end that are searched for the last time stamp; more than the longest frame.
const TAIL_LEN: u64 = 2 << 20;
/// Bytes before a seam that are searched for a time. Blocks of recordings continue earlier ones, so that often only an anchor,
/// which comes once a second, has one.
const BEFORE_LEN: u64 = 256 << 10;
/// Most places that are tried where the next recording may begin in one that was cut.
const MAX_TRIED: usize = 16;
/// If time goes back by this much, another recording begins. Sessions that alternate are at most a second apart.
const SEAM_NS: u64 = 1_500_000_000;

/// First and last instant of a recording, in nanoseconds of the publisher's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSpan {
    /// Time of the first event.
    pub first_ns: u64,
    /// Time of the last event.
    pub last_ns: u64,
}

/// The result of scanning a recording.
pub(super) struct Outline {
    /// Byte ranges with continuous time, to be read in parallel.
    pub(super) parts: Vec<Range<u64>>,
    /// First and last instant, on the clock of the first session.
    pub(super) span: TimeSpan,
    /// The first session; `None` if the recording begins within one.
    pub(super) reference: Option<SessionInfo>,
    /// The chunks at which reading can begin, if it has any.
    pub(super) chunks: Option<Chunks>,
}

impl Outline {
    /// Scans a file; `None` if nothing in it has a time.
    pub(super) fn scan(file: &File) -> Option<Self> {
        let len = file.metadata().ok()?.len();
        let chunks = Chunks::open(file);
        let (seams, reference) = seams(file, chunks.as_ref().map_or(0, Chunks::end), len);
        let ends = seams.iter().skip(1).copied().chain([len]);
        let parts: Vec<Range<u64>> = seams.iter().copied().zip(ends).map(|(start, end)| start..end).collect();
        let clocks = || Clocks::with_reference(reference.clone());
        let first_ns = parts.iter().filter_map(|part| first_time(file, part.clone(), clocks())).min()?;
        // What the last chunk says of its time need not be read again.
        let (chunks_end, chunks_ns) = chunks.as_ref().map_or((0, None), |chunks| (chunks.end(), chunks.newest_ns()));
        let after = |part: &Range<u64>| part.start.max(chunks_end.min(part.end))..part.end;
        let last_ns = parts.iter().filter_map(|part| last_time(file, after(part), clocks())).max().max(chunks_ns)?;
        Some(Self { parts, span: TimeSpan { first_ns, last_ns: last_ns.max(first_ns) }, reference, chunks })
    }
}

/// The start of each recording in a file, the first at 0, and the first session. Scans up to the first damage that is no
/// recording's cut end. All chunks belong to one recording, so only the first one begins before `chunks_end`.
fn seams(file: &File, chunks_end: u64, len: u64) -> (Vec<u64>, Option<SessionInfo>) {
    let mut reference = (chunks_end > 0).then(|| segment(file, 0..len.min(CHUNK_LEN as u64))).flatten();
    let (mut seams, mut known) = (vec![0], HashSet::new());
    let (mut offset, mut current) = (chunks_end, None::<SessionInfo>);
    // The newest frames of the current session.
    let mut before: VecDeque<u64> = VecDeque::new();
    let mut cuts = 0;
    while offset != len {
        let Some((frame_len, is_segment)) = frame_at(file, offset) else {
            cuts += 1;
            let next = before.back().and_then(|newest| next_segment(file, newest + 1));
            let Some(next) = next.filter(|_| cuts <= MAX_SESSIONS) else { break };
            offset = next;
            continue;
        };
        let end = offset + frame_len as u64;
        let begins = is_segment.then(|| segment(file, offset..end)).flatten();
        if let Some(info) = begins {
            reference.get_or_insert_with(|| info.clone());
            if known.len() < MAX_SESSIONS && known.insert(info.session_id) && !before.is_empty() {
                let clocks = |session: &Option<SessionInfo>| clocks_in(session.as_ref(), &reference);
                let newest = last_time(file, before[0]..offset, clocks(&current));
                let next = first_time(file, offset..len, clocks(&Some(info.clone())));
                seams.extend(
                    newest.zip(next).filter(|(newest, next)| next.saturating_add(SEAM_NS) < *newest).map(|_| offset),
                );
            }
            current = Some(info);
            before.clear();
        }
        before.push_back(offset);
        while before.front().is_some_and(|first| offset - first > BEFORE_LEN) {
            before.pop_front();
        }
        offset = end;
    }
    (seams, reference)
}

/// The length of the frame that begins here, and whether it begins a segment.
fn frame_at(file: &File, offset: u64) -> Option<(usize, bool)> {
    let mut header = [0; HEADER_LEN];
    file.read_exact_at(&mut header, offset).ok()?;
    peek(&header)
}

/// Where the first segment begins from here on, within the length of a frame: a recording that was cut ends within a frame,
/// and the next recording begins there.
fn next_segment(file: &File, from: u64) -> Option<u64> {
    let mut bytes = vec![0; TAIL_LEN as usize];
    let len = file.read_at(&mut bytes, from).ok()?;
    let headers = (from..).zip(bytes[..len].array_windows::<HEADER_LEN>());
    let segments = headers.filter_map(|(at, header)| Some((at, peek(header).filter(|(_, is_segment)| *is_segment)?.0)));
    segments.take(MAX_TRIED).find(|(at, len)| segment(file, *at..*at + *len as u64).is_some()).map(|(at, _)| at)
}

/// The clocks within a session.
fn clocks_in(session: Option<&SessionInfo>, reference: &Option<SessionInfo>) -> Clocks {
    let mut clocks = Clocks::with_reference(reference.clone());
    session.into_iter().for_each(|info| clocks.begin(info));
    clocks
}

/// The session of the segment that begins in these bytes.
fn segment(file: &File, range: Range<u64>) -> Option<SessionInfo> {
    let mut found = None;
    each_item(file, range, |item| {
        if let Item::Segment(info) = item {
            found = Some(info);
        }
        true
    });
    found
}

/// Time of the first event in these bytes.
fn first_time(file: &File, range: Range<u64>, mut clocks: Clocks) -> Option<u64> {
    let mut first_ns = None;
    let end = range.end.min(range.start.saturating_add(HEAD_LEN));
    each_item(file, range.start..end, |item| {
        first_ns = match item {
            Item::Segment(info) => {
                clocks.begin(&info);
                None
            }
            Item::Anchor(anchor) => Some(clocks.common_ns(anchor.monotonic_ns)),
            Item::Block(info, _) => Some(clocks.common_ns(info.base_ns)),
            _ => None,
        };
        first_ns.is_some()
    });
    first_ns
}

/// Time of the last event in these bytes.
fn last_time(file: &File, range: Range<u64>, mut clocks: Clocks) -> Option<u64> {
    let mut last_ns = None;
    let start = range.end.saturating_sub(TAIL_LEN).max(range.start);
    // The tail begins within some session; until the next segment, the clocks of the part's first session are used.
    if start > range.start
        && let Some(info) = segment(file, range.start..(range.start + CHUNK_LEN as u64).min(range.end))
    {
        clocks.begin(&info);
    }
    each_item(file, start..range.end, |item| {
        last_ns = last_ns.max(match item {
            Item::Segment(info) => {
                clocks.begin(&info);
                None
            }
            Item::Anchor(anchor) => Some(clocks.common_ns(anchor.monotonic_ns)),
            Item::Block(_, events) => events.map(|event| clocks.common_ns(event.t_ns())).max(),
            Item::End(end) => Some(clocks.common_ns(end.t_ns)),
            _ => None,
        });
        false
    });
    last_ns
}

/// Calls `is_enough` with the items in these bytes until it returns `true`.
fn each_item(file: &File, range: Range<u64>, mut is_enough: impl FnMut(Item<'_>) -> bool) {
    let mut reader = StreamReader::with_offset(range.start);
    let mut chunk = vec![0; CHUNK_LEN];
    let mut offset = range.start;
    while offset < range.end {
        let room = chunk.len().min(usize::try_from(range.end - offset).unwrap_or(usize::MAX));
        let Ok(len @ 1..) = file.read_at(&mut chunk[..room], offset) else { return };
        reader.fill(&chunk[..len]);
        offset += len as u64;
        while let Some(item) = reader.next() {
            if is_enough(item) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::recorder::{RecorderOptions, RunRecorder};
    use crate::stream::Sink;
    use gnntop_fixtures::{MS, ParallelRun, SECOND, START_NS, StreamBuilder, TrainingRun, session_info};
    use gnntop_wire::TrackRole;

    fn outline(bytes: &[u8]) -> Outline {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Outline::scan(&file).unwrap()
    }

    #[test]
    fn concatenated_recordings_are_several_parts() {
        let sessions = ParallelRun { ranks: 3, ..ParallelRun::default() }.sessions();
        let Outline { parts, span, reference, .. } = outline(&sessions.concat());
        let starts: Vec<u64> = parts.iter().map(|part| part.start).collect();
        assert_eq!(starts, [0, sessions[0].len() as u64, (sessions[0].len() + sessions[1].len()) as u64]);
        assert_eq!(reference.unwrap().pid, 5000);
        assert_eq!(span, TimeSpan { first_ns: START_NS, last_ns: START_NS + 100 * MS + 60 * 40 * MS });
        let alone = outline(&TrainingRun::default().bytes());
        assert_eq!(alone.parts.len(), 1);
    }

    /// A recording of many tracks whose recorder was killed.
    fn killed(pid: u32) -> Vec<u8> {
        let mut stream = StreamBuilder::from_info(&SessionInfo { pid, session_id: pid.into(), ..session_info("rank") });
        let tracks: Vec<_> = (0..8).map(|at| stream.track(TrackRole::Loader, &format!("loader {at}"))).collect();
        for second_ns in (0..20).map(|second| START_NS + second * SECOND) {
            stream.anchor(second_ns);
            for (track, at_ns) in
                tracks.iter().flat_map(|track| (1..50).map(move |at| (track, second_ns + at * 20 * MS)))
            {
                stream.span(*track, 0, "load", at_ns, at_ns + at_ns % 7919);
            }
        }
        let mut out = Vec::new();
        let mut recorder = RunRecorder::new(&mut out, RecorderOptions::default());
        gnntop_fixtures::each_item(&stream.bytes(), |item| {
            if let Item::Anchor(_) = item {
                recorder.flush().unwrap();
            }
            recorder.apply(item);
        });
        recorder.flush().unwrap();
        out
    }

    #[test]
    fn concatenated_recordings_that_were_cut_are_several_parts() {
        let [first, second] = [1, 2].map(killed);
        // A kill leaves the last frame whole, or not.
        for cut in (0..2000).step_by(50) {
            let first = &first[..first.len() - cut];
            let Outline { parts, .. } = outline(&[first, &second[..]].concat());
            let starts: Vec<u64> = parts.iter().map(|part| part.start).collect();
            assert_eq!(starts, [0, first.len() as u64], "{cut} bytes are missing");
        }
    }

    #[test]
    fn interleaved_recording_is_one_part() {
        let mut out = Vec::new();
        let mut recorder = RunRecorder::new(&mut out, RecorderOptions::default());
        let sessions = ParallelRun { ranks: 3, ..ParallelRun::default() }.sessions();
        sessions.iter().for_each(|stream| gnntop_fixtures::each_item(stream, |item| recorder.apply(item)));
        recorder.flush().unwrap();
        // Each session's blocks of a second or more are together here, at most as far apart as a seam.
        assert!(outline(&out).parts.len() <= 3);
        let later = ParallelRun { ranks: 3, later_ns: 60 * SECOND, start: 1, ..ParallelRun::default() };
        let bytes = [ParallelRun::default().session(0), later.session(1)].concat();
        assert_eq!(outline(&bytes).parts.len(), 1, "one after the other also in time");
    }

    #[test]
    fn times_are_on_the_first_sessions_clock() {
        let elsewhere = vec![(1, 1000 * SECOND as i64, Some(MS))];
        let sessions = ParallelRun { elsewhere, ..ParallelRun::default() }.sessions();
        let Outline { parts, span, .. } = outline(&sessions.concat());
        assert_eq!((parts.len(), span.first_ns), (2, START_NS));
        assert!(span.last_ns < START_NS + 3 * SECOND, "{span:?}");
    }

    #[test]
    fn scan_ends_at_damage() {
        let mut bytes = ParallelRun::default().sessions().concat();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 100].fill(7);
        assert!(!outline(&bytes).parts.is_empty());
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"no recording").unwrap();
        assert!(Outline::scan(&file).is_none());
    }
}
