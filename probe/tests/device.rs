//! What is published of a device, on one that is simulated.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::alone;
use crate::reading::RecordedStream;
use gnntop_probe::device::{self, Attach, Holdings};
use gnntop_probe::{Name, Session, TrackRole, phase, span, step};
use gnntop_simulated::{DeviceModel, Simulated, SimulatedPool};
use gnntop_wire::{DeviceSpan, Event, NameId, StepId};

static LAYER: Name = Name::span("layer");

fn session(dir: &Path) -> Session {
    Session::builder("device").directory(dir).sensors(None).on_warning(|w| panic!("{w}")).start()
}

/// When the device reached the marks of a span or step, on the host's clock.
#[derive(Debug, PartialEq)]
struct Truth {
    step: u64,
    begin_ns: u64,
    end_ns: u64,
}

/// Steps of two phases; the host hands work over and, `reads`, reads a result back at the end of each step.
fn train(device: &Simulated, steps: u64, reads: bool) -> Vec<Truth> {
    let mut truth = Vec::new();
    for number in 1..=steps {
        let whole = step(0);
        for (name, time) in [(&phase::FORWARD, 300), (&phase::BACKWARD, 700)] {
            let phase = span(name);
            let begin_ns = device.last_reached_ns();
            {
                let _layer = span(&LAYER);
                device.work(Duration::from_micros(time));
            }
            drop(phase);
            truth.push(Truth { step: number, begin_ns, end_ns: device.last_reached_ns() });
        }
        if reads {
            device.read_back();
        }
        drop(whole);
    }
    truth
}

/// Publishes a training on a device and reads everything back.
fn run(nature: DeviceModel, steps: u64, reads: bool) -> (RecordedStream, Vec<Truth>, Arc<Simulated>) {
    let temp = tempfile::tempdir().unwrap();
    let session = session(temp.path());
    let dir = session.dir().unwrap().to_owned();
    let device = Simulated::new(nature);
    let track = session.track("train", TrackRole::Training);
    assert!(Attach::new("a device").stream(device.clone()).start());
    let truth = train(&device, steps, reads);
    device.read_back();
    std::thread::sleep(Duration::from_millis(60));
    drop((track, session));
    let stream = RecordedStream::from_session(&dir);
    assert!(stream.ended && stream.damage.is_empty());
    (stream, truth, device)
}

/// What the device's clock says of spans, and of whole steps.
fn device_spans(stream: &RecordedStream) -> (Vec<DeviceSpan>, Vec<DeviceSpan>) {
    let all = stream.events().filter_map(|e| if let Event::DeviceSpan(span) = e { Some(span) } else { None });
    all.partition(|span| span.name != NameId::NONE)
}

fn assert_true(spans: &[DeviceSpan], truth: &[Truth]) {
    assert_eq!(spans.len(), truth.len());
    for (span, truth) in spans.iter().zip(truth) {
        assert_eq!(span.step.0, truth.step);
        for (mapped, true_ns) in [(span.start_ns, truth.begin_ns), (span.end_ns, truth.end_ns)] {
            assert!(mapped.abs_diff(true_ns) <= span.error_ns, "{} off: {span:?}", mapped.abs_diff(true_ns));
        }
        let (device, real) = (span.end_ns - span.start_ns, truth.end_ns - truth.begin_ns);
        assert!(device.abs_diff(real) <= 2_000 + real / 500, "durations are the device's own: {device} of {real}");
    }
    for pair in spans.windows(2) {
        assert!(pair[0].end_ns <= pair[1].start_ns, "{pair:?}");
    }
}

#[test]
fn device_spans_are_within_stated_error_without_waiting() {
    let _alone = alone();
    let (stream, truth, device) = run(DeviceModel::default(), 60, true);
    let (spans, steps) = device_spans(&stream);
    assert_true(&spans, &truth);
    assert_eq!(stream.dropped(), 0);
    assert_eq!(device.waits.load(Ordering::Relaxed), 0);
    let names: Vec<String> = spans.iter().take(4).map(|span| stream.name(span.name)).collect();
    assert_eq!(names, ["forward", "backward", "forward", "backward"], "no layers unless asked for");
    assert_eq!(steps.len(), 60);
    for pair in steps.windows(2) {
        assert_eq!((pair[0].end_ns, pair[0].step.0 + 1), (pair[1].start_ns, pair[1].step.0), "steps tile the clock");
    }
    for span in &spans {
        let of = steps.iter().find(|step| step.step == span.step).unwrap();
        assert!(of.start_ns <= span.start_ns && span.end_ns <= of.end_ns, "{span:?} in {of:?}");
        let host = stream.spans(&stream.name(span.name));
        let host = host.iter().find(|host| host.step == span.step).unwrap();
        assert_eq!((host.start_ns, host.end_ns), (span.issued_start_ns, span.issued_end_ns));
    }
    assert_eq!(stream.spans("forward").len(), 60, "the host's spans are there as ever");
}

