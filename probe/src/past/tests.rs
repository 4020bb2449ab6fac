//! Sessions of which most was dropped, as a late viewer sees them, compared with everything ever published.

use std::time::Duration;

use gnntop_analysis::source::{Live, Source};
use gnntop_analysis::store::{StepStatistics, Store};
use gnntop_fixtures::{MS, SECOND, START_NS, StreamBuilder, each_item, session_info};
use gnntop_wire::{
    BatchShape, Counter, Definition, Event, Item, NameId, NameKind, SessionInfo, SignalId, SignalKind, Span, Step,
    StepId, TrackId, TrackRole, Unit, put_definitions, put_segment,
};

use crate::output::Output;

/// A training run published with its own clock, as fast as it can be written.
struct LongRun {
    stream: StreamBuilder,
    definitions: Vec<Definition>,
    info: SessionInfo,
    main: TrackId,
    sensors: TrackId,
    loader: TrackId,
    phases: [NameId; 4],
    layer: NameId,
    collate: NameId,
    queue: NameId,
    signals: Vec<SignalId>,
    now_ns: u64,
    step: u64,
    /// Everything, if it is to be compared.
    all: Option<Vec<u8>>,
}

impl LongRun {
    fn new(signals: usize, keeps_all: bool) -> Self {
        let mut stream = StreamBuilder::new("long");
        let [main, sensors, loader] = [
            stream.track(TrackRole::Training, "main"),
            stream.track(TrackRole::Sensors, "sensors"),
            stream.track(TrackRole::Loader, "loader"),
        ];
        let phases = ["data wait", "forward", "backward", "optimizer"].map(|name| stream.name(NameKind::Phase, name));
        let [layer, collate] = ["layer", "collate"].map(|name| stream.name(NameKind::Span, name));
        let queue = stream.name(NameKind::Counter, "queue");
        stream.name(NameKind::Text, "gc");
        let signal = |at| {
            let (unit, kind) =
                if at % 2 == 0 { (Unit::Bytes, SignalKind::Gauge) } else { (Unit::Count, SignalKind::Counter) };
            stream.signal(&format!("signal.{at}"), unit, kind)
        };
        let signals = (0..signals).map(signal).collect();
        let head = stream.take_bytes();
        let mut definitions = Vec::new();
        each_item(&head, |item| {
            if let Item::Definitions(some) = item {
                definitions.extend(some);
            }
        });
        let info = session_info("long");
        let all = keeps_all.then_some(head);
        let (now_ns, step) = (START_NS, 0);
        Self {
            stream,
            definitions,
            info,
            main,
            sensors,
            loader,
            phases,
            layer,
            collate,
            queue,
            signals,
            now_ns,
            step,
            all,
        }
    }

    /// A second of it: 200 steps of about 5 ms, ten readings of each signal.
    fn second(&mut self) -> Vec<u8> {
        let until_ns = self.now_ns + SECOND;
        let mut sample_ns = self.now_ns;
        while self.now_ns < until_ns {
            self.push_step();
            if self.now_ns >= sample_ns {
                self.sample();
                sample_ns += 100 * MS;
            }
        }
        self.stream.anchor(self.now_ns);
        let bytes = self.stream.take_bytes();
        if let Some(all) = &mut self.all {
            all.extend_from_slice(&bytes);
        }
        bytes
    }

    fn push_step(&mut self) {
        self.step += 1;
        let (n, start_ns) = (self.step, self.now_ns);
        // Every 9,973rd is slow, and none is like the others.
        let jitter_ns = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 44;
        let slow_ns = if n.is_multiple_of(9973) { 40 * MS + n % 1000 * 1000 } else { 0 };
        let mut t_ns = start_ns + 10_000;
        let lengths_ns = [300_000 + slow_ns, MS + jitter_ns, 3 * MS, 150_000];
        for (at, ns) in lengths_ns.into_iter().enumerate() {
            if at == 1 {
                for layer in 0..3 {
                    self.span(self.main, self.layer, t_ns + layer * 300_000, 250_000);
                }
            }
            self.span(self.main, self.phases[at], t_ns, ns);
            t_ns += ns;
        }
        let end_ns = t_ns + 10_000;
        self.span(self.loader, self.collate, start_ns, 2 * MS);
        let queue = Counter { name: self.queue, t_ns: start_ns + 2 * MS, value: (n % 5) as f64 };
        self.stream.event(self.loader, Event::Counter(queue));
        let step = Step {
            step: StepId(n),
            epoch: n / 100_000,
            start_ns,
            end_ns,
            batch: BatchShape { graphs: Some(32), ..BatchShape::default() },
            loss: Some(1.0 / (1.0 + n as f64)),
            usage: None,
            is_traced: false,
        };
        self.stream.event(self.main, Event::Step(step));
        if n.is_multiple_of(4999) {
            self.stream.mark(self.main, "gc", end_ns);
        }
        self.now_ns = end_ns;
    }

