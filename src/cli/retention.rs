//! `--keep` and `--slow`: a recording that stays small. When it gets too large, its newest part is copied after a
//! summary of everything before it, and the copy replaces it. The copy is made a little at a time while the recording
//! continues.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use gnntop_analysis::figures;
use gnntop_analysis::recorder::{RecorderOptions, RunRecorder};
use gnntop_analysis::source::{Recording, Source};
use tempfile::NamedTempFile;

use super::new_file::NewFile;
use super::source_recorder::SourceRecorder;

/// Smallest size: below it, summaries take more than events.
const LEAST: u64 = 16 << 20;
/// Most steps that `--slow` keeps.
const MOST_SLOWEST: u32 = 10_000;
/// How long to copy between two looks at the session.
const BUDGET: Duration = Duration::from_millis(100);
/// The rest is copied at once when it is at most this many bytes.
const LITTLE: u64 = 1 << 20;

/// Bounds a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RetentionLimits {
    /// The size that it stays below, in bytes; with `None` only its newest events are bounded.
    pub(super) keep: Option<u64>,
    /// Steps to keep with all their spans, the slowest.
    pub(super) slowest: usize,
}

impl RetentionLimits {
    /// What `--keep` and `--slow` say; `None` without either.
    pub(super) fn new(keep: Option<u64>, slowest: Option<u32>) -> Option<Self> {
        let limits = Self { keep, slowest: slowest.unwrap_or(0) as usize };
        (keep.is_some() || slowest.is_some()).then_some(limits)
    }
}

/// Keeps a recording within its limits.
pub(super) struct Retention {
    limits: RetentionLimits,
    /// The size, or what the newest events may take.
    keep: u64,
    /// A copy begins when the recording has this many bytes.
    begin_at: u64,
    /// How long to copy between two looks at the session.
    budget: Duration,
    copy: Option<PartialCopy>,
}

/// The newest part of a recording, on its way into a new file.
struct PartialCopy {
    from: PathBuf,
    source: Recording,
    /// How far the recording was opened, in bytes.
    until: u64,
    recorder: RunRecorder<File>,
    draft: NamedTempFile,
}

/// Reads the size of `--keep`.
pub(super) fn parse_size(text: &str) -> Result<u64, String> {
    let keep = super::quantities::parse_bytes(text)?;
    match keep >= LEAST {
        true => Ok(keep),
        false => Err(format!("give {} or more", figures::bytes(LEAST as f64))),
    }
}

/// Reads the number of `--slow`.
pub(super) fn parse_slowest(text: &str) -> Result<u32, String> {
    let steps = text.parse().ok().filter(|steps| (1..=MOST_SLOWEST).contains(steps));
    steps.ok_or_else(|| format!("give a number of steps from 1 to {}", figures::count(MOST_SLOWEST.into())))
}

impl Retention {
    pub(super) fn new(limits: RetentionLimits) -> Self {
        let keep = limits.keep.unwrap_or(LEAST);
        Self { limits, keep, begin_at: keep / 4 * 3, budget: BUDGET, copy: None }
    }

    /// The options of a recording that it bounds.
    pub(super) fn options(&self, options: RecorderOptions) -> RecorderOptions {
        RecorderOptions {
            chunk_bytes: options.chunk_bytes.min(self.keep / 16),
            slowest: self.limits.slowest,
            ..options
        }
    }

    /// Looks after what `recorded` writes into `file`: begins a copy, continues it, or replaces the file with it.
    ///
    /// # Errors
    /// When the copy cannot be written, or the size is too small for this run. The file is whole as it is.
    pub(super) fn enforce(&mut self, recorded: &mut SourceRecorder<File>, file: &mut NewFile) -> anyhow::Result<()> {
        let copy = match self.copy.take() {
            Some(copy) => copy,
            None if recorded.written_bytes() < self.begin_at => return Ok(()),
            None => self.begin_copy(recorded, file)?,
        };
        let Some(written) = self.shorten(copy, recorded, file)? else { return Ok(()) };
        if written < self.nearly_full() {
            return Ok(());
        }
        // Too much was recorded while the copy was made: a second one is made at once, with nothing recorded meanwhile.
        let again = self.begin_copy(recorded, file)?;
        match self.shorten(again, recorded, file)? {
            Some(written) if written >= self.nearly_full() => bail!(self.too_small(written)),
            _ => Ok(()),
        }
    }

