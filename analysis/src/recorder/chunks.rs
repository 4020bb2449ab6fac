//! Ends a recording's chunks: from time to time it writes a summary of everything so far, so that a reader can begin at that
//! place.

use gnntop_history::Digest;
use gnntop_wire::chunk::{ChunkEnd, put_chunk_end, put_summary};
use gnntop_wire::past::{PastEntry, put_past};
use gnntop_wire::{
    Anchor, Definition, Event, Item, SessionInfo, StreamReader, TrackId, put_anchor, put_compressed_definitions,
    put_segment,
};

/// Number of slices written at a time.
const AT_A_TIME: usize = 64;

/// A summary of what is recorded of one session.
#[derive(Default)]
pub(super) struct SessionSummary {
    digest: Digest,
    anchor: Option<Anchor>,
    /// The highest number of a step.
    last_step: u64,
    /// Finished slices, first as values, then as frames.
    pending: [Vec<PastEntry>; 2],
    frames: [Vec<u8>; 2],
}

/// For each session, what the frames at a chunk's end report.
pub(super) struct SummarisedSession<'a> {
    pub(super) info: &'a SessionInfo,
    pub(super) summary: &'a mut SessionSummary,
    /// Offset to add to its times to get the recording's.
    pub(super) offset_ns: i64,
}

impl SessionSummary {
    /// Keeps this many of the slowest steps in full.
    pub(super) fn with_slowest(steps: usize) -> Self {
        Self { digest: Digest::with_slowest(steps), ..Self::default() }
    }

    pub(super) fn begin(&mut self, info: &SessionInfo) {
        self.digest.apply(Item::Segment(info.clone()));
    }

    pub(super) fn define(&mut self, definitions: &[Definition]) {
        self.digest.apply(Item::Definitions(definitions.to_vec()));
    }

    pub(super) fn anchor(&mut self, anchor: Anchor) {
        self.anchor = Some(anchor);
        self.digest.apply(Item::Anchor(anchor));
    }

    pub(super) fn push(&mut self, track: TrackId, seq: u64, dropped: u64, event: &Event) {
        self.digest.push(track, seq, dropped, event);
        if let Event::Step(step) = event {
            self.last_step = self.last_step.max(step.step.0);
        }
    }

    /// Adds a summary of an earlier time as it is recorded.
    pub(super) fn resume(&mut self, frames: &[u8]) {
        let mut reader = StreamReader::new();
        reader.fill(frames);
        while let Some(item) = reader.next() {
            self.digest.apply(item);
            self.collect();
        }
    }

    /// Writes finished slices, many at a time.
    pub(super) fn collect(&mut self) {
        let closed = self.digest.take_closed();
        for (at, closed) in [closed.seconds, closed.minutes].into_iter().enumerate() {
            self.pending[at].extend(closed);
            if self.pending[at].len() >= AT_A_TIME {
                self.put_pending(at);
            }
        }
    }

    fn put_pending(&mut self, at: usize) {
        put_past(&mut self.frames[at], &self.pending[at]);
        self.pending[at].clear();
    }
}

/// The frames that end a chunk.
pub(super) struct ChunkSummaries {
    pub(super) bytes: Vec<u8>,
    end: ChunkEnd,
}

impl ChunkSummaries {
    /// The summary of everything recorded; `None` if nothing recorded has a time.
    pub(super) fn from_sessions(sessions: &mut [SummarisedSession<'_>]) -> Option<Self> {
        let (mut end, mut whole, mut slices) = (None::<ChunkEnd>, Vec::new(), [Vec::new(), Vec::new()]);
        for session in sessions {
            session.summary.collect();
            let told = session.put_totals(&mut whole);
            for (at, stream) in slices.iter_mut().enumerate() {
                session.put_slices(at, stream);
            }
            let end = end.get_or_insert(told);
            end.first_ns = end.first_ns.min(told.first_ns);
            end.last_ns = end.last_ns.max(told.last_ns);
            end.last_step = end.last_step.max(told.last_step);
        }
        let (mut bytes, mut end) = (Vec::new(), end?);
        end.totals_len = put_summary(&mut bytes, &whole);
        [end.seconds_len, end.minutes_len] = slices.map(|stream| put_summary(&mut bytes, &stream));
        Some(Self { bytes, end })
    }

    /// Size of the summary of everything so far, in bytes, without the finished slices.
    pub(super) fn totals_len(&self) -> u64 {
        self.end.totals_len
    }

    /// With the frame that says where the previous chunk ends, this many bytes before this chunk's summaries.
    pub(super) fn into_bytes(mut self, chunk_len: u64, number: u64) -> Vec<u8> {
        let back = chunk_len + self.end.summaries_len();
        put_chunk_end(&mut self.bytes, &ChunkEnd { back, number, ..self.end });
        self.bytes
    }
}

impl SummarisedSession<'_> {
    /// The publisher, what ids mean, figures over everything, and the unfinished slices.
    fn put_totals(&self, out: &mut Vec<u8>) -> ChunkEnd {
        let SessionSummary { digest, anchor, last_step, .. } = &*self.summary;
        put_segment(out, self.info);
        put_compressed_definitions(out, digest.definitions());
        anchor.iter().for_each(|anchor| put_anchor(out, anchor));
        let entries = digest.past_entries(Vec::new());
        put_past(out, &entries);
        let (mut end, common) = (ChunkEnd { last_step: *last_step, ..ChunkEnd::default() }, self.offset_ns);
        for past in &entries {
            if let PastEntry::Totals(whole) = past {
                end.first_ns = whole.first_ns.saturating_add_signed(common);
                end.last_ns = whole.last_ns.saturating_add_signed(common);
            }
        }
        end
    }

    fn put_slices(&mut self, at: usize, out: &mut Vec<u8>) {
        self.summary.put_pending(at);
        if !self.summary.frames[at].is_empty() {
            put_segment(out, self.info);
            out.append(&mut self.summary.frames[at]);
        }
    }
}