    fn span(&mut self, track: TrackId, name: NameId, start_ns: u64, ns: u64) {
        let span = Span { name, start_ns, end_ns: start_ns + ns, step: StepId(self.step) };
        self.stream.event(track, Event::Span(span));
    }

    fn sample(&mut self) {
        for (at, signal) in (0u64..).zip(self.signals.clone()) {
            let value = if at.is_multiple_of(2) {
                4_000_000_000 + (self.now_ns / MS * (at + 7)) % 100_000_000 * u64::from(at.is_multiple_of(3))
            } else {
                self.now_ns / 1000 * at
            };
            self.stream.sample(self.sensors, signal, self.now_ns, value as i64);
        }
    }

    /// Publishes another second of it.
    fn publish(&mut self, output: &mut Output) {
        if self.info.segment == 0 || output.is_segment_full() {
            let mut head = Vec::new();
            put_segment(&mut head, &self.info);
            put_definitions(&mut head, &self.definitions);
            output.begin_segment().unwrap();
            output.write(&head).unwrap();
            self.info.segment += 1;
        }
        let bytes = self.second();
        output.write(&bytes).unwrap();
    }
}

fn read_session(dir: &std::path::Path) -> (Store, u64) {
    let (mut live, mut store) = (Live::follow(dir), Store::new());
    while live.poll(&mut store, Duration::from_secs(60)).more {}
    (store, live.status().lost_segments)
}

fn read_all_events(run: &LongRun) -> Store {
    let mut store = Store::new();
    each_item(run.all.as_ref().unwrap(), |item| store.apply(item));
    store
}

/// A session with room for this many segments of 64 KiB, and as much for its past.
fn small(dir: &std::path::Path, segments: u64) -> Output {
    let mut output = Output::session(dir, "long-1-0", 0).unwrap();
    output.shrink(64 << 10, segments * (64 << 10));
    output
}

/// Figures since the start that must be exact.
fn figures(store: &Store) -> Vec<(String, u64, u64, [Option<u64>; 5])> {
    let of = |name: &str| {
        let d = store.distribution(name).unwrap_or_else(|| panic!("{name}"));
        let percentiles = [d.min_ns(), d.percentile(0.5), d.percentile(0.9), d.percentile(0.99), d.max_ns()];
        (name.to_owned(), d.count(), d.total_ns(), percentiles)
    };
    ["step", "period", "gap", "data wait", "forward", "backward", "optimizer", "layer", "collate"].map(of).to_vec()
}

#[test]
fn figures_cover_dropped_segments() {
    let temp = tempfile::tempdir().unwrap();
    let (mut run, mut output) = (LongRun::new(6, true), small(temp.path(), 6));
    (0..200).for_each(|_| run.publish(&mut output));
    let dir = temp.path().join("long-1-0");
    let (late, all) = (read_session(&dir), read_all_events(&run));
    let (late, lost_segments) = late;
    assert!(late.session().segments() < run.info.segment, "most of it was dropped");
    assert_eq!(lost_segments, 0);
    assert_eq!(figures(&late), figures(&all));
    assert_eq!(late.statistics().batch(), all.statistics().batch());
    assert_eq!(late.steps().total(), all.steps().total());
    assert_eq!(late.statistics().epochs(), all.statistics().epochs());
    assert_eq!(late.statistics().first_loss(), all.statistics().first_loss());
    assert_eq!((late.losses().missed_events, late.losses().missing_steps), (0, 0), "{:?}", late.losses());
    assert_eq!((late.first_ns(), late.now_ns()), (all.first_ns(), all.now_ns()));
    assert_eq!(late.training_track().map(|track| track.events), all.training_track().map(|track| track.events));
    let spread = |store: &Store| store.statistics().period().sd_ns().unwrap();
    assert!((spread(&late) / spread(&all) - 1.0).abs() < 1e-6);
    for (past, whole) in late.signals().all().iter().zip(all.signals().all()) {
        let (past, whole) = (past.series.summary(), whole.series.summary());
        assert_eq!((past.count, past.min, past.max), (whole.count, whole.min, whole.max));
        assert!((past.sum / whole.sum - 1.0).abs() < 1e-9, "{past:?} {whole:?}");
    }
    let marks = |store: &Store| store.marks().iter().map(|mark| mark.t_ns).collect::<Vec<_>>();
    assert_eq!(marks(&late), marks(&all));
}

