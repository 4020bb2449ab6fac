//! Writes what a source yields to a recording.
//!
//! A session is flushed every few tens of milliseconds, in small blocks. Here a track's blocks are merged into one a
//! second and packed, which halves their size. Sequence numbers and drop counts are kept, so that a reader finds the
//! same gaps. Only whole frames are written, so the file of a recorder that is killed can be read.

use std::collections::BTreeMap;
use std::io::{self, Write};

use gnntop_history::PastWindow;
use gnntop_wire::past::PastEntry;
use gnntop_wire::{
    Anchor, BlockEncoder, BlockInfo, Definition, End, Event, Events, Item, TrackId, put_anchor,
    put_compressed_definitions, put_end, put_segment,
};

use super::chunks::SessionSummary;
use super::first_steps::{Decision, FirstSteps};
use super::options::RecorderOptions;
use super::segment_head::SegmentHead;
use super::skipped_marks::SkippedMarks;
use crate::stream::Sink;

/// Blocks are merged over this much of the stream's time.
const MERGE_NS: u64 = 1_000_000_000;
/// Tracks whose events are collected at a time; with more, blocks get smaller.
const MAX_TRACKS: usize = 512;
/// Definitions that are held back until the first event of their segment.
const MAX_DEFINITIONS_HELD: usize = 1 << 18;

/// The window has passed when the stream is this far beyond it, since tracks take turns.
const OVERLAP_NS: u64 = 2_000_000_000;
/// No track's count gets this high; a higher one is replaced by it, so that no sum overflows.
const HIGHEST_SEQ: u64 = 1 << 62;

/// A recording that is being written.
pub struct Recorder<W: Write> {
    pub(super) out: W,
    options: RecorderOptions,
    /// Complete frames that are ready to be written.
    ready: Vec<u8>,
    pub(super) head: Option<SegmentHead>,
    /// Whether something before the window was left out, so that this is not the session's beginning.
    start_cut: bool,
    skipped_marks: SkippedMarks,
    first_steps: FirstSteps,
    /// Definitions since the last block, which are written before the next one.
    defined: Vec<Definition>,
    past: PastWindow,
    tracks: BTreeMap<TrackId, Merging>, // in order, as one may continue another's steps
    /// The summary of everything recorded, if asked for.
    pub(super) summary: Option<Box<SessionSummary>>,
    merged_since_ns: u64,
    written_bytes: u64,
    events: u64,
    full: bool,
    is_past_window: bool,
    /// Whether other sessions' blocks come between, of tracks with the same ids.
    pub(super) is_among_others: bool,
    error: Option<io::Error>,
}

/// The events of one track since the last flush.
struct Merging {
    block: BlockEncoder,
    dropped: u64,
}

impl Merging {
    fn finish(&mut self, is_among_others: bool, out: &mut Vec<u8>) {
        self.block.finish(self.dropped, out);
        if is_among_others {
            self.block.begin_again();
        }
    }
}

impl<W: Write> Recorder<W> {
    /// A recorder that writes to `out`, in large pieces.
    pub fn new(out: W, options: RecorderOptions) -> Self {
        Self {
            out,
            past: PastWindow::new(options.window_ns.clone()),
            options,
            ready: Vec::new(),
            head: None,
            start_cut: false,
            skipped_marks: SkippedMarks::default(),
            first_steps: FirstSteps::default(),
            defined: Vec::new(),
            tracks: BTreeMap::new(),
            summary: None,
            merged_since_ns: 0,
            written_bytes: 0,
            events: 0,
            full: false,
            is_past_window: false,
            is_among_others: false,
            error: None,
        }
    }

    /// Bytes written so far.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Events recorded so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Marks from before the window, which are counted but not recorded.
    pub fn skipped_marks(&self) -> u64 {
        self.skipped_marks.total()
    }

    /// Whether nothing more will be recorded: the size is reached, the window has passed, or writing failed.
    pub fn is_done(&self) -> bool {
        self.full || self.is_past_window || self.error.is_some()
    }

    /// Whether recording stopped because of its size.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Ends all blocks and writes everything. Call it every second, so that a crash loses little.
    ///
    /// # Errors
    /// The first error in writing, now or before.
    pub fn flush(&mut self) -> io::Result<()> {
        self.end_past();
        self.release();
        self.end_blocks();
        self.write_ready();
        if let Some(error) = self.error.take() {
            self.full = true;
            return Err(error);
        }
        self.out.flush()
    }

    /// Makes the next block of each track readable without those before it. To be called after a flush.
    pub(super) fn begin_again(&mut self) {
        self.tracks.values_mut().for_each(|merging| merging.block.begin_again());
    }