    /// Continues a copy, and replaces the file with it once it is complete; its size, in bytes. Returns `None` while it is not
    /// and there is still room: then the session comes first.
    fn shorten(
        &mut self,
        mut copy: PartialCopy,
        recorded: &mut SourceRecorder<File>,
        file: &mut NewFile,
    ) -> anyhow::Result<Option<u64>> {
        while !copy.advance(recorded, self.budget)? {
            if recorded.written_bytes() < self.nearly_full() {
                self.copy = Some(copy);
                return Ok(None);
            }
        }
        let written = copy.recorder.written_bytes();
        if self.limits.keep.is_some() && written >= recorded.written_bytes() {
            bail!(self.too_small(written));
        }
        self.begin_at = match self.limits.keep {
            Some(keep) => (keep / 4 * 3).max(written + keep / 16),
            None => written + self.keep / 8 * 3,
        };
        file.replace(copy.draft).context("cannot replace the recording with its shorter copy")?;
        recorded.continue_with(copy.recorder);
        Ok(Some(written))
    }

    fn begin_copy(&self, recorded: &mut SourceRecorder<File>, file: &NewFile) -> anyhow::Result<PartialCopy> {
        recorded.begin_part()?;
        let until = recorded.written_bytes();
        let from = file.path().context("a device or a pipe cannot be shortened")?.to_owned();
        let source = Recording::open_newest(&from, until, self.keep / 8 * 3);
        let source = source.with_context(|| self.too_small(until))?;
        let failed = "cannot write a shorter copy beside the recording";
        let draft = file.draft().context(failed)?;
        let out = draft.as_file().try_clone().context(failed)?;
        let options = self.options(recorded.continuation_options());
        Ok(PartialCopy { from, source, until, recorder: RunRecorder::new(out, options), draft })
    }

    /// From this size on the session waits for the copy.
    fn nearly_full(&self) -> u64 {
        self.limits.keep.map_or(u64::MAX, |keep| keep / 8 * 7)
    }

    fn too_small(&self, needed: u64) -> String {
        format!(
            "--keep {} is too small for this run, whose summary and newest events take {}: give at least twice as much",
            figures::bytes(self.keep as f64),
            figures::bytes(needed as f64),
        )
    }
}

