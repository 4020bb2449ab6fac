//! Recordings with chunks, read whole and from their summaries.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gnntop_fixtures::{MS, ParallelRun, SECOND, TrainingRun, each_item};
use gnntop_wire::chunk::{CHUNK_END_LEN, ChunkEnd, put_chunk_end};
use gnntop_wire::{Item, StreamReader};
use proptest::prelude::*;

use super::chunks::Chunks;
use super::fixture::CollectedItems;
use super::{Extent, FullReadLimit, Recording, Source};
use crate::ranks::Run;
use crate::recorder::{RecorderOptions, RunRecorder};
use crate::store::{Restarts, Store};
use crate::stream::Sink;

const CHUNK_BYTES: u64 = 8 << 10;
/// No recording is so short.
const SHORT: FullReadLimit = FullReadLimit { bytes: 0, events: 0 };

pub(super) struct RecordedFile {
    dir: tempfile::TempDir,
    pub(super) bytes: Vec<u8>,
}

impl RecordedFile {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        let recorded = Self { dir: tempfile::tempdir().unwrap(), bytes };
        recorded.write(&recorded.bytes);
        recorded
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join("a.gnntop")
    }

    fn write(&self, bytes: &[u8]) {
        fs::write(self.path(), bytes).unwrap();
    }

    pub(super) fn chunks(&self) -> Option<Chunks> {
        Chunks::open(&fs::File::open(self.path()).unwrap())
    }
}

/// Records these streams in turn. One alone needs no id.
fn record(streams: &[Vec<u8>], ids: &[u128], chunk_bytes: u64) -> Vec<u8> {
    let longest = streams.iter().map(Vec::len).max().unwrap();
    let pieces =
        |at: usize| streams.iter().map(move |stream| &stream[at.min(stream.len())..(at + 4096).min(stream.len())]);
    record_pieces((0..longest).step_by(4096).flat_map(|at| ids.iter().copied().zip(pieces(at))), chunk_bytes)
}

/// Records one stream after the other.
fn record_in_order(streams: &[Vec<u8>], ids: &[u128], chunk_bytes: u64) -> Vec<u8> {
    let pieces = ids.iter().zip(streams).flat_map(|(id, stream)| stream.chunks(4096).map(|piece| (*id, piece)));
    record_pieces(pieces, chunk_bytes)
}

/// Records pieces of streams, each with its session's id, flushed after each.
fn record_pieces<'a>(pieces: impl Iterator<Item = (u128, &'a [u8])>, chunk_bytes: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let mut recorder = RunRecorder::new(&mut out, RecorderOptions { chunk_bytes, ..RecorderOptions::default() });
    let mut readers: HashMap<u128, StreamReader> = HashMap::new();
    for (id, piece) in pieces {
        if id > 0 {
            recorder.select_session(id);
        }
        let reader = readers.entry(id).or_default();
        reader.fill(piece);
        while let Some(item) = reader.next() {
            recorder.apply(item);
        }
        recorder.flush().unwrap();
    }
    recorder.flush().unwrap();
    out
}

/// A hundred seconds with a slow step from time to time.
fn training() -> Vec<u8> {
    let spikes = (1..=2500).step_by(83).map(|step| (step, "backward", step * MS / 10)).collect();
    TrainingRun { steps: 2500, spikes, ..TrainingRun::default() }.bytes()
}

fn recorded() -> RecordedFile {
    RecordedFile::new(record(&[training()], &[0], CHUNK_BYTES))
}

fn parallel() -> ParallelRun {
    let elsewhere = vec![(2, 5000 * SECOND as i64, Some(MS))];
    ParallelRun { ranks: 3, steps: 600, elsewhere, ..ParallelRun::default() }
}

fn read_all_events(path: &Path) -> Run {
    let mut run = Run::default();
    Recording::open(path).unwrap().read_all(&mut run);
    run
}

fn read_with_past(path: &Path) -> (Run, Extent) {
    let mut run = Run::default();
    let (mut recording, extent) = Recording::open_with_past(path, SHORT).unwrap();
    recording.read_all(&mut run);
    (run, extent)
}