    fn put_defined(&mut self) {
        put_compressed_definitions(&mut self.ready, &self.defined);
        self.defined.clear();
    }

    fn end_blocks(&mut self) {
        self.put_defined();
        for merging in self.tracks.values_mut() {
            merging.finish(self.is_among_others, &mut self.ready);
        }
        self.put_skipped_marks();
        if self.options.is_worth_writing(self.ready.len()) {
            self.write_ready();
        }
    }

    fn write_ready(&mut self) {
        if self.ready.is_empty() || self.full || self.error.is_some() {
            return self.ready.clear();
        }
        let after = self.written_bytes + self.ready.len() as u64;
        if after > self.options.max_bytes {
            self.full = true;
        } else {
            self.error = self.out.write_all(&self.ready).err();
            self.written_bytes = after;
        }
        self.ready.clear();
    }

    /// Notes that the stream has reached `t_ns`: blocks that have been collected long enough end.
    fn reach(&mut self, t_ns: u64) {
        if t_ns.saturating_sub(self.merged_since_ns) >= MERGE_NS {
            self.end_blocks();
            self.summary.iter_mut().for_each(|sums| sums.collect());
            self.merged_since_ns = t_ns;
        }
    }

    /// Whether `t_ns` is to be recorded.
    fn is_wanted(&mut self, t_ns: u64) -> bool {
        self.is_past_window |= t_ns > self.options.window_ns.end().saturating_add(OVERLAP_NS);
        self.start_cut |= t_ns < *self.options.window_ns.start();
        self.options.window_ns.contains(&t_ns)
    }

    /// Writes the segment's head before the first recorded part of it.
    fn put_head(&mut self) {
        let Some(head) = self.head.as_mut().filter(|head| !head.written) else { return };
        if self.start_cut {
            // Only a segment 0 means that the session started here.
            head.info.segment = head.info.segment.max(1);
        }
        put_segment(&mut self.ready, &head.info);
        put_compressed_definitions(&mut self.ready, &head.take_definitions());
        self.summary.iter_mut().for_each(|sums| sums.begin(&head.info));
        head.written = true;
    }

    /// Reports the marks before the window, once the segment's head is written.
    fn put_skipped_marks(&mut self) {
        if self.head.as_ref().is_some_and(|head| head.written) {
            let news = self.skipped_marks.take_facts(*self.options.window_ns.start());
            self.summary.iter_mut().for_each(|sums| sums.define(&news));
            put_compressed_definitions(&mut self.ready, &news);
        }
    }

    fn define(&mut self, definitions: Vec<Definition>) {
        self.skipped_marks.define(&definitions);
        self.first_steps.define(&definitions);
        self.summary.iter_mut().for_each(|sums| sums.define(&definitions));
        match &mut self.head {
            Some(head) if !head.written => {
                definitions.into_iter().for_each(|definition| head.define(definition));
                if head.len() > MAX_DEFINITIONS_HELD {
                    self.put_head();
                }
            }
            _ => {
                self.defined.extend(definitions);
                if self.defined.len() > MAX_DEFINITIONS_HELD {
                    self.put_defined();
                }
            }
        }
    }

    fn merge(&mut self, info: BlockInfo, events: Events<'_>) {
        self.end_past();
        self.reach(info.base_ns);
        let first_seq = info.first_seq.min(HIGHEST_SEQ);
        for (seq, event) in (first_seq..).zip(events) {
            if self.is_wanted(event.t_ns()) {
                self.begin(info.track, info.dropped, seq, &event);
            } else if event.t_ns() < *self.options.window_ns.start() {
                self.skipped_marks.note(&event);
            }
        }
    }

    /// Records an event of the window, unless it belongs to a step that began before it.
    fn begin(&mut self, track: TrackId, dropped: u64, seq: u64, event: &Event) {
        match self.first_steps.decide(track, seq, event, *self.options.window_ns.start()) {
            Decision::Delayed => (),
            Decision::Cut(held) => {
                self.start_cut = true;
                held.iter().for_each(|(_, event)| self.skipped_marks.note(event));
            }
            Decision::Recorded(held) => {
                self.put_head();
                held.iter().for_each(|(seq, event)| self.push(track, dropped, *seq, event));
                self.push(track, dropped, seq, event);
            }
        }
    }