#[test]
fn drifting_device_without_waits_is_timed() {
    let _alone = alone();
    let (stream, truth, _) = run(DeviceModel { drift: -90e-6, ..DeviceModel::default() }, 150, false);
    assert_true(&device_spans(&stream).0, &truth);
}

#[test]
fn late_or_unordered_answers_change_no_time() {
    let _alone = alone();
    let (stream, truth, _) = run(DeviceModel { lag: Duration::from_micros(18), ..DeviceModel::default() }, 60, true);
    assert_true(&device_spans(&stream).0, &truth);
}

#[test]
fn without_a_free_mark_spans_go_untimed_and_are_counted() {
    let _alone = alone();
    let (stream, truth, _) = run(DeviceModel { marks: 16, ..DeviceModel::default() }, 40, false);
    let (spans, steps) = device_spans(&stream);
    assert!(stream.dropped() > 0 && !spans.is_empty());
    assert_eq!(spans.len() as u64 + steps.len() as u64 + stream.dropped(), truth.len() as u64 + 40);
    assert_eq!(stream.spans("forward").len(), 40, "the host's spans do not depend on it");
    for span in spans {
        let known =
            |truth: &&Truth| truth.step == span.step.0 && span.start_ns.abs_diff(truth.begin_ns) <= span.error_ns;
        assert!(truth.iter().any(|truth| known(&truth)), "{span:?}");
    }
}

#[test]
fn lost_device_reports_reason_and_training_continues() {
    let _alone = alone();
    let (stream, truth, _) = run(DeviceModel { lost_after: 108, ..DeviceModel::default() }, 40, true);
    let (spans, _) = device_spans(&stream);
    assert!(spans.len() < truth.len());
    assert_eq!((stream.steps().len(), stream.spans("backward").len()), (40, 40));
    let marks =
        stream.events().filter_map(|e| if let Event::Mark(mark) = e { Some(stream.name(mark.name)) } else { None });
    assert_eq!(marks.collect::<Vec<_>>(), ["device time ends: it fell off the bus"]);
}

#[test]
fn unusable_device_is_harmless() {
    let _alone = alone();
    for nature in
        [DeviceModel { lost_after: 0, ..DeviceModel::default() }, DeviceModel { marks: 3, ..DeviceModel::default() }]
    {
        let temp = tempfile::tempdir().unwrap();
        let session = session(temp.path());
        let dir = session.dir().unwrap().to_owned();
        let device = Simulated::new(nature);
        let track = session.track("train", TrackRole::Training);
        Attach::new("a device").stream(device.clone()).start();
        train(&device, 3, true);
        drop((track, session));
        let stream = RecordedStream::from_session(&dir);
        assert_eq!((stream.steps().len(), device_spans(&stream).0.len(), stream.ended), (3, 0, true));
    }
}

#[test]
fn unreached_spans_at_end_are_counted() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    let session = session(temp.path());
    let dir = session.dir().unwrap().to_owned();
    let device = Simulated::new(DeviceModel::default());
    let track = session.track("train", TrackRole::Training);
    Attach::new("a device").stream(device.clone()).start();
    train(&device, 2, true);
    {
        let _step = step(0);
        let _forward = span(&phase::FORWARD);
        device.work(Duration::from_secs(3600));
    }
    drop((track, session));
    let stream = RecordedStream::from_session(&dir);
    assert_eq!((device_spans(&stream).0.len(), device_spans(&stream).1.len()), (4, 2));
    assert_eq!(stream.dropped(), 2, "the phase and its step");
}

