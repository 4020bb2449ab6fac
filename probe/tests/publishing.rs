//! What a program publishes, read back as a viewer would.

use std::path::Path;
use std::time::Duration;

use crate::alone;
use crate::reading::RecordedStream;
use gnntop_probe::{
    BatchShape, Name, Place, Session, SessionBuilder, TrackRole, counter, mark, opener, phase, set_step, span, step,
};
use gnntop_wire::Event;

static INNER: Name = Name::span("inner");
static DEPTH: Name = Name::counter("depth");
static NOTE: Name = Name::mark("note");

fn quiet(name: &str, dir: &Path) -> SessionBuilder {
    Session::builder(name).directory(dir).sensors(None).on_warning(|w| panic!("{w}"))
}

fn train(steps: u64) {
    for i in 0..steps {
        let mut step = step(i / 10);
        {
            let _wait = span(&phase::DATA_WAIT);
            counter(&DEPTH, i as f64);
        }
        {
            let _forward = span(&phase::FORWARD);
            let _inner = span(&INNER);
        }
        step.batch(BatchShape { graphs: Some(4), nodes: Some(i), edges: None, seeds: Some(2) });
        step.loss(f64::NAN);
    }
    mark(&NOTE, Some(0.5));
    mark(&NOTE, None);
}

#[test]
fn flush_writes_recorded_events() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    let session = quiet("flush", temp.path()).drain_interval(Duration::from_secs(3600)).start();
    let dir = session.dir().unwrap().to_owned();
    let track = session.track("train", TrackRole::Training);
    for steps in [5, 10] {
        train(5);
        assert!(session.flush());
        assert_eq!(RecordedStream::from_session(&dir).steps().len(), steps);
    }
    drop((track, session));
    let elsewhere = temp.path().join("a file");
    std::fs::write(&elsewhere, "").unwrap();
    let failed = Session::builder("flush").directory(elsewhere).sensors(None).on_warning(|_| ()).start();
    assert!(!failed.flush(), "nothing is published");
}

#[test]
fn everything_recorded_is_in_the_session() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    let session = quiet("a run", temp.path()).start();
    let dir = session.dir().unwrap().to_owned();
    let track = session.track("train", TrackRole::Training);
    train(25);
    drop((track, session));

    let stream = RecordedStream::from_session(&dir);
    assert_eq!(stream.sessions[0].name, "a run");
    assert_eq!(stream.sessions[0].pid, std::process::id());
    assert!(stream.ended && stream.damage.is_empty());
    assert_eq!(stream.spans("forward").len(), 25);
    assert_eq!(stream.spans("inner").len(), 25);
    assert_eq!(stream.spans("data wait").len(), 25);
    let steps = stream.steps();
    assert_eq!(steps.len(), 25);
    for (i, step) in steps.iter().enumerate() {
        assert_eq!((step.step.0, step.epoch), (i as u64 + 1, i as u64 / 10));
        assert_eq!(step.batch, BatchShape { graphs: Some(4), nodes: Some(i as u64), edges: None, seeds: Some(2) });
        assert!(step.loss.unwrap().is_nan());
        let forward = stream.spans("forward")[i];
        let inner = stream.spans("inner")[i];
        assert_eq!((forward.step, inner.step), (step.step, step.step));
        assert!(step.start_ns <= forward.start_ns && forward.end_ns <= step.end_ns, "{step:?} {forward:?}");
        assert!(forward.start_ns <= inner.start_ns && inner.end_ns <= forward.end_ns);
    }
    let marks: Vec<_> =
        stream.events().filter_map(|e| if let Event::Mark(m) = e { Some(m.value) } else { None }).collect();
    assert_eq!(marks, [Some(0.5), None]);
    let depths: Vec<f64> =
        stream.events().filter_map(|e| if let Event::Counter(c) = e { Some(c.value) } else { None }).collect();
    assert_eq!(depths, (0..25).map(f64::from).collect::<Vec<_>>());
}

#[test]
fn an_epoch_may_be_any_number() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    let session = quiet("epochs", temp.path()).start();
    let dir = session.dir().unwrap().to_owned();
    let track = session.track("train", TrackRole::Training);
    let epochs = [0, 7, u64::from(u32::MAX), 1 << 32, u64::MAX, 3];
    epochs.iter().for_each(|epoch| drop(step(*epoch)));
    drop((track, session));
    assert_eq!(RecordedStream::from_session(&dir).steps().iter().map(|step| step.epoch).collect::<Vec<_>>(), epochs);
}