    /// Records what was held back, although no step has ended.
    fn release(&mut self) {
        let held: Vec<_> = self.first_steps.release().collect();
        for (track, events) in held {
            self.put_head();
            let dropped = self.tracks.get(&track).map_or(0, |merging| merging.dropped);
            events.iter().for_each(|(seq, event)| self.push(track, dropped, *seq, event));
        }
    }

    fn put_anchor(&mut self, anchor: &Anchor) {
        if self.is_wanted(anchor.monotonic_ns) {
            self.put_head();
            self.reach(anchor.monotonic_ns);
            put_anchor(&mut self.ready, anchor);
            self.summary.iter_mut().for_each(|sums| sums.anchor(*anchor));
        }
    }

    fn put_end(&mut self, end: &End) {
        self.end_past();
        self.release();
        if self.is_wanted(end.t_ns) {
            self.put_head();
            self.end_blocks();
            put_end(&mut self.ready, end);
        }
    }

    /// A summary of the time before the stream's events belongs to a window as far as the window reaches back.
    fn keep_past(&mut self, entries: Vec<PastEntry>) {
        let mut frames = Vec::new();
        self.past.push(entries, &mut frames);
        self.put_past(frames);
    }

    /// The past is complete: events follow, or nothing.
    fn end_past(&mut self) {
        let mut frames = Vec::new();
        self.past.finish(&mut frames);
        self.put_past(frames);
    }

    fn put_past(&mut self, mut frames: Vec<u8>) {
        if !frames.is_empty() {
            self.put_past_head();
            self.summary.iter_mut().for_each(|sums| sums.resume(&frames));
            self.ready.append(&mut frames);
        }
    }

    fn put_past_head(&mut self) {
        self.start_cut |= *self.options.window_ns.start() > 0;
        self.put_head();
    }

    fn push(&mut self, track: TrackId, dropped: u64, seq: u64, event: &Event) {
        if self.tracks.len() >= MAX_TRACKS && !self.tracks.contains_key(&track) {
            self.end_blocks();
            self.tracks.clear();
        }
        let fresh = || Merging { block: BlockEncoder::packed(track), dropped: 0 };
        let merging = self.tracks.entry(track).or_insert_with(fresh);
        if merging.block.next_seq() != seq || merging.block.is_full() {
            put_compressed_definitions(&mut self.ready, &self.defined);
            self.defined.clear();
            merging.finish(self.is_among_others, &mut self.ready);
            merging.block.continue_from(seq);
        }
        merging.dropped = dropped;
        if merging.block.push(event) {
            self.events += 1;
            self.summary.iter_mut().for_each(|sums| sums.push(track, seq, dropped, event));
        }
    }
}

impl<W: Write> Sink for Recorder<W> {
    fn apply(&mut self, item: Item<'_>) {
        match item {
            Item::Segment(info) => {
                if self.past.is_waiting() {
                    // With the meaning of its ids.
                    self.put_past_head();
                }
                self.end_blocks();
                self.head = Some(SegmentHead::new(self.head.take(), info));
            }
            Item::Definitions(definitions) => self.define(definitions),
            Item::Anchor(anchor) => self.put_anchor(&anchor),
            Item::Block(info, events) => self.merge(info, events),
            Item::Past(entries) => self.keep_past(entries),
            Item::End(end) => self.put_end(&end),
            // Damage cannot be written again; the sequence numbers around it show that events are missing.
            _ => (),
        }
    }

    /// What was written cannot be undone; the other stream's segments follow it.
    fn reset(&mut self) {
        self.end_past();
        self.past = PastWindow::new(self.options.window_ns.clone());
        self.end_blocks();
    }
}

#[cfg(test)]
mod tests {
    use gnntop_wire::{Fact, NameId, NameKind, SessionInfo, StreamReader};

    use super::*;
    use crate::source::fixture::{self, CollectedItems, START_NS, STEP_NS};

    fn feed(sink: &mut dyn Sink, bytes: &[u8]) {
        let mut reader = StreamReader::new();
        reader.fill(bytes);
        reader.finish();
        while let Some(item) = reader.next() {
            sink.apply(item);
        }
    }

    fn record(bytes: &[u8], options: RecorderOptions) -> Vec<u8> {
        let mut out = Vec::new();
        let mut recorder = Recorder::new(&mut out, options);
        feed(&mut recorder, bytes);
        recorder.flush().unwrap();
        out
    }

    fn collect(bytes: &[u8]) -> CollectedItems {
        let mut heard = CollectedItems::default();
        feed(&mut heard, bytes);
        heard
    }

