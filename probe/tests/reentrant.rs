//! Code of the program that runs inside the probe, and there does everything that it may: record, open tracks, end them.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use crate::alone;
use crate::reading::RecordedStream;
use gnntop_probe::device::{self, Attach, Holdings, Lost, Pool, PoolUse, Stream as DeviceStream};
use gnntop_probe::{Name, NameRef, Session, Track, TrackRole, counter, mark, phase, span, step, track};
use gnntop_simulated::{DeviceModel, Simulated};

static LAYER: Name = Name::span("layer");

thread_local! {
    /// The thread's track, where code deep inside finds it.
    static TRACK: RefCell<Option<Track>> = const { RefCell::new(None) };
}

fn session(dir: &Path) -> Session {
    Session::builder("reentrant").directory(dir).sensors(None).on_warning(|w| panic!("{w}")).start()
}

fn set_track(new: Option<Track>) {
    let old = TRACK.with(|track| track.replace(new));
    drop(old);
}

/// A name that ends the thread's track, and may open another, when it is asked for.
struct TrackEndingName {
    opens: bool,
}

impl From<TrackEndingName> for NameRef {
    fn from(ends: TrackEndingName) -> Self {
        set_track(None);
        // Memory that was the track's is somebody else's now.
        std::hint::black_box(vec![0xA5_u8; 4096]);
        if ends.opens {
            set_track(Some(track("the next one", TrackRole::Training)));
        }
        Self::from(&LAYER)
    }
}

#[test]
fn a_name_that_ends_the_track_leaves_nothing_to_record_to() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    let session = session(temp.path());
    let dir = session.dir().unwrap().to_owned();
    let records: [fn(); 3] = [
        || drop(span(TrackEndingName { opens: false })),
        || counter(TrackEndingName { opens: false }, 1.0),
        || mark(TrackEndingName { opens: false }, None),
    ];
    for record in records {
        set_track(Some(session.track("train", TrackRole::Training)));
        record();
    }
    drop(session);
    let stream = RecordedStream::from_session(&dir);
    assert!(stream.ended && stream.damage.is_empty());
    assert_eq!(stream.events().count(), 0);
}

#[test]
fn a_name_that_opens_a_track_is_recorded_there() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    let session = session(temp.path());
    let dir = session.dir().unwrap().to_owned();
    set_track(Some(session.track("train", TrackRole::Training)));
    drop(span(TrackEndingName { opens: true }));
    counter(TrackEndingName { opens: true }, 1.0);
    set_track(None);
    drop(session);
    let stream = RecordedStream::from_session(&dir);
    let of_next: Vec<_> =
        stream.blocks.iter().map(|(info, events)| (stream.tracks[&info.track].as_str(), events.len())).collect();
    assert_eq!(of_next, [("the next one", 1), ("the next one", 1)]);
}

/// What a pool or stream of the program does when it is asked.
type Action = fn();

struct ActingPool(Action);

impl Pool for ActingPool {
    fn read(&mut self) -> Option<PoolUse> {
        self.0();
        Some(PoolUse::default())
    }

    fn reset_peaks(&mut self) {
        self.0();
    }
}

struct ActingStream {
    device: Arc<Simulated>,
    action: Action,
}

impl DeviceStream for ActingStream {
    fn marks(&self) -> u32 {
        self.device.marks()
    }

    fn record(&self, mark: u32) -> Result<bool, Lost> {
        (self.action)();
        self.device.record(mark)
    }

    fn is_reached(&self, mark: u32) -> Result<bool, Lost> {
        self.device.is_reached(mark)
    }

    fn between_ns(&self, from: u32, to: u32) -> Result<f64, Lost> {
        self.device.between_ns(from, to)
    }

    fn wait(&self) -> Result<(), Lost> {
        (self.action)();
        self.device.wait()
    }
}

/// Trains on a device whose pool and stream do this whenever they are asked, and reads everything back.
fn train_with(deed: Action) -> RecordedStream {
    let temp = tempfile::tempdir().unwrap();
    let session = session(temp.path());
    let dir = session.dir().unwrap().to_owned();
    set_track(Some(session.track("train", TrackRole::Training)));
    let stream = Arc::new(ActingStream { device: Simulated::new(DeviceModel::default()), action: deed });
    Attach::new("doing").stream(stream).pool(Box::new(ActingPool(deed))).synchronise(true).start();
    for _ in 0..3 {
        let _step = step(0);
        drop(span(&phase::FORWARD));
        let _backward = span(&phase::BACKWARD);
        drop(span(&LAYER));
    }
    set_track(None);
    drop(session);
    let stream = RecordedStream::from_session(&dir);
    assert!(stream.ended && stream.damage.is_empty());
    stream
}

#[test]
fn a_pool_and_a_stream_may_open_phases_and_steps() {
    let _alone = alone();
    let stream = train_with(|| {
        let _step = step(1);
        let _sample = span(&phase::SAMPLE);
        let _layer = span(&LAYER);
        device::report_holdings(Holdings::default());
        assert_eq!(device::memory(), None, "a pool that asks for its own report");
    });
    assert_eq!(stream.spans("forward").len(), 3);
    assert_eq!(stream.spans("backward").len(), 3);
    assert!(stream.spans("sample").len() > 6);
}

#[test]
fn a_pool_and_a_stream_may_end_the_track() {
    let _alone = alone();
    let stream = train_with(|| {
        set_track(None);
        std::hint::black_box(vec![0xA5_u8; 4096]);
    });
    assert_eq!(stream.spans("backward").len(), 0, "the track is gone by then");
}

#[test]
fn a_pool_and_a_stream_may_open_the_next_track() {
    let _alone = alone();
    let stream = train_with(|| set_track(Some(track("the next one", TrackRole::Training))));
    assert!(stream.tracks.values().any(|name| name == "the next one"));
}