/// Page faults of the calling thread so far.
#[cfg(target_os = "linux")]
fn minor_faults() -> u64 {
    // SAFETY: all zeros is a valid value of this plain struct, and a valid place for the result.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage), 0);
        usage
    };
    usage.ru_minflt as u64
}

#[cfg(target_os = "linux")]
#[test]
fn short_steps_share_page_faults_without_loss() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    let session = quiet("faults", temp.path()).start();
    let dir = session.dir().unwrap().to_owned();
    let at_most = minor_faults();
    let track = session.track("train", TrackRole::Training);
    let at_least = minor_faults();
    let mut fresh = vec![0u8; 64 << 20];
    for page in fresh.chunks_mut(4096).take(5000) {
        let _step = step(0);
        page[0] = 1;
    }
    let at_least = minor_faults() - at_least;
    for _ in 0..3 {
        let _step = step(0);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let at_most = minor_faults() - at_most;
    drop((track, session));
    let stream = RecordedStream::from_session(&dir);
    let usage: Vec<_> = stream.steps().iter().map(|step| step.usage).collect();
    assert!(usage.iter().rev().take(3).all(Option::is_some), "long steps tell their own: {usage:?}");
    assert!(usage.iter().any(Option::is_none), "short ones ask less often");
    let told: u64 = usage.iter().flatten().map(|usage| usage.minor_faults).sum();
    assert!((at_least..=at_most).contains(&told), "{at_least} <= {told} <= {at_most}");
}

#[test]
fn recording_equals_session() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("a.gnntop");
    let session = quiet("recorded", temp.path()).record_to(&file).start();
    assert_eq!(session.dir(), None);
    let track = session.track("train", TrackRole::Training);
    train(10);
    drop((track, session));
    let stream = RecordedStream::from_files([&file]);
    assert_eq!((stream.steps().len(), stream.ended), (10, true));
}

#[test]
fn long_open_span_is_reported() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    let session = quiet("hangs", temp.path()).start();
    let dir = session.dir().unwrap().to_owned();
    let _track = session.track("train", TrackRole::Training);
    let step = step(0);
    let backward = span(&phase::BACKWARD);
    let open = crate::reading::wait_for(|| {
        std::thread::sleep(Duration::from_millis(20));
        let stream = RecordedStream::from_session(&dir);
        stream.events().find_map(|e| if let Event::Open(o) = e { Some((stream.name(o.name), o)) } else { None })
    });
    assert_eq!(open.0, "backward");
    assert_eq!(open.1.step.0, 1);
    assert!(open.1.t_ns - open.1.since_ns >= 100_000_000);
    drop((backward, step));
    drop(session);
    let closed = RecordedStream::from_session(&dir).spans("backward")[0];
    assert_eq!(closed.start_ns, open.1.since_ns);
}

#[test]
fn threads_have_tracks_of_their_own() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    let session = quiet("threads", temp.path()).start();
    let dir = session.dir().unwrap().to_owned();
    std::thread::scope(|scope| {
        for worker in 0..4 {
            scope.spawn(move || {
                let _track = gnntop_probe::track(&format!("loader {worker}"), TrackRole::Loader);
                for batch in 0..100 {
                    set_step(batch + 1);
                    let _gather = span(&phase::GATHER);
                }
            });
        }
    });
    drop(span(&phase::GATHER)); // no track on this thread: goes nowhere
    drop(session);
    let stream = RecordedStream::from_session(&dir);
    assert_eq!(stream.spans("gather").len(), 400);
    assert_eq!(stream.tracks.values().filter(|name| name.starts_with("loader ")).count(), 4);
    assert_eq!(stream.spans("gather").iter().map(|s| s.step.0).max(), Some(100));
}

