//! Writes all sessions of a run to one recording: a piece of each in turn, preceded by its session's head, by which a
//! reader distinguishes them.

use std::io::{self, Write};

use gnntop_wire::{Item, SessionInfo, put_segment};

use super::chunk_limit::ChunkLimit;
use super::chunks::{ChunkSummaries, SessionSummary, SummarisedSession};
use super::options::RecorderOptions;
use super::session::Recorder;
use crate::stream::{MAX_SESSIONS, Sink, align};

/// A recording of a run, or of a session that is not part of one.
pub struct RunRecorder<W: Write> {
    out: W,
    options: RecorderOptions,
    sessions: Vec<RecordedSession>,
    /// The session of the items that come now.
    current: Option<usize>,
    /// The session whose piece was written last.
    last: Option<usize>,
    written_bytes: u64,
    due: ChunkLimit,
    is_full: bool,
    error: Option<io::Error>,
    left_out: u64,
}

/// One session of the recording.
struct RecordedSession {
    /// The head of its newest segment; `None` if the stream began within one.
    info: Option<SessionInfo>,
    /// The head when a piece was last written.
    written: Option<SessionInfo>,
    recorder: Recorder<Vec<u8>>,
    /// Offset to add to its times to get the window's.
    offset_ns: i64,
}

impl RecordedSession {
    /// Its summary; `None` before anything of it was written.
    fn summarise(&mut self) -> Option<SummarisedSession<'_>> {
        let sums = self.recorder.summary.as_mut()?;
        Some(SummarisedSession { info: self.written.as_ref()?, summary: sums, offset_ns: self.offset_ns })
    }
}

impl<W: Write> RunRecorder<W> {
    /// A recorder that writes to `out`. The options' window is by the clock of the first session seen.
    pub fn new(out: W, options: RecorderOptions) -> Self {
        Self {
            out,
            due: ChunkLimit::new(&options),
            options,
            sessions: Vec::new(),
            current: None,
            last: None,
            written_bytes: 0,
            is_full: false,
            error: None,
            left_out: 0,
        }
    }

    /// Bytes written so far.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Events recorded so far, of all sessions.
    pub fn events(&self) -> u64 {
        self.sessions.iter().map(|part| part.recorder.events()).sum()
    }

    /// Marks from before the window, of all sessions, which are counted and not recorded.
    pub fn skipped_marks(&self) -> u64 {
        self.sessions.iter().map(|part| part.recorder.skipped_marks()).sum()
    }

    /// Sessions recorded so far.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Sessions for which there was no room.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The id of the session whose items come now; `None` before its head.
    pub fn current_session(&self) -> Option<u128> {
        Some(self.sessions[self.current?].info.as_ref()?.session_id)
    }

    /// Whether recording stopped because of its size.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Whether nothing more will be recorded: the size is reached, the window of all sessions has passed, or writing failed.
    pub fn is_done(&self) -> bool {
        let has_passed = !self.sessions.is_empty() && self.sessions.iter().all(|part| part.recorder.is_done());
        self.is_full || self.error.is_some() || has_passed
    }

    /// Ends all blocks and writes everything. Call it every second, so that a crash loses little.
    ///
    /// # Errors
    /// The first error in writing, now or before.
    pub fn flush(&mut self) -> io::Result<()> {
        self.write_all()?;
        self.end_chunk()?;
        if let Some(error) = self.error.take() {
            self.is_full = true;
            return Err(error);
        }
        self.out.flush()
    }

    /// Makes what follows readable without what was written so far. To be called after [`RunRecorder::flush`].
    pub fn begin_part(&mut self) {
        self.sessions.iter_mut().for_each(|part| part.recorder.begin_again());
    }

    fn write_all(&mut self) -> io::Result<()> {
        for at in 0..self.sessions.len() {
            // Writing to memory cannot fail.
            self.sessions[at].recorder.flush()?;
            self.write_piece(at);
        }
        Ok(())
    }

