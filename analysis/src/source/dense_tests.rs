//! Recordings whose chunks end after a number of events.

use std::time::Duration;

use gnntop_fixtures::each_item;

use super::fixture::{self, CollectedItems};
use super::long_recording_tests::RecordedFile;
use super::playback::{Playback, PlaybackOptions};
use super::{Extent, FullReadLimit, Recording, Source};
use crate::recorder::{RecorderOptions, RunRecorder};
use crate::stream::Sink;

const CHUNK_EVENTS: u64 = 20_000;

/// Two events in each of 150,000 steps, in few bytes.
fn dense() -> RecordedFile {
    let mut out = Vec::new();
    let options = RecorderOptions { chunk_events: CHUNK_EVENTS, ..RecorderOptions::default() };
    let mut recorder = RunRecorder::new(&mut out, options);
    each_item(&fixture::recording(150_000, 50), |item| recorder.apply(item));
    recorder.flush().unwrap();
    drop(recorder);
    RecordedFile::new(out)
}

/// Events of each chunk, and after the last.
fn events_by_chunk(recorded: &RecordedFile) -> Vec<usize> {
    let chunks = recorded.chunks().unwrap();
    let last = chunks.before_byte(u64::MAX).unwrap();
    let ends = (0..=last).map(|chunk| chunks.next_offset(chunk) as usize).chain([recorded.bytes.len()]);
    let mut from = 0;
    ends.map(|end| {
        let mut heard = CollectedItems::default();
        each_item(&recorded.bytes[std::mem::replace(&mut from, end)..end], |item| heard.apply(item));
        heard.events.len()
    })
    .collect()
}

#[test]
fn dense_chunks_end_after_event_count() {
    let recorded = dense();
    let events = events_by_chunk(&recorded);
    assert_eq!(events.iter().sum::<usize>(), 300_000);
    let (_, chunks) = events.split_last().unwrap();
    assert!(chunks.len() > 2 && recorded.bytes.len() < 8 << 20, "{events:?} in {} bytes", recorded.bytes.len());
    assert!(chunks.iter().all(|chunk| *chunk as u64 >= CHUNK_EVENTS), "{events:?}");
    assert!(chunks[0] as u64 <= CHUNK_EVENTS + 1000, "{events:?}");
    let counted = recorded.chunks().unwrap().events();
    assert_eq!(counted, chunks[1..].iter().sum::<usize>() as u64);
}

#[test]
fn seek_to_end_reads_only_last_chunk() {
    let recorded = dense();
    let options = PlaybackOptions { from: Duration::MAX, ..PlaybackOptions::default() };
    let mut playback = Playback::open(recorded.path(), options).unwrap();
    let mut heard = CollectedItems::default();
    while playback.poll(&mut heard, Duration::from_secs(1)).more {}
    let events = events_by_chunk(&recorded);
    let end: usize = events[events.len() - 2..].iter().sum();
    assert!(!heard.events.is_empty() && heard.events.len() <= end, "{} of {events:?}", heard.events.len());
}

#[test]
fn dense_recording_counts_as_long() {
    let recorded = dense();
    let open =
        |events: u64| Recording::open_with_past(&recorded.path(), FullReadLimit { bytes: 96 << 20, events }).unwrap().1;
    assert!(matches!(open(200_000), Extent::After { .. }));
    assert_eq!(open(300_000), Extent::AllEvents);
}

#[test]
fn requested_newest_steps_are_read_individually() {
    let recorded = dense();
    let chunks = recorded.chunks().unwrap();
    let events = events_by_chunk(&recorded);
    let steps_after = |chunk: usize| events[chunk + 1..events.len() - 1].iter().sum::<usize>() as u64 / 2;
    for steps in [1, 10_000, 30_000, 60_000] {
        let chunk = chunks.before_newest_steps(steps, 0).unwrap();
        assert!(steps_after(chunk) >= steps && steps_after(chunk + 1) < steps, "{steps} after {chunk}: {events:?}");
    }
    assert_eq!(chunks.before_newest_steps(150_000, 0), None);
    let all = events.len() - 2;
    assert_eq!(chunks.before_newest_steps(60_000, all), None, "none from there on");
}