/// What a report takes from figures over the whole time.
#[track_caller]
fn assert_same(found: &Store, whole: &Store) {
    let exact = |store: &Store| {
        let statistics = store.statistics();
        (statistics.steps(), statistics.epochs(), *statistics.batch(), statistics.first_loss(), statistics.last_loss())
    };
    assert_eq!(exact(found), exact(whole));
    assert_eq!((found.first_ns(), found.now_ns()), (whole.first_ns(), whole.now_ns()));
    let names = ["period", "step", "gap", "forward", "backward", "layer 1"];
    for name in names.iter().filter(|name| whole.distribution(name).is_some()) {
        let [found, whole] = [found, whole].map(|store| store.distribution(name).unwrap());
        assert_eq!((found.count(), found.max_ns()), (whole.count(), whole.max_ns()), "{name}");
        for percentile in [0.5, 0.99] {
            let [found, whole] = [found, whole].map(|durations| durations.percentile(percentile).unwrap() as f64);
            assert!((found / whole - 1.0).abs() < 0.002, "p{percentile} of {name}: {found} and {whole}");
        }
    }
    let signals = |store: &Store| store.signals().all().len();
    assert_eq!(signals(found), signals(whole));
    assert!(found.losses().is_complete(), "{:?}", found.losses());
}

#[test]
fn chunks_do_not_change_reading_all_events() {
    let heard = |bytes: &[u8]| {
        let mut heard = CollectedItems::default();
        each_item(bytes, |item| heard.apply(item));
        heard
    };
    let (with, without) = (record(&[training()], &[0], CHUNK_BYTES), record(&[training()], &[0], u64::MAX));
    assert!(with.len() > without.len());
    let (with, without) = (heard(&with), heard(&without));
    // Tracks take turns in any order.
    let sorted = |heard: &CollectedItems| {
        let mut events: Vec<String> = heard.events.iter().map(|event| format!("{event:?}")).collect();
        events.sort_unstable();
        events
    };
    assert!(sorted(&with) == sorted(&without));
    assert_eq!((with.gaps, with.damages), (0, 0));
    assert_eq!((with.anchors, with.ends), (without.anchors, without.ends));
}

#[test]
fn reading_with_past_equals_reading_all() {
    let recorded = recorded();
    let (run, extent) = read_with_past(&recorded.path());
    let Extent::After { last_ns } = extent else { panic!("{extent:?}") };
    assert_same(run.store(), read_all_events(&recorded.path()).store());
    let past = run.store().past().unwrap();
    assert_eq!(past.last_ns, last_ns);
    assert!(past.steps > 1000 && past.steps < 2500, "{past:?}");
    assert_eq!(run.store().steps().all().count() as u64, 2500 - past.steps);
    let all = Recording::open_with_past(
        &recorded.path(),
        FullReadLimit { bytes: recorded.bytes.len() as u64, events: u64::MAX },
    )
    .unwrap();
    assert_eq!(all.1, Extent::AllEvents, "short enough");
}

#[test]
fn part_reads_newest_steps_and_past_before() {
    let recorded = recorded();
    let whole = read_all_events(&recorded.path());
    let until_ns = whole.store().steps().row(1800).unwrap().end_ns();
    let mut run = Run::default();
    Recording::open_until(&recorded.path(), until_ns, 200, SHORT).unwrap().read_all(&mut run);
    let summed = run.store().past().unwrap().steps;
    assert!((1000..=1600).contains(&summed), "{summed}");
    assert_same(run.store(), whole.store());
    for nothing_before in [u64::MAX, 3000] {
        let mut run = Run::default();
        Recording::open_until(&recorded.path(), until_ns, nothing_before, SHORT).unwrap().read_all(&mut run);
        assert_eq!(run.store().past(), None);
    }
    let mut run = Run::default();
    Recording::open_before_step(&recorded.path(), 2000, SHORT).unwrap().read_all(&mut run);
    assert!(run.store().past().is_some() && run.store().steps().find_step(gnntop_wire::StepId(2000)).is_some());
}

#[test]
fn reading_can_start_at_every_chunk() {
    let recorded = recorded();
    let (chunks, expected) = (recorded.chunks().unwrap(), read_all_events(&recorded.path()));
    let last = chunks.before_byte(recorded.bytes.len() as u64).unwrap();
    assert!(last > 5, "{last}");
    for chunk in 0..last {
        let (mut recording, mut run) =
            (Recording::open_after(&recorded.path(), &chunks, chunk).unwrap(), Run::default());
        recording.read_all(&mut run);
        assert_same(run.store(), expected.store());
        assert_eq!(recording.status().damage.holes, 0);
        assert!(recording.status().title.contains("pid"), "{}", recording.status().title);
    }
}

