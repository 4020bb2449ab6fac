//! Where reading a recording can begin: at the end of each of its chunks, which summarises everything before.
//!
//! Nothing in the chain of chunks is trusted. It must lead from the last chunk to the first byte of the file; otherwise it
//! is ignored, and the recording is read from its beginning.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;

use gnntop_history::MINUTE_NS;
use gnntop_wire::chunk::{CHUNK_END_LEN, ChunkEnd, parse_summary};
use gnntop_wire::{Item, peek};

use super::past_figures::{PastFigures, as_slice, each_item, is_second, is_wanted};
use super::platform::ReadAt;
use crate::stream::{MAX_SESSIONS, Sink};

/// Bytes at the end of a file that are searched for the last chunk's end, and how many at a time.
const SEARCHED_BYTES: u64 = 32 << 20;
const PIECE_LEN: u64 = 2 << 20;
/// Most chunks of a recording: as many as in 1 TiB of sparse events, or 65 billion dense ones.
const MAX_CHUNKS: usize = 1 << 17;
/// Most bytes of summaries held at a time.
const MAX_BYTES: u64 = 256 << 20;
/// Most bytes of seconds that are passed on; before them, minutes are.
const SECONDS_BYTES: u64 = 1 << 20;

/// The chunks of a recording.
pub(super) struct Chunks {
    file: File,
    /// Position and contents of each chunk's end, oldest first.
    all: Vec<(u64, ChunkEnd)>,
}

impl Chunks {
    /// The chunks of a file; `None` if it has none, or if their chain is broken.
    pub(super) fn open(file: &File) -> Option<Self> {
        let file = file.try_clone().ok()?;
        let last = find_last(&file)?;
        let mut all = vec![last];
        while let Some((at, end)) = previous_end(&file, *all.last()?)? {
            all.push((at, end));
            if all.len() > MAX_CHUNKS {
                return None;
            }
        }
        all.reverse();
        Some(Self { file, all })
    }

    /// End of the last chunk, in bytes.
    pub(super) fn end(&self) -> u64 {
        self.all.last().map_or(0, next_offset)
    }

    /// Time of the newest event in any chunk, on the clock of the first session.
    pub(super) fn newest_ns(&self) -> Option<u64> {
        self.all.last().map(|(_, end)| end.last_ns)
    }

    /// The last chunk after which events continue at or before byte `at` of the file.
    pub(super) fn before_byte(&self, at: u64) -> Option<usize> {
        self.all.partition_point(|chunk| next_offset(chunk) <= at).checked_sub(1)
    }

    /// The first chunk that ends at this byte or later.
    pub(super) fn after_byte(&self, at: u64) -> Option<usize> {
        let chunk = self.all.partition_point(|chunk| next_offset(chunk) < at);
        (chunk < self.all.len()).then_some(chunk)
    }

    /// The last chunk from `from` on after which the chunks have at least this many steps.
    pub(super) fn before_newest_steps(&self, steps: u64, from: usize) -> Option<usize> {
        self.before_steps(steps, from..self.all.len())
    }

    /// The last of these chunks after which they have at least this many steps.
    fn before_steps(&self, steps: u64, among: Range<usize>) -> Option<usize> {
        let until = chunk_totals(self.totals(among.end.checked_sub(1)?)?).steps.checked_sub(steps)?;
        let is_before = |chunk: usize| self.totals(chunk).is_some_and(|whole| chunk_totals(whole).steps <= until);
        let (mut low, mut high) = (among.start, among.end);
        while low < high {
            let middle = low.midpoint(high);
            if is_before(middle) { low = middle + 1 } else { high = middle }
        }
        low.checked_sub(1).filter(|chunk| *chunk >= among.start)
    }

    /// The last chunk with at least this many steps between its end and `until_ns`, on the clock of the first session.
    pub(super) fn before_steps_until(&self, until_ns: u64, steps: u64) -> Option<usize> {
        self.before_steps(steps, 0..self.all.partition_point(|(_, end)| end.last_ns <= until_ns))
    }

    /// Events in all chunks except the first, which may summarise what was before the recording.
    pub(super) fn events(&self) -> u64 {
        let until = |chunk: usize| self.totals(chunk).map_or(0, |whole| chunk_totals(whole).events);
        until(self.all.len().saturating_sub(1)).saturating_sub(until(0))
    }

    /// The last chunk but one that ended by this time, on the clock of the first session, so that at least a chunk is shown
    /// from its end on.
    pub(super) fn before_time(&self, t_ns: u64) -> Option<usize> {
        self.all.partition_point(|(_, end)| end.last_ns <= t_ns).checked_sub(2)
    }