    #[test]
    fn names_are_written_for_window_in_later_chunk() {
        let info = SessionInfo { session_id: 7, ..SessionInfo::default() };
        let names = |bytes: &[u8]| {
            let mut names = Vec::new();
            gnntop_fixtures::each_item(bytes, |item| {
                if let Item::Definitions(definitions) = item {
                    names.extend(definitions.into_iter().filter_map(|definition| match definition {
                        Definition::Name { id, text, .. } => Some((id.0, text)),
                        _ => None,
                    }));
                }
            });
            names
        };
        let name = |text: &str| Definition::Name { id: NameId(1), kind: NameKind::Phase, text: text.to_owned() };
        let mut out = Vec::new();
        let options = RecorderOptions { window_ns: 1000..=u64::MAX, ..RecorderOptions::default() };
        let mut recorder = Recorder::new(&mut out, options);
        for definitions in [vec![name("forwards")], vec![name("forward")], Vec::new()] {
            recorder.apply(Item::Segment(info.clone()));
            recorder.apply(Item::Definitions(definitions));
        }
        recorder.apply(Item::Anchor(Anchor { monotonic_ns: 2000, wall_ns: 2000, boot_ns: 2000 }));
        recorder.flush().unwrap();
        assert_eq!(names(&out), [(1, "forward".to_owned())]);
    }

    #[test]
    fn recording_has_same_events_in_fewer_bytes() {
        let session = fixture::recording(1000, 2);
        let recorded = record(&session, RecorderOptions::default());
        let (before, after) = (collect(&session), collect(&recorded));
        assert_eq!(before.events, after.events);
        assert_eq!((before.segments, before.definitions), (after.segments, after.definitions));
        assert_eq!((before.anchors, before.ends), (after.anchors, after.ends));
        assert_eq!((after.gaps, after.damages), (0, 0));
        assert!(recorded.len() * 2 < session.len(), "{} of {} bytes", recorded.len(), session.len());
    }

    #[test]
    fn recording_keeps_gaps_and_drops() {
        let mut session = fixture::segment("pna", 1, 0);
        session.extend(fixture::steps(0..10));
        let mut block = BlockEncoder::new(fixture::TRACK);
        block.continue_from(100);
        let mark = gnntop_wire::Mark { name: fixture::FORWARD, t_ns: START_NS, ..Default::default() };
        block.push(&Event::Mark(mark));
        block.finish(7, &mut session);
        let recorded = record(&session, RecorderOptions::default());
        assert_eq!(collect(&recorded).gaps, 1);
        let mut reader = StreamReader::new();
        reader.fill(&recorded);
        let mut blocks = Vec::new();
        while let Some(item) = reader.next() {
            if let Item::Block(info, _) = item {
                blocks.push((info.first_seq, info.count, info.dropped));
            }
        }
        assert_eq!(blocks, [(0, 20, 0), (100, 1, 7)]);
    }

    #[test]
    fn skipped_marks_are_facts_of_recording() {
        let mut session = fixture::segment("pna", 1, 0);
        let [collection, checkpoint] = [77, 78].map(gnntop_wire::NameId);
        for (id, text) in [(collection, "gc"), (checkpoint, "checkpoint")] {
            let name = Definition::Name { id, kind: gnntop_wire::NameKind::Text, text: text.to_owned() };
            gnntop_wire::put_definitions(&mut session, [&name]);
        }
        let mut block = BlockEncoder::new(fixture::TRACK);
        block.push(&Event::Mark(gnntop_wire::Mark { name: checkpoint, t_ns: START_NS, ..Default::default() }));
        for second in 0..5 {
            let mark =
                gnntop_wire::Mark { name: collection, t_ns: START_NS + second * 1_000_000_000, ..Default::default() };
            block.push(&Event::Mark(mark));
        }
        block.finish(0, &mut session);
        let window_ns = START_NS + 2_500_000_000..=u64::MAX;
        let mut out = Vec::new();
        let mut recorder = Recorder::new(&mut out, RecorderOptions { window_ns, ..Default::default() });
        feed(&mut recorder, &session);
        recorder.flush().unwrap();
        assert_eq!((recorder.skipped_marks(), recorder.events()), (4, 2));
        drop(recorder);
        let mut reader = StreamReader::new();
        reader.fill(&out);
        reader.finish();
        let mut facts = Vec::new();
        while let Some(item) = reader.next() {
            if let Item::Definitions(definitions) = item {
                facts.extend(definitions.into_iter().filter(|it| matches!(it, Definition::Fact(_))));
            }
        }
        let note = |key: &str, text: &str| Definition::Fact(Fact::Note { key: key.to_owned(), text: text.to_owned() });
        let said = [
            note("marks before this part", "gc: 3, checkpoint: 1"),
            note("newest marks before this part", "gc: 500 ms before, checkpoint: 2.50 s before"),
        ];
        assert_eq!(facts, said);
    }