    /// Ends the chunk if it is long enough: writes all events held back, then the summary of everything so far.
    fn end_chunk(&mut self) -> io::Result<()> {
        if !self.due.is_reached(self.written_bytes) || self.is_full || self.error.is_some() {
            return Ok(());
        }
        self.write_all()?;
        let mut sessions: Vec<SummarisedSession<'_>> =
            self.sessions.iter_mut().filter_map(RecordedSession::summarise).collect();
        let Some(ending) = ChunkSummaries::from_sessions(&mut sessions) else { return Ok(()) };
        let chunk_len = self.due.len(self.written_bytes);
        let (summaries_len, whole_len) = (ending.bytes.len() as u64, ending.totals_len());
        let bytes = ending.into_bytes(chunk_len, self.due.ended());
        if self.written_bytes + bytes.len() as u64 > self.options.max_bytes {
            // Events are worth more than their summary.
            self.due.stop();
            return Ok(());
        }
        self.write(&[], &bytes);
        // A reader that begins here must first see which session the next piece is of, and knows no block before it.
        self.last = None;
        self.begin_part();
        self.due.end(chunk_len, summaries_len, whole_len);
        Ok(())
    }

    /// Writes these bytes, unless the recording would get too large.
    fn write(&mut self, head: &[u8], piece: &[u8]) {
        let after = self.written_bytes + (head.len() + piece.len()) as u64;
        if after > self.options.max_bytes {
            self.is_full = true;
        }
        if self.is_full || self.error.is_some() {
            return;
        }
        self.error = self.out.write_all(head).and_then(|()| self.out.write_all(piece)).err();
        self.written_bytes = after;
    }

    /// Writes what one session has ready, preceded by its head if the last piece was another session's.
    fn write_piece(&mut self, at: usize) {
        let part = &mut self.sessions[at];
        let piece = std::mem::take(&mut part.recorder.out);
        if piece.is_empty() || self.is_full || self.error.is_some() {
            return;
        }
        let mut head = Vec::new();
        if let Some(info) = part.written.as_ref().filter(|_| self.last != Some(at)) {
            put_segment(&mut head, info);
        }
        let written = part.recorder.head.as_ref().map(|head| head.info.clone());
        part.written = written.or_else(|| part.info.clone());
        self.last = Some(at);
        self.write(&head, &piece);
    }

    /// Finds the session that begins, or adds it.
    fn begin(&mut self, info: &SessionInfo) {
        let known =
            |part: &RecordedSession| part.info.as_ref().is_some_and(|known| known.session_id == info.session_id);
        self.current = self.sessions.iter().position(known);
        if self.current.is_none() && self.sessions.len() >= MAX_SESSIONS {
            self.left_out += 1;
            return;
        }
        if self.current.is_none() {
            // Items before it are written first: it may be a later start of the same run.
            self.error = self.write_all().err().or(self.error.take());
            self.begin_part();
            let reference = self.sessions.iter().find_map(|part| part.info.as_ref());
            let offset_ns = reference.map_or(0, |reference| align(info, reference).offset_ns);
            self.add_session(offset_ns);
        }
        if let Some(at) = self.current {
            self.sessions[at].info = Some(info.clone());
        }
    }

    /// Adds a session whose times plus `offset_ns` are the window's.
    fn add_session(&mut self, offset_ns: i64) {
        let own = |t_ns: u64| match t_ns {
            // An open end stays open.
            0 | u64::MAX => t_ns,
            bound => bound.saturating_add_signed(offset_ns.saturating_neg()),
        };
        let window = &self.options.window_ns;
        let options = RecorderOptions {
            window_ns: own(*window.start())..=own(*window.end()),
            max_bytes: u64::MAX,
            ..self.options
        };
        let mut recorder = Recorder::new(Vec::new(), options);
        recorder.summary = self.due.is_on().then(|| Box::new(SessionSummary::with_slowest(self.options.slowest)));
        self.sessions.push(RecordedSession { info: None, written: None, recorder, offset_ns });
        let is_among_others = self.sessions.len() > 1;
        self.sessions.iter_mut().for_each(|part| part.recorder.is_among_others = is_among_others);
        self.current = Some(self.sessions.len() - 1);
    }
}