    /// The last chunk without a step with this number or a higher one.
    pub(super) fn before_step(&self, step: u64) -> Option<usize> {
        self.all.partition_point(|(_, end)| end.last_step < step).checked_sub(1)
    }

    /// Where events continue after a chunk, in bytes.
    pub(super) fn next_offset(&self, chunk: usize) -> u64 {
        self.all.get(chunk).map_or(0, next_offset)
    }

    /// Time of the newest event up to the end of a chunk, on the clock of the first session.
    pub(super) fn last_ns(&self, chunk: usize) -> u64 {
        self.all.get(chunk).map_or(0, |(_, end)| end.last_ns)
    }

    /// The summary of everything up to the end of a chunk; `None` if it is damaged.
    pub(super) fn past(&self, chunk: usize) -> Option<RecordingPast> {
        let whole = self.totals(chunk)?;
        let (mut slices, mut bytes) = (Vec::new(), 0u64);
        for (at, end) in &self.all[..=chunk] {
            bytes += end.minutes_len;
            if bytes > MAX_BYTES {
                return None;
            }
            slices.push(self.read(at - end.minutes_len, end.minutes_len)?);
        }
        let (first, seconds) = self.seconds(chunk)?;
        let seconds_from_ns = seconds_from(seconds.first().map_or(&[], Vec::as_slice), first == 0);
        slices.extend(seconds);
        Some(RecordingPast { sessions: whole, slices, seconds_from_ns })
    }

    /// Each session's figures over everything up to the end of a chunk; `None` if they are damaged.
    fn totals(&self, chunk: usize) -> Option<Vec<PastFigures>> {
        let (at, end) = self.all.get(chunk)?;
        let whole = PastFigures::parse_all(&self.read(at - end.summaries_len(), end.totals_len)?)?;
        (whole.len() <= MAX_SESSIONS).then_some(whole)
    }

    /// The seconds of the last chunks, and the index of the first of these.
    fn seconds(&self, chunk: usize) -> Option<(usize, Vec<Vec<u8>>)> {
        let (mut first, mut bytes) = (chunk, self.all[chunk].1.seconds_len);
        while first > 0 && bytes.saturating_add(self.all[first - 1].1.seconds_len) <= SECONDS_BYTES {
            first -= 1;
            bytes += self.all[first].1.seconds_len;
        }
        let read = |(at, end): &(u64, ChunkEnd)| self.read(at - end.minutes_len - end.seconds_len, end.seconds_len);
        Some((first, self.all[first..=chunk].iter().map(read).collect::<Option<_>>()?))
    }

    /// A stream of summaries, whose length has been checked.
    fn read(&self, at: u64, len: u64) -> Option<Vec<u8>> {
        let mut frames = vec![0; usize::try_from(len).ok()?];
        self.file.read_exact_at(&mut frames, at).ok()?;
        parse_summary(&frames)
    }
}

/// How much of a recording is before some point.
#[derive(Clone, Copy, Default)]
struct ChunkTotals {
    steps: u64,
    events: u64,
}

/// Totals of these figures over all sessions.
fn chunk_totals(all: Vec<PastFigures>) -> ChunkTotals {
    let mut told = ChunkTotals::default();
    for whole in all.iter().filter_map(PastFigures::totals) {
        told.steps = told.steps.saturating_add(whole.steps);
        told.events = whole.tracks.iter().fold(told.events, |events, end| events.saturating_add(end.events));
    }
    told
}

fn next_offset((at, _): &(u64, ChunkEnd)) -> u64 {
    at + CHUNK_END_LEN as u64
}

/// The summary of everything before some point.
pub(super) struct RecordingPast {
    sessions: Vec<PastFigures>,
    /// Streams of minutes, then of seconds.
    slices: Vec<Vec<u8>>,
    /// Time from which seconds replace minutes, by session.
    seconds_from_ns: HashMap<u128, u64>,
}

impl RecordingPast {
    /// Passes everything on, one session after the other, since one may be a later start of the run that another began.
    pub(super) fn apply_to(self, sink: &mut dyn Sink) {
        let slices = by_session(&self.slices);
        for mut whole in self.sessions {
            let id = whole.session_id();
            let seconds_from_ns = self.seconds_from_ns.get(&id).copied().unwrap_or(u64::MAX);
            whole.apply_figures_to(sink);
            for part in slices.get(&id).into_iter().flatten() {
                apply_slices(part, id, seconds_from_ns, sink);
            }
            whole.apply_open_to(seconds_from_ns, sink);
        }
    }
}