#[test]
fn past_of_ranks_is_separated() {
    let parallel = parallel();
    let ids: Vec<u128> = (0..3).map(|rank| parallel.info(rank).session_id).collect();
    let recorded = RecordedFile::new(record(&parallel.sessions(), &ids, CHUNK_BYTES));
    let (run, extent) = read_with_past(&recorded.path());
    assert!(matches!(extent, Extent::After { .. }), "{extent:?}");
    let expected = read_all_events(&recorded.path());
    assert_eq!(run.members().len(), 3);
    for (found, whole) in run.members().iter().zip(expected.members()) {
        assert_eq!(found.info().map(|info| info.session_id), whole.info().map(|info| info.session_id));
        assert_same(&found.store, &whole.store);
        assert!(found.store.past().unwrap().steps > 100);
    }
    assert!(run.notes().is_empty(), "{:?}", run.notes());
}

#[test]
fn past_of_attempts_is_one_history() {
    // The last chunk ends between the second start and the third, and within one of them.
    [8 << 10, 12 << 10, 14 << 10].into_iter().for_each(check_past_of_attempts);
}

fn check_past_of_attempts(chunk_bytes: u64) {
    let start = |number: u32| ParallelRun { steps: 1200, ..ParallelRun::restarted(number, u64::from(number) * 60) };
    let starts = [0, 1, 2].map(start);
    let ids = starts.each_ref().map(|start| start.info(0).session_id);
    let recorded = RecordedFile::new(record_in_order(&starts.map(|start| start.session(0)), &ids, chunk_bytes));
    let (run, extent) = read_with_past(&recorded.path());
    assert!(matches!(extent, Extent::After { .. }), "{extent:?}");
    let expected = read_all_events(&recorded.path());
    assert_eq!((run.members().len(), run.store().attempts().count()), (1, 3));
    assert_same(run.store(), expected.store());
    let past = |run: &Run| run.store().past().map_or(0, |past| past.steps);
    assert!(past(&run) > 1200, "more than the first start is in summaries");
    // What the chart of the whole run is drawn from, of each start.
    let drawn = |start: u64| run.store().steps().known_rows(start * 1200..start * 1200 + 600).count();
    assert!((0..3).all(|start| drawn(start) > 0));
    let [found, expected] = [&run, &expected].map(|run| run.store().restarts().unwrap());
    assert_eq!(found.count, expected.count);
    // The first step of a start that is in summaries is known by the steps that these name.
    let ratio = found.lost_ns as f64 / expected.lost_ns as f64;
    assert!((0.99..1.01).contains(&ratio), "{} and {} ns", found.lost_ns, expected.lost_ns);
    let ends = |restarts: &Restarts| restarts.outages.iter().map(|outage| outage.from_ns).collect::<Vec<_>>();
    assert_eq!(ends(&found), ends(&expected));
}

#[test]
fn recording_from_past_equals_run() {
    let first = recorded();
    let (mut again, mut recording) = (Vec::new(), Recording::open_with_past(&first.path(), SHORT).unwrap().0);
    let options = RecorderOptions { chunk_bytes: CHUNK_BYTES, ..RecorderOptions::default() };
    let mut recorder = RunRecorder::new(&mut again, options);
    while recording.poll(&mut recorder, Duration::ZERO).more {
        recorder.flush().unwrap();
    }
    recorder.flush().unwrap();
    drop(recorder);
    let again = RecordedFile::new(again);
    let last = again.chunks().unwrap().before_byte(again.bytes.len() as u64).unwrap();
    assert!(last >= 1, "{last}");
    let expected = read_all_events(&first.path());
    assert_same(read_all_events(&again.path()).store(), expected.store());
    assert_same(read_with_past(&again.path()).0.store(), expected.store());
}