#[test]
fn any_part_of_the_past_has_percentiles() {
    let temp = tempfile::tempdir().unwrap();
    let (mut run, mut output) = (LongRun::new(2, true), small(temp.path(), 6));
    (0..200).for_each(|_| run.publish(&mut output));
    let ((late, _), all) = (read_session(&temp.path().join("long-1-0")), read_all_events(&run));
    let kept_from = late.steps().discarded();
    for range in [0..kept_from / 2, kept_from / 4..kept_from, kept_from / 2..kept_from + 500] {
        let (found, exact) =
            (late.steps().statistics(range.clone()), StepStatistics::from_rows(all.steps().rows(range.clone())));
        let steps = exact.steps() as f64;
        assert!((found.steps() as f64 / steps - 1.0).abs() < 0.05, "{} of {steps} in {range:?}", found.steps());
        let forward = late.phase("forward").unwrap().slot;
        let pairs = [
            (found.period(), exact.period()),
            (found.step(), exact.step()),
            (found.phase(forward).unwrap(), exact.phase(forward).unwrap()),
        ];
        for (found, exact) in pairs {
            for quantile in [0.5, 0.9, 0.99, 0.999] {
                let [found, exact] = [found, exact].map(|all| all.percentile(quantile).unwrap() as f64);
                assert!((found / exact - 1.0).abs() < 0.05, "p{quantile}: {found} for {exact} in {range:?}");
            }
        }
    }
}

#[test]
fn charts_cover_run_and_slowest_steps_have_spans() {
    let temp = tempfile::tempdir().unwrap();
    let (mut run, mut output) = (LongRun::new(2, true), small(temp.path(), 6));
    (0..200).for_each(|_| run.publish(&mut output));
    let ((late, _), all) = (read_session(&temp.path().join("long-1-0")), read_all_events(&run));
    let columns = late.steps().columns(0..late.steps().total(), 50);
    assert_eq!(
        columns.iter().map(|column| column.steps).sum::<u64>(),
        late.steps().total(),
        "each step is in a column"
    );
    assert!(columns.len() > 25 && columns[0].is_reduced && !columns.last().unwrap().is_reduced);
    for column in &columns {
        let exact = all.steps().row(column.worst.ordinal()).unwrap();
        assert_eq!((column.worst.period_ns(), column.worst.step()), (exact.period_ns(), exact.step()));
        let slowest = all.steps().rows(column.ordinals()).map(|row| row.period_ns()).max();
        assert_eq!(Some(column.worst.period_ns()), slowest, "no spike is hidden");
        let (median, phase) = (&column.median, late.phase("backward").unwrap().slot);
        assert_eq!(median.phase_ns(phase), 3 * MS);
    }
    for n in (9973..all.steps().total()).step_by(9973).filter(|n| n - 1 < late.steps().discarded()) {
        let slow = late.steps().slow().get(n - 1).unwrap_or_else(|| panic!("step {n}"));
        let exact = all.steps().row(n - 1).unwrap();
        assert_eq!((slow.row().period_ns(), slow.row().gap_ns()), (exact.period_ns(), exact.gap_ns()));
        let names: Vec<&str> = slow.spans().iter().map(|span| late.name(span.name)).collect();
        assert_eq!(names, ["data wait", "layer", "layer", "layer", "forward", "backward", "optimizer"]);
    }
}

#[test]
fn killed_run_is_complete_up_to_kill() {
    let temp = tempfile::tempdir().unwrap();
    let (mut run, mut output) = (LongRun::new(2, true), small(temp.path(), 4));
    for _ in 0..50 {
        (0..3).for_each(|_| run.publish(&mut output));
        // What is on disk is all that remains of a program killed now.
        let (late, lost) = read_session(&temp.path().join("long-1-0"));
        let all = read_all_events(&run);
        assert_eq!((lost, late.losses().missed_events), (0, 0));
        assert_eq!(figures(&late)[1], figures(&all)[1], "after {} steps", run.step);
    }
}