impl PartialCopy {
    /// Copies a little; whether all of the recording up to this moment is in the copy.
    fn advance(&mut self, recorded: &mut SourceRecorder<File>, budget: Duration) -> anyhow::Result<bool> {
        if self.source.poll(&mut self.recorder, budget).more {
            return Ok(false);
        }
        recorded.begin_part()?;
        let until = recorded.written_bytes();
        let left = until - self.until;
        if left > 0 {
            self.source = Recording::open_part(&self.from, &(self.until..until))?;
            self.until = until;
        }
        if left > LITTLE {
            return Ok(false);
        }
        self.source.read_all(&mut self.recorder);
        self.recorder.flush().context("cannot write a shorter copy of the recording")?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    use gnntop_analysis::ranks::Run;
    use gnntop_analysis::source::{Progress, SourceState, Status};
    use gnntop_analysis::store::Store;
    use gnntop_analysis::stream::Sink;
    use gnntop_fixtures::{ParallelRun, START_NS, StreamBuilder, each_item, session_info};
    use gnntop_wire::{Item, SessionInfo, StreamReader, TrackRole};

    /// Larger than the history of these runs, and much smaller than their events.
    const KEEP: u64 = 3 << 20;

    const SMALL: RetentionLimits = RetentionLimits { keep: Some(KEEP), slowest: 0 };
    const STEPS: u64 = 50_000;
    const SPANS: u64 = 40;

    /// Longer than any copy takes, however busy the machine.
    const AT_ONCE: Duration = Duration::from_secs(3600);

    /// Sessions that each publish a few events at every look.
    struct SlowSource {
        sessions: Vec<(u128, StreamReader)>,
        has_more: bool,
    }

    impl SlowSource {
        fn new(streams: &[Vec<u8>]) -> Self {
            let session = |stream: &Vec<u8>| {
                let (mut reader, mut id) = (StreamReader::new(), 0);
                reader.fill(stream);
                reader.finish();
                each_item(stream, |item| {
                    if let Item::Segment(info) = item {
                        id = info.session_id;
                    }
                });
                (id, reader)
            };
            Self { sessions: streams.iter().map(session).collect(), has_more: true }
        }
    }

    impl Source for SlowSource {
        fn poll(&mut self, sink: &mut dyn Sink, _budget: Duration) -> Progress {
            self.has_more = false;
            for (id, reader) in &mut self.sessions {
                sink.select_session(*id);
                // Little beside the limit, as a look at a live session brings.
                for _ in 0..10 {
                    let Some(item) = reader.next() else { break };
                    sink.apply(item);
                    self.has_more = true;
                }
            }
            Progress { changed: true, more: false }
        }

        fn status(&self) -> Status {
            let state = if self.has_more { SourceState::Running } else { SourceState::Ended("end".to_owned()) };
            Status { state, ..Status::default() }
        }
    }

    /// Records these sessions into a file that stays within `limits`; `look` sees the file after each look at them.
    fn record(limits: RetentionLimits, streams: &[Vec<u8>], look: impl FnMut(&[u8])) -> Vec<u8> {
        record_copying(AT_ONCE, limits, streams, look)
    }

    /// Likewise, where a copy proceeds for so long between two looks.
    fn record_copying(
        budget: Duration,
        limits: RetentionLimits,
        streams: &[Vec<u8>],
        mut look: impl FnMut(&[u8]),
    ) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.gnntop");
        let mut file = NewFile::create(&path, false, &[]).unwrap();
        let mut bound = Retention { keep: KEEP, begin_at: KEEP / 4 * 3, budget, ..Retention::new(limits) };
        let options = bound.options(RecorderOptions::default());
        let out = file.file().try_clone().unwrap();
        let mut recorded = SourceRecorder::new(Box::new(SlowSource::new(streams)), out, options);
        while recorded.end_reason().is_none() {
            recorded.poll().unwrap();
            bound.enforce(&mut recorded, &mut file).unwrap();
            look(&fs::read(&path).unwrap());
        }
        recorded.finish().unwrap();
        bound.enforce(&mut recorded, &mut file).unwrap();
        while bound.copy.is_some() {
            bound.enforce(&mut recorded, &mut file).unwrap();
        }
        drop(bound);
        file.finish().unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no copy is left");
        fs::read(&path).unwrap()
    }

    fn store_of(bytes: &[u8]) -> Store {
        let mut store = Store::default();
        each_item(bytes, |item| store.apply(item));
        store
    }

    /// Steps with spans of unpredictable lengths.
    fn stream_of(info: &SessionInfo, steps: u64) -> Vec<u8> {
        let mut stream = StreamBuilder::from_info(info);
        let main = stream.track(TrackRole::Training, "main");
        let (mut t_ns, mut seed) = (START_NS, 1_u64);
        for step in 1..=steps {
            let start_ns = t_ns;
            for at in 0..SPANS {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let end_ns = t_ns + (seed >> 44);
                match at % 4 {
                    0 => stream.phase(main, step, "forward", t_ns, end_ns),
                    _ => stream.span(main, step, "layer", t_ns, end_ns),
                }
                t_ns = end_ns;
            }
            stream.step(main, step, start_ns, t_ns);
            if step % 100 == 0 {
                stream.anchor(t_ns);
            }
        }
        stream.end(t_ns);
        stream.bytes()
    }

    #[test]
    fn bounded_recording_stays_small_and_covers_the_run() {
        check_bounded_recording(AT_ONCE);
    }

    #[test]
    fn bounded_recording_that_is_copied_in_several_looks_stays_small_and_covers_the_run() {
        check_bounded_recording(Duration::ZERO);
    }