#[test]
fn truncated_recording_keeps_complete_chunks() {
    let recorded = recorded();
    let len = recorded.bytes.len();
    for cut in (0..40).map(|part| len / 3 + part * len / 61) {
        recorded.write(&recorded.bytes[..cut]);
        let (run, extent) = read_with_past(&recorded.path());
        assert!(matches!(extent, Extent::After { .. }), "cut at {cut}: {extent:?}");
        let expected = read_all_events(&recorded.path());
        assert_eq!(run.store().statistics().steps(), expected.store().statistics().steps(), "cut at {cut}");
        assert_eq!(run.store().now_ns(), expected.store().now_ns());
    }
}

#[test]
fn damaged_summary_falls_back_to_events() {
    let recorded = recorded();
    let expected = read_all_events(&recorded.path());
    let chunks = recorded.chunks().unwrap();
    let first = chunks.next_offset(0) as usize;
    for at in [first - 10, first - CHUNK_END_LEN - 20] {
        let mut bytes = recorded.bytes.clone();
        bytes[at] ^= 1;
        recorded.write(&bytes);
        let (run, extent) = read_with_past(&recorded.path());
        assert_eq!(extent, Extent::WithoutSummaries);
        assert_eq!(run.store().statistics().steps(), expected.store().statistics().steps());
    }
    // Damage in events that need not be read is harmless.
    let mut bytes = recorded.bytes.clone();
    bytes[first + 2000] ^= 1;
    recorded.write(&bytes);
    let (run, extent) = read_with_past(&recorded.path());
    assert!(matches!(extent, Extent::After { .. }));
    assert_same(run.store(), expected.store());
}

#[test]
fn concatenated_files_are_read_completely() {
    let bytes = recorded().bytes;
    let other = RecordedFile::new([&bytes[..], &bytes].concat());
    assert!(other.chunks().is_none());
    assert_eq!(read_with_past(&other.path()).1, Extent::WithoutSummaries);
}

fn any_end() -> impl Strategy<Value = ChunkEnd> {
    let number = || prop_oneof![Just(0u64), Just(1), 0u64..1 << 17, any::<u64>(), Just(u64::MAX)];
    [number(), number(), number(), number(), number(), number(), number(), number()].prop_map(|numbers| {
        let [back, number, whole_len, seconds_len, minutes_len, first_ns, last_ns, last_step] = numbers;
        ChunkEnd { back, number, totals_len: whole_len, seconds_len, minutes_len, first_ns, last_ns, last_step }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn chunk_chain_is_not_trusted(ends in prop::collection::vec((any::<prop::sample::Index>(), any_end()), 1..4), is_at_end: bool) {
        let recorded = RecordedFile::new(record(&[TrainingRun { steps: 300, ..TrainingRun::default() }.bytes()], &[0], 2048));
        let mut bytes = recorded.bytes.clone();
        for (at, end) in ends {
            let mut frame = Vec::new();
            put_chunk_end(&mut frame, &end);
            match is_at_end {
                true => bytes.extend(frame),
                false => {
                    let at = at.index(bytes.len() - frame.len());
                    bytes[at..at + frame.len()].copy_from_slice(&frame);
                }
            }
        }
        recorded.write(&bytes);
        if let Some(chunks) = recorded.chunks() {
            (0..64).for_each(|chunk| _ = chunks.past(chunk));
        }
        let (run, _) = read_with_past(&recorded.path());
        prop_assert!(run.store().statistics().steps() <= 301);
    }
}

#[test]
fn unexpected_items_in_summaries_are_refused() {
    let mut stream = training();
    stream.truncate(10_000);
    assert!(super::past_figures::PastFigures::parse_all(&stream).is_none(), "events");
    assert!(super::past_figures::PastFigures::parse_all(&[]).is_none());
    let mut heads = 0;
    each_item(&stream, |item| heads += usize::from(matches!(item, Item::Segment(_))));
    assert_eq!(heads, 1);
}

#[test]
fn newest_part_keeps_steps_where_a_chunk_ends_with_it() {
    let whole = recorded();
    let end = usize::try_from(whole.chunks().unwrap().end()).unwrap();
    let cut = RecordedFile::new(whole.bytes[..end].to_vec());
    let mut run = Run::default();
    Recording::open_newest(&cut.path(), end as u64, 1).unwrap().read_all(&mut run);
    let steps = run.members()[0].store.steps();
    assert!(steps.last().is_some_and(|row| row.step().0 == steps.total()), "{} of {}", steps.len(), steps.total());
}