#[test]
fn kill_between_files_loses_and_repeats_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let (mut run, mut output) = (LongRun::new(2, true), small(temp.path(), 4));
    (0..60).for_each(|_| run.publish(&mut output));
    let dir = temp.path().join("long-1-0");
    let before = tempfile::tempdir().unwrap();
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    };
    copy(&dir, before.path());
    let figures_before = figures(&read_session(&dir).0)[1].clone();
    // The segment that the past already has still exists, and slices were appended that the past does not know.
    while output.oldest_segment() == oldest(before.path()) {
        run.publish(&mut output);
    }
    for entry in std::fs::read_dir(&dir).unwrap().map(Result::unwrap) {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with("past-") {
            std::fs::copy(entry.path(), before.path().join(name)).unwrap();
        }
    }
    let (late, lost) = read_session(before.path());
    assert_eq!((figures(&late)[1].clone(), lost), (figures_before.clone(), 0));
    std::fs::copy(dir.join("past"), before.path().join("past")).unwrap();
    let (late, lost) = read_session(before.path());
    assert_eq!((figures(&late)[1].clone(), lost), (figures_before, 0), "a segment in both counts once");
}

fn oldest(dir: &std::path::Path) -> Option<u64> {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter_map(|name| gnntop_sessions::layout::segment_number(&name)).min()
}

#[test]
fn a_damaged_past_falls_back_to_the_segments() {
    let temp = tempfile::tempdir().unwrap();
    let (mut run, mut output) = (LongRun::new(2, false), small(temp.path(), 4));
    (0..60).for_each(|_| run.publish(&mut output));
    let dir = temp.path().join("long-1-0");
    let steps = |dir: &std::path::Path| read_session(dir).0.statistics().steps();
    assert_eq!(steps(&dir), run.step);
    let mut past = std::fs::read(dir.join("past")).unwrap();
    let middle = past.len() / 2;
    past[middle] ^= 0x55;
    std::fs::write(dir.join("past"), &past).unwrap();
    let left = steps(&dir);
    assert!(left > 0 && left < run.step, "{left} of {}", run.step);
    std::fs::remove_file(dir.join("past")).unwrap();
    assert_eq!(steps(&dir), left);
}

#[test]
fn two_viewers_see_same_past_and_short_run_has_none() {
    let temp = tempfile::tempdir().unwrap();
    let (mut run, mut output) = (LongRun::new(2, false), small(temp.path(), 4));
    let dir = temp.path().join("long-1-0");
    run.publish(&mut output);
    assert!(!dir.join("past").exists());
    let (mut early, mut seen) = (Live::follow(&dir), Store::new());
    for _ in 0..60 {
        while early.poll(&mut seen, Duration::from_secs(60)).more {}
        run.publish(&mut output);
    }
    while early.poll(&mut seen, Duration::from_secs(60)).more {}
    let (late, _) = read_session(&dir);
    assert_eq!(figures(&seen), figures(&late));
}

fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim().to_owned()
}

/// `cargo test --release -p gnntop-probe --lib a_long_time -- --ignored --nocapture`; `DAYS=30` for a month.
#[test]
#[ignore = "takes minutes: a run of days at full rate"]
fn long_run_uses_bounded_disk() {
    let days: f64 = std::env::var("DAYS").ok().and_then(|days| days.parse().ok()).unwrap_or(1.0);
    let temp = tempfile::tempdir().unwrap();
    let (mut run, mut output) = (LongRun::new(50, false), Output::session(temp.path(), "long-1-0", 64 << 20).unwrap());
    let (dir, began) = (temp.path().join("long-1-0"), std::time::Instant::now());
    let (mut largest, mut before) = (0, String::new());
    for second in 0..(days * 86400.0) as u64 {
        run.publish(&mut output);
        if !dir.join("past").exists() {
            before = peak_memory();
        }
        if second % 600 == 0 {
            let sizes = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
            largest = largest.max(sizes.sum::<u64>());
        }
    }
    println!("{days} days, {} steps, in {:.0} s", run.step, began.elapsed().as_secs_f64());
    println!("largest: {:.1} MiB on disk", largest as f64 / f64::from(1 << 20));
    println!("memory: {before} before anything was dropped, {} at most", peak_memory());
    let began = std::time::Instant::now();
    let (late, _) = read_session(&dir);
    println!("looked at in {:.3} s: {} steps", began.elapsed().as_secs_f64(), late.statistics().steps());
    assert_eq!(late.statistics().steps(), run.step);
    assert!(largest <= 64 << 20);
}