    fn check_bounded_recording(budget: Duration) {
        let stream = stream_of(&session_info("long"), STEPS);
        let (mut copies, mut last_len, mut looks) = (0, 0, 0);
        let bytes = record_copying(budget, SMALL, std::slice::from_ref(&stream), |bytes| {
            assert!(bytes.len() as u64 <= KEEP, "{}", bytes.len());
            copies += u32::from(bytes.len() < last_len);
            (last_len, looks) = (bytes.len(), looks + 1);
            if looks % 80 == 0 {
                // As a kill would leave it.
                let found = store_of(bytes);
                assert_eq!((found.losses().missed_events, found.losses().damage_bytes), (0, 0));
                assert_eq!(found.steps().last().map_or(0, |row| row.step().0), found.steps().total());
            }
        });
        // On a busy machine one copy may take so long that it is the only one.
        assert!(copies > 0);
        let (whole, found) = (store_of(&stream), store_of(&bytes));
        assert_eq!(found.steps().total(), STEPS);
        assert_eq!(found.losses().missed_events, 0);
        for percentile in [1.0, 50.0, 90.0, 99.0, 99.9] {
            let [whole, found] =
                [&whole, &found].map(|store| store.statistics().period().percentile(percentile / 100.0));
            assert_eq!(whole, found, "p{percentile}");
        }
        let slowest = |store: &Store| store.steps().known_rows(0..u64::MAX).map(|row| row.period_ns()).max();
        assert_eq!(slowest(&found), slowest(&whole));
        assert_eq!(found.steps().last().unwrap().period_ns(), whole.steps().last().unwrap().period_ns());
        assert_eq!(found.session().facts(), whole.session().facts());
    }

    #[test]
    fn the_slowest_steps_stay_in_full() {
        let stream = stream_of(&session_info("long"), STEPS);
        let bytes = record(RetentionLimits { keep: None, slowest: 50 }, std::slice::from_ref(&stream), |_| ());
        let (whole, found) = (store_of(&stream), store_of(&bytes));
        assert_eq!(found.steps().total(), STEPS);
        let mut periods: Vec<u64> = whole.steps().all().map(|row| row.period_ns()).collect();
        periods.sort_unstable_by_key(|ns| std::cmp::Reverse(*ns));
        let rows = found.steps().slow().iter().filter(|slow| slow.row().period_ns() >= periods[49]);
        let first = found.steps().all().next().unwrap().period_start_ns();
        let gone: Vec<usize> =
            rows.filter(|slow| slow.row().period_start_ns() < first).map(|slow| slow.spans().len()).collect();
        assert!(gone.len() > 10 && gone.iter().all(|spans| *spans == SPANS as usize), "{gone:?}");
    }

    #[test]
    fn every_rank_of_a_run_stays_whole() {
        let run = ParallelRun { ranks: 3, ..ParallelRun::default() };
        let streams: Vec<Vec<u8>> = (0..3).map(|rank| stream_of(&run.info(rank), STEPS / 4)).collect();
        let (mut was_copied, mut last_len) = (false, 0);
        let bytes = record(SMALL, &streams, |bytes| {
            was_copied |= bytes.len() < last_len;
            last_len = bytes.len();
        });
        assert!(was_copied);
        let (mut whole, mut found) = (Run::default(), Run::default());
        streams.iter().for_each(|stream| each_item(stream, |item| whole.apply(item)));
        each_item(&bytes, |item| found.apply(item));
        let of = |run: &Run| -> Vec<(u32, u64, u64)> {
            let ranks = run.ranks();
            let ranks = ranks
                .all()
                .iter()
                .map(|rank| (rank.place.rank, rank.store.steps().total(), rank.store.losses().missed_events));
            ranks.collect()
        };
        assert_eq!(of(&found), of(&whole));
        assert!((bytes.len() as u64) < KEEP);
    }

    #[test]
    fn too_small_limit_is_reported_and_file_is_kept() {
        assert!(parse_size("1M").unwrap_err().contains("16.0 MiB"));
        assert_eq!(parse_size("2GiB"), Ok(2 << 30));
        let dir = tempfile::tempdir().unwrap();
        let mut file = NewFile::create(&dir.path().join("a.gnntop"), false, &[]).unwrap();
        let out = file.file().try_clone().unwrap();
        let stream = stream_of(&session_info("long"), 2000);
        let source = Box::new(SlowSource::new(&[stream]));
        let mut recorded =
            SourceRecorder::new(source, out, RecorderOptions { chunk_bytes: 1000, ..Default::default() });
        while recorded.end_reason().is_none() {
            recorded.poll().unwrap();
        }
        recorded.finish().unwrap();
        let refused = Retention::new(RetentionLimits { keep: Some(60_000), slowest: 0 })
            .enforce(&mut recorded, &mut file)
            .unwrap_err()
            .to_string();
        assert!(refused.starts_with("--keep 58.6 KiB is too small for this run"), "{refused}");
        assert_eq!(store_of(&fs::read(file.path().unwrap()).unwrap()).steps().total(), 2000);
    }
}