#[test]
fn synchronise_puts_device_time_on_host_clock() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    let session = session(temp.path());
    let dir = session.dir().unwrap().to_owned();
    let device = Simulated::new(DeviceModel::default());
    let track = session.track("train", TrackRole::Training);
    assert!(Attach::new("a device").stream(device.clone()).synchronise(true).every_span(true).start());
    assert!(!Attach::new("another").stream(device.clone()).start(), "a track has one device");
    train(&device, 10, false);
    drop((track, session));
    let stream = RecordedStream::from_session(&dir);
    assert_eq!(device.waits.load(Ordering::Relaxed), 40, "both ends of each phase, and of no layer");
    for (host, least) in [("forward", 300_000), ("backward", 700_000)] {
        assert!(stream.spans(host).iter().all(|span| span.end_ns - span.start_ns >= least), "{host}");
    }
    let layers = device_spans(&stream).0.into_iter().filter(|span| stream.name(span.name) == "layer").count();
    assert_eq!(layers, 20);
}

#[test]
fn without_a_track_nothing_is_attached() {
    let _alone = alone();
    let device = Simulated::new(DeviceModel::default());
    assert!(!Attach::new("a device").stream(device.clone()).start());
    assert_eq!((device.queries.load(Ordering::Relaxed), device::memory()), (0, None));
}

/// The values of a counter.
fn counter(stream: &RecordedStream, name: &str) -> Vec<f64> {
    let all = stream
        .events()
        .filter_map(|e| if let Event::Counter(c) = e { Some((stream.name(c.name), c.value)) } else { None });
    all.filter(|(of, _)| of == name).map(|(_, value)| value).collect()
}

#[test]
fn device_memory_is_reported_by_phase_and_kind() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    let session = session(temp.path());
    let dir = session.dir().unwrap().to_owned();
    let pool = SimulatedPool::new(10_000);
    let track = session.track("train", TrackRole::Training);
    pool.allocate(300).unwrap();
    assert!(Attach::new("a device").pool(Box::new(pool.clone())).start());
    device::report_holdings(Holdings { parameters: 100, gradients: 100, optimizer: 200 });
    memory_step(&pool);
    let reads = pool.reads();
    memory_step(&pool);
    assert_eq!(pool.reads(), reads, "a tenth of a second has not passed: nothing is read");
    drop((track, session));
    let stream = RecordedStream::from_session(&dir);
    for (name, value) in [
        ("device memory used", 300.0),
        ("device memory peak", 1_150.0),
        ("device memory reserved", 1_150.0),
        ("device memory free", 8_850.0),
        ("device memory total", 10_000.0),
        ("device memory allocations", 4.0),
        ("device memory peak in forward", 950.0),
        ("device memory peak in backward", 1_150.0),
        ("device memory reserved peak in backward", 1_150.0),
        ("device memory of parameters", 100.0),
        ("device memory of batch", 50.0),
        ("device memory of activations", 400.0),
        ("device memory of workspace", 300.0),
    ] {
        assert_eq!(counter(&stream, name), [value], "{name}");
    }
}

/// A batch of 50, activations of 400, 200 more while they are computed; then 400 while gradients are.
fn memory_step(pool: &SimulatedPool) {
    let _step = step(0);
    {
        let _transfer = span(&phase::TRANSFER);
        pool.allocate(50).unwrap();
    }
    {
        let _forward = span(&phase::FORWARD);
        pool.allocate(400).unwrap();
        pool.allocate(200).unwrap();
        pool.free(200);
    }
    {
        let _backward = span(&phase::BACKWARD);
        pool.allocate(400).unwrap();
    }
    pool.free(850);
}

#[test]
fn out_of_memory_report_names_phase_and_holders() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    let session = session(temp.path());
    let dir = session.dir().unwrap().to_owned();
    let pool = SimulatedPool::new(1_200);
    let track = session.track("train", TrackRole::Training);
    pool.allocate(300).unwrap();
    Attach::new("a device").pool(Box::new(pool.clone())).start();
    device::report_holdings(Holdings { parameters: 100, gradients: 100, optimizer: 200 });
    memory_step(&pool);
    {
        let _step = step(0);
        let _forward = span(&phase::FORWARD);
        pool.allocate(700).unwrap();
        pool.allocate(900).unwrap_err();
        pool.free(700);
    }
    let report = device::memory().unwrap();
    assert_eq!((report.phase.as_deref(), report.step, report.peak), (Some("forward"), 2, 1_000));
    assert_eq!((report.now.used, report.now.free), (300, 50));
    assert_eq!(report.holders[..2], [("activations", 400), ("workspace", 300)]);
    drop((track, session));
    let stream = RecordedStream::from_session(&dir);
    assert_eq!((stream.steps().len(), stream.ended), (2, true), "what was recorded before is whole");
    assert_eq!(stream.steps()[1].step, StepId(2));
}