#[test]
fn a_full_ring_drops_the_newest_but_keeps_steps() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    let session = quiet("floods", temp.path()).drain_interval(Duration::from_secs(60)).start();
    let dir = session.dir().unwrap().to_owned();
    std::thread::sleep(Duration::from_millis(200)); // the drain thread has looked and sleeps now
    let track = session.track("train", TrackRole::Training);
    let (written, steps) = (100_000, 100);
    for _ in 0..steps {
        let _step = step(0);
        (0..written / steps).for_each(|_| drop(span(&INNER)));
    }
    drop((track, session));
    let stream = RecordedStream::from_session(&dir);
    let kept = stream.spans("inner").len() as u64;
    assert_eq!(kept + stream.dropped(), written);
    assert!(kept >= 15_000 && stream.dropped() > 0, "{kept} kept");
    assert_eq!(stream.steps().len() as u64, steps, "steps have places of their own");
}

#[test]
fn guards_that_outlive_their_track_are_harmless() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    let session = quiet("order", temp.path()).start();
    let dir = session.dir().unwrap().to_owned();
    let outer = session.track("outer", TrackRole::Training);
    let inner = session.track("inner", TrackRole::Other);
    let in_inner = span(&phase::FORWARD);
    drop(outer); // the wrong way round
    drop(inner);
    drop(in_inner);
    drop(span(&phase::BACKWARD));
    drop(session);
    let stream = RecordedStream::from_session(&dir);
    assert!(stream.spans("forward").is_empty());
    assert!(stream.spans("backward").len() <= 1);
}

#[test]
fn a_long_run_keeps_its_newest_segments_each_readable_alone() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    // Half of it for the segments.
    let session = quiet("long", temp.path()).max_bytes(26 << 20).drain_interval(Duration::from_millis(1)).start();
    let dir = session.dir().unwrap().to_owned();
    let track = session.track("train", TrackRole::Training);
    let mut step = 0u64;
    let oldest_is_gone = || crate::reading::segments(&dir).first().is_some_and(|f| !f.ends_with("00000000.gnntop"));
    crate::reading::wait_for(|| {
        for _ in 0..5_000 {
            step = step.wrapping_add(0x9E37_79B9_7F4A_7C15); // incompressible
            set_step(step);
            drop(span(&INNER));
        }
        std::thread::sleep(Duration::from_millis(2));
        oldest_is_gone().then_some(())
    });
    drop((track, session));
    let files = crate::reading::segments(&dir);
    assert!(files.len() >= 2, "{files:?}");
    let bytes: u64 = files.iter().map(|f| std::fs::metadata(f).unwrap().len()).sum();
    assert!(bytes <= 14 << 20, "{bytes} bytes kept");
    for file in &files {
        let stream = RecordedStream::from_files([file]);
        assert!(stream.damage.is_empty() && !stream.spans("inner").is_empty(), "{}", file.display());
    }
}

#[test]
fn sensors_are_in_the_stream() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    let session = Session::builder("sensed").directory(temp.path()).sensor_interval(Duration::from_millis(10)).start();
    let dir = session.dir().unwrap().to_owned();
    let stream = crate::reading::wait_for(|| {
        std::thread::sleep(Duration::from_millis(50));
        let stream = RecordedStream::from_session(&dir);
        (stream.samples("process.rss").len() > 1).then_some(stream)
    });
    assert!(stream.samples("process.rss").iter().all(|s| s.value > 100_000));
    assert!(!stream.samples("machine.memory.total").is_empty());
    drop(session);
}

#[test]
fn ranks_of_one_process_have_a_session_each() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    let place = |rank| Place { run: "r".to_owned(), rank, ranks: 2, ..Place::default() };
    let sessions = [0, 1].map(|rank| quiet("rank", temp.path()).place(place(rank)).start());
    let dirs = [0, 1].map(|rank: usize| sessions[rank].dir().unwrap().to_owned());
    std::thread::scope(|scope| {
        for session in &sessions {
            scope.spawn(move || {
                let _track = session.track("train", TrackRole::Training);
                let opener = opener();
                // A thread that a rank starts has the rank's session, not the one started last.
                scope.spawn(move || {
                    let _track = opener.track("loader 0", TrackRole::Loader);
                    mark(&NOTE, None);
                });
                train(3);
            });
        }
    });
    drop(sessions);
    for (rank, dir) in (0..).zip(&dirs) {
        let stream = RecordedStream::from_session(dir);
        assert_eq!(stream.sessions[0].place.as_deref(), Some(&place(rank)));
        assert_eq!(stream.spans("forward").len(), 3);
        assert_eq!(stream.tracks.values().filter(|track| *track == "loader 0").count(), 1);
    }
}