impl<W: Write> Sink for RunRecorder<W> {
    fn apply(&mut self, item: Item<'_>) {
        if let Item::Segment(info) = &item {
            self.begin(info);
        } else if self.sessions.is_empty() {
            self.add_session(0);
        }
        let Some(at) = self.current else { return };
        let recorder = &mut self.sessions[at].recorder;
        let before = recorder.events();
        recorder.apply(item);
        self.due.add(recorder.events() - before);
        if self.options.is_worth_writing(recorder.out.len()) || self.due.has_enough_events() {
            self.write_piece(at);
            // Writing to memory cannot fail.
            let _ = self.end_chunk();
        }
    }

    /// What was written cannot be undone; the other stream's segments follow it.
    fn reset(&mut self) {
        self.sessions.iter_mut().for_each(|part| part.recorder.reset());
    }

    fn select_session(&mut self, session_id: u128) {
        let is_it = |part: &RecordedSession| part.info.as_ref().is_some_and(|info| info.session_id == session_id);
        self.current = self.sessions.iter().position(is_it);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::Run;
    use crate::source::fixture::CollectedItems;
    use gnntop_fixtures::{MS, ParallelRun, SECOND, START_NS, TrainingRun, each_item};

    fn recorded(streams: &[Vec<u8>], options: RecorderOptions) -> Vec<u8> {
        let mut out = Vec::new();
        let mut recorder = RunRecorder::new(&mut out, options);
        streams.iter().for_each(|stream| each_item(stream, |item| recorder.apply(item)));
        recorder.flush().unwrap();
        out
    }

    fn steps(run: &Run) -> Vec<(u32, u64)> {
        run.ranks().all().iter().map(|rank| (rank.place.rank, rank.store.steps().total())).collect()
    }

    fn run_of(bytes: &[u8]) -> Run {
        let mut run = Run::default();
        each_item(bytes, |item| run.apply(item));
        run
    }

    #[test]
    fn interleaved_sessions_are_separated() {
        let parallel = ParallelRun { ranks: 3, ..ParallelRun::default() };
        let mut out = Vec::new();
        let mut recorder = RunRecorder::new(&mut out, RecorderOptions::default());
        // Each session item by item, with the others in between, written from time to time.
        let mut streams: Vec<Vec<Vec<u8>>> = parallel.sessions().iter().map(|stream| frames(stream)).collect();
        let ids: Vec<u128> = (0..3).map(|rank| parallel.info(rank).session_id).collect();
        let mut turn = 0;
        while streams.iter().any(|stream| !stream.is_empty()) {
            let at = turn % 3;
            recorder.select_session(ids[at]);
            let end = streams[at].len().min(2);
            let rest = streams[at].split_off(end);
            let frames = std::mem::replace(&mut streams[at], rest);
            frames.iter().for_each(|frame| each_item(frame, |item| recorder.apply(item)));
            if turn % 7 == 0 {
                recorder.flush().unwrap();
            }
            turn += 1;
        }
        recorder.flush().unwrap();
        assert_eq!(recorder.sessions(), 3);
        let run = run_of(&out);
        assert_eq!(steps(&run), [(0, 60), (1, 60), (2, 60)]);
        assert!(run.members().iter().all(|member| member.store.losses().is_complete()), "{:?}", run.notes());
        let alone = run_of(&parallel.session(1));
        let same = |run: &Run| run.ranks().get(1).map(|rank| rank.store.percentile("step", 0.5));
        assert_eq!(same(&run), same(&alone));
    }

    /// The stream cut at the ends of frames, which are found by how much another item needs.
    fn frames(stream: &[u8]) -> Vec<Vec<u8>> {
        let count = |len: usize| {
            let mut items = 0;
            each_item(&stream[..len], |item| items += usize::from(!matches!(item, Item::Damage(_))));
            items
        };
        let total = count(stream.len());
        let mut cuts = vec![0];
        for items in 1..=total {
            let (mut low, mut high) = (cuts[cuts.len() - 1], stream.len());
            while low < high {
                let middle = low + (high - low) / 2;
                if count(middle) >= items { high = middle } else { low = middle + 1 }
            }
            cuts.push(low);
        }
        cuts.windows(2).map(|cut| stream[cut[0]..cut[1]].to_vec()).collect()
    }

    #[test]
    fn concatenated_rank_recordings_are_a_run() {
        let run = run_of(&recorded(&ParallelRun::default().sessions(), RecorderOptions::default()));
        assert_eq!(steps(&run), [(0, 60), (1, 60)]);
    }

    #[test]
    fn the_window_is_on_each_sessions_own_clock() {
        let ahead = 3600 * SECOND as i64;
        let parallel = ParallelRun { elsewhere: vec![(1, ahead, Some(MS))], ..ParallelRun::default() };
        let from = START_NS + 1000 * MS;
        let options = RecorderOptions { window_ns: from..=from + 400 * MS, ..RecorderOptions::default() };
        let run = run_of(&recorded(&parallel.sessions(), options));
        let counts = steps(&run);
        assert_eq!(counts.len(), 2);
        assert!(counts.iter().all(|(_, steps)| (8..=12).contains(steps)), "{counts:?}");
    }

    #[test]
    fn skipped_marks_are_counted_per_rank() {
        let options = RecorderOptions { window_ns: START_NS + 1..=u64::MAX, ..RecorderOptions::default() };
        let run = run_of(&recorded(&gnntop_fixtures::pipeline::PipelineRun::default().sessions(), options));
        let ranks = run.ranks();
        assert_eq!(ranks.all().len(), 4);
        for rank in ranks.all() {
            let facts = rank.store.session().facts();
            let said = facts.iter().find(|(key, _)| key.title() == "marks before this part");
            assert!(said.is_some_and(|(_, said)| said.text().contains("micro-batches: 1")), "{said:?}");
        }
    }

    #[test]
    fn first_step_of_each_rank_is_complete() {
        let from = START_NS + 1010 * MS;
        let options = RecorderOptions { window_ns: from..=u64::MAX, ..RecorderOptions::default() };
        let run = run_of(&recorded(&ParallelRun::default().sessions(), options));
        let ranks = run.ranks();
        assert_eq!(ranks.all().len(), 2);
        for rank in ranks.all() {
            let first = rank.store.steps().all().next().unwrap();
            assert!(first.start_ns() >= from && first.start_ns() < from + 100 * MS, "{}", first.start_ns());
            assert!(rank.store.losses().is_complete(), "{:?}", rank.store.losses());
        }
    }

    #[test]
    fn run_recorder_of_one_session_equals_recorder() {
        let stream = TrainingRun::default().bytes();
        let (mut alone, mut heard) = (CollectedItems::default(), CollectedItems::default());
        each_item(&stream, |item| alone.apply(item));
        each_item(&recorded(&[stream], RecorderOptions::default()), |item| heard.apply(item));
        assert_eq!((heard.segments.len(), heard.steps()), (1, alone.steps()));
        assert_eq!(heard.events.len(), alone.events.len());
    }

    #[test]
    fn max_bytes_limits_all_sessions_together() {
        let options = RecorderOptions { max_bytes: 3000, ..RecorderOptions::default() };
        let out = recorded(&ParallelRun { ranks: 4, ..ParallelRun::default() }.sessions(), options);
        assert!(!out.is_empty() && out.len() <= 3000, "{}", out.len());
    }
}