/// Passes on the relevant slices of a session.
fn apply_slices(part: &[u8], id: u128, seconds_from_ns: u64, sink: &mut dyn Sink) {
    let mut is_theirs = false;
    each_item(part, |item| match item {
        Item::Segment(info) => is_theirs = info.session_id == id,
        Item::Past(mut entries) if is_theirs => {
            entries.retain(|past| is_wanted(past, seconds_from_ns));
            sink.apply(Item::Past(entries));
        }
        _ => (),
    });
}

/// Splits these streams by session. Only the frames that name the session are decoded here, so that the slices are never
/// all held decoded.
fn by_session(streams: &[Vec<u8>]) -> HashMap<u128, Vec<&[u8]>> {
    let mut parts: HashMap<u128, Vec<&[u8]>> = HashMap::new();
    for part in streams.iter().flat_map(|stream| cut_at_segments(stream)) {
        let head = part.first_chunk().and_then(peek).and_then(|(len, _)| part.get(..len));
        each_item(head.unwrap_or_default(), |item| {
            if let Item::Segment(info) = item {
                parts.entry(info.session_id).or_default().push(part);
            }
        });
    }
    parts
}

/// Cuts a stream before each segment; damage and what follows it stay in one part.
fn cut_at_segments(stream: &[u8]) -> Vec<&[u8]> {
    let (mut parts, mut from, mut at) = (Vec::new(), 0, 0);
    while let Some((len, is_segment)) = stream.get(at..).and_then(<[u8]>::first_chunk).and_then(peek) {
        if is_segment && at > from {
            parts.push(&stream[from..at]);
            from = at;
        }
        at += len;
    }
    parts.push(&stream[from..]);
    parts
}

/// The first minute of each session whose seconds are all in this stream and the following ones; the very first if these
/// are the seconds of the first chunk.
fn seconds_from(stream: &[u8], are_all: bool) -> HashMap<u128, u64> {
    let (mut from_ns, mut session) = (HashMap::new(), None);
    each_item(stream, |item| match item {
        Item::Segment(info) => session = Some(info.session_id),
        Item::Past(entries) => {
            let second = entries.iter().filter_map(as_slice).find(|slice| is_second(slice));
            if let Some((session, second)) = session.zip(second).filter(|_| from_ns.len() < MAX_SESSIONS) {
                let minute_ns = second.from_ns.checked_next_multiple_of(MINUTE_NS).unwrap_or(u64::MAX);
                from_ns.entry(session).or_insert(if are_all { 0 } else { minute_ns });
            }
        }
        _ => (),
    });
    from_ns
}

/// The last chunk's end in a file, and its position.
fn find_last(file: &File) -> Option<(u64, ChunkEnd)> {
    let len = file.metadata().ok()?.len();
    let mut until = len;
    while until > len.saturating_sub(SEARCHED_BYTES) {
        let from = until.saturating_sub(PIECE_LEN);
        // One across the boundary is in the piece before it.
        let to = (until + CHUNK_END_LEN as u64 - 1).min(len);
        let mut bytes = vec![0; usize::try_from(to - from).ok()?];
        file.read_exact_at(&mut bytes, from).ok()?;
        if let Some((at, end)) = ChunkEnd::find_last(&bytes) {
            return is_sane(from + at as u64, &end).then_some((from + at as u64, end));
        }
        until = from;
    }
    None
}

/// The end of the previous chunk; `Some(None)` before the first. `None` if the chain is broken.
#[allow(clippy::option_option)] // broken and over are two things
fn previous_end(file: &File, (at, end): (u64, ChunkEnd)) -> Option<Option<(u64, ChunkEnd)>> {
    let at = at.checked_sub(end.back)?;
    if end.number == 0 {
        return (at == 0).then_some(None);
    }
    let mut bytes = [0; CHUNK_END_LEN];
    file.read_exact_at(&mut bytes, at).ok()?;
    let before = ChunkEnd::parse(&bytes)?;
    let follows =
        before.number.checked_add(1) == Some(end.number) && before.last_ns <= end.last_ns && is_sane(at, &before);
    follows.then_some(Some((at, before)))
}

/// Whether an end's lengths are plausible, so that each step goes back and reads nothing twice.
fn is_sane(at: u64, end: &ChunkEnd) -> bool {
    let own = if end.number == 0 { 0 } else { CHUNK_END_LEN as u64 };
    let least = end.summaries_len().saturating_add(own);
    end.back <= at && least <= end.back && end.totals_len.max(end.seconds_len).max(end.minutes_len) <= MAX_BYTES
}