    #[test]
    fn only_the_window_is_recorded() {
        let window_ns = START_NS + 300 * STEP_NS + 1..=START_NS + 400 * STEP_NS;
        let recorded = record(&fixture::recording(1000, 7), RecorderOptions { window_ns, ..Default::default() });
        let heard = collect(&recorded);
        assert_eq!(heard.steps(), (301..=400).collect::<Vec<_>>());
        assert_eq!(heard.segments[0].segment, 1, "not the session's beginning");
        assert_eq!((heard.gaps, heard.ends.len(), heard.definitions.len()), (0, 0, 2));
        assert!(heard.anchors.iter().all(|anchor| anchor.monotonic_ns > START_NS + 300 * STEP_NS));
    }

    #[test]
    fn passed_window_ends_recording() {
        let window_ns = 0..=START_NS + 400 * STEP_NS;
        let mut recorder = Recorder::new(Vec::new(), RecorderOptions { window_ns, ..Default::default() });
        feed(&mut recorder, &fixture::recording(400, 10));
        assert!(!recorder.is_done());
        feed(&mut recorder, &fixture::steps(400..500));
        assert!(!recorder.is_done(), "another track may be behind");
        feed(&mut recorder, &fixture::steps(601..602));
        assert!(recorder.is_done() && !recorder.is_full());
        recorder.flush().unwrap();
        assert_eq!(collect(&recorder.out).steps().len(), 400);
    }

    #[test]
    fn recording_stays_below_max_bytes_and_readable() {
        let record_up_to = |max_bytes| {
            let mut recorder = Recorder::new(Vec::new(), RecorderOptions { max_bytes, ..Default::default() });
            feed(&mut recorder, &fixture::segment("pna", 1, 0));
            for at in 0..20_000 {
                feed(&mut recorder, &fixture::steps(at..at + 1));
            }
            recorder.flush().unwrap();
            recorder
        };
        let whole = record_up_to(u64::MAX);
        assert!(!whole.is_full());
        let max_bytes = whole.out.len() as u64 / 2;
        let half = record_up_to(max_bytes);
        assert!(half.is_full() && half.is_done());
        assert_eq!(half.written_bytes(), half.out.len() as u64);
        assert!(half.written_bytes() <= max_bytes);
        let heard = collect(&half.out);
        assert!(heard.steps().len() < 20_000, "{}", heard.steps().len());
        assert_eq!((heard.gaps, heard.damages), (0, 0));
    }

    #[test]
    fn huge_sequence_numbers_are_harmless() {
        let mut session = fixture::segment("pna", 1, 0);
        let mut block = BlockEncoder::new(fixture::TRACK);
        block.continue_from(u64::MAX - 1);
        let mark = gnntop_wire::Mark { name: fixture::FORWARD, t_ns: START_NS, ..Default::default() };
        block.push(&Event::Mark(mark));
        block.finish(0, &mut session);
        let mut recorder = Recorder::new(Vec::new(), RecorderOptions::default());
        feed(&mut recorder, &session);
        recorder.flush().unwrap();
        assert_eq!(recorder.events(), 1);
    }

    /// A disk that is full after this many bytes.
    struct FullDisk(usize);

    impl Write for FullDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 < bytes.len() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0 -= bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn write_error_is_returned_once() {
        let mut recorder = Recorder::new(FullDisk(100), RecorderOptions::default());
        feed(&mut recorder, &fixture::recording(1000, 10));
        assert_eq!(recorder.flush().unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(recorder.is_done());
        assert!(recorder.flush().is_ok());
    }

    #[test]
    fn million_tracks_use_bounded_memory() {
        let mut recorder = Recorder::new(Vec::new(), RecorderOptions::default());
        feed(&mut recorder, &fixture::segment("pna", 1, 0));
        let mut bytes = Vec::new();
        for track in 0..20_000 {
            bytes.clear();
            let mut block = BlockEncoder::new(TrackId(track));
            let mark = gnntop_wire::Mark { name: fixture::FORWARD, t_ns: START_NS, ..Default::default() };
            block.push(&Event::Mark(mark));
            block.finish(0, &mut bytes);
            feed(&mut recorder, &bytes);
            assert!(recorder.tracks.len() <= MAX_TRACKS);
        }
        recorder.flush().unwrap();
        assert_eq!(collect(&recorder.out).events.len(), 20_000);
    }
}
