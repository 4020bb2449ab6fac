//! A program with `tracing` spans of its own, shown without a change.

use crate::alone;
use crate::reading::RecordedStream;
use gnntop_probe::{Session, TracingLayer, TrackRole};
use tracing::info_span;
use tracing_subscriber::layer::SubscriberExt;

#[test]
fn tracing_spans_become_spans_and_phases() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    let session = Session::builder("traced").directory(temp.path()).sensors(None).start();
    let dir = session.dir().unwrap().to_owned();
    let track = session.track("train", TrackRole::Training);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(TracingLayer), || {
        for _ in 0..3 {
            let _forward = info_span!("forward").entered();
            let _layer = info_span!("attention", layer = 3).entered();
        }
        let reentered = info_span!("twice");
        reentered.in_scope(|| ());
        reentered.in_scope(|| ());
    });
    drop((track, session));

    let stream = RecordedStream::from_session(&dir);
    assert_eq!(stream.spans("forward").len(), 3);
    assert_eq!(stream.spans("attention").len(), 3);
    assert_eq!(stream.spans("twice").len(), 2);
    let (forward, attention) = (stream.spans("forward")[0], stream.spans("attention")[0]);
    assert!(forward.start_ns <= attention.start_ns && attention.end_ns <= forward.end_ns);
    assert_eq!(stream.phases(), ["forward"]);
}
