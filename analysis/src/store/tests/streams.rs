//! The store as a whole: streams in, figures out.

use gnntop_wire::{Definition, Fact, Framework, Item, NameKind, Quantity, SignalKind, TrackId, TrackRole, Unit};

use crate::store::*;
use gnntop_fixtures::{MS, SECOND, START_NS, START_WALL_NS, StreamBuilder, TrainingRun, each_item};

fn store(bytes: &[u8]) -> Store {
    let mut store = Store::new();
    each_item(bytes, |item| store.apply(item));
    store
}

fn training() -> (StreamBuilder, TrackId) {
    let mut stream = StreamBuilder::new("test");
    let track = stream.track(TrackRole::Training, "main");
    (stream, track)
}

/// Times of one row by phase, with the gap.
fn row_ns(store: &Store, ordinal: u64) -> Vec<(String, u64)> {
    let row = store.steps().row(ordinal).unwrap();
    store.phases().iter().map(|phase| (phase.text.clone(), row.phase_ns(phase.slot))).collect()
}

fn named(times: &[(&str, u64)]) -> Vec<(String, u64)> {
    times.iter().map(|(text, ns)| (text.to_string(), *ns)).collect()
}

#[test]
fn store_matches_simple_run() {
    let store = store(&TrainingRun::default().bytes());
    assert_eq!(store.session().info().unwrap().name, "pna");
    assert!(matches!(store.session().state(), SessionState::Ended(_)));
    assert_eq!((store.steps().total(), store.statistics().epochs()), (100, 4));
    let order: Vec<&str> = store.phases().iter().map(|phase| phase.text.as_str()).collect();
    assert_eq!(order, ["data wait", "forward", "backward", "optimizer", "gap"]);
    assert_eq!(
        row_ns(&store, 1),
        named(&[
            ("data wait", 4 * MS),
            ("forward", 10 * MS),
            ("backward", 22 * MS),
            ("optimizer", 3 * MS),
            ("gap", MS),
        ])
    );
    let row = store.steps().row(1).unwrap();
    assert_eq!((row.step().0, row.epoch(), row.period_ns()), (2, 0, 40 * MS));
    assert_eq!(row.batch().graphs, Some(256));
    assert_eq!(row.loss(), Some(0.5));
    assert_eq!(row.usage().unwrap().minor_faults, 3);
    assert_eq!(store.percentile("backward", 0.5).unwrap() / 10_000, 2200);
    assert_eq!(store.percentile("period", 1.0), Some(40 * MS));
    assert_eq!(store.percentile("step", 1.0), Some(39 * MS), "without the gap before it");
    assert_eq!(store.percentile("layer 0", 1.0), Some(5 * MS));
    assert_eq!(store.percentile("nothing", 0.5), None);
    assert!(store.losses().is_complete(), "{:?}", store.losses());
    assert_eq!(store.session().wall_ns(START_NS + SECOND), Some(START_WALL_NS + SECOND));
}

#[test]
fn phases_between_steps_belong_to_the_next_one() {
    let (mut stream, main) = training();
    stream.step(main, 1, START_NS, START_NS + 10);
    stream.phase(main, 0, "data wait", START_NS + 12, START_NS + 18);
    stream.phase(main, 2, "forward", START_NS + 20, START_NS + 27);
    stream.step(main, 2, START_NS + 20, START_NS + 30);
    let store = store(&stream.bytes());
    assert_eq!(row_ns(&store, 0), named(&[("data wait", 0), ("forward", 0), ("gap", 10)]));
    assert_eq!(row_ns(&store, 1), named(&[("data wait", 6), ("forward", 7), ("gap", 7)]));
    assert_eq!(store.steps().row(1).unwrap().period_start_ns(), START_NS + 10);
}

#[test]
fn only_the_outermost_phase_counts() {
    let (mut stream, main) = training();
    stream.phase(main, 1, "gather", START_NS + 1, START_NS + 3);
    stream.phase(main, 1, "transfer", START_NS + 4, START_NS + 6);
    stream.phase(main, 1, "forward", START_NS, START_NS + 8);
    stream.step(main, 1, START_NS, START_NS + 10);
    let store = store(&stream.bytes());
    assert_eq!(row_ns(&store, 0), named(&[("gather", 0), ("transfer", 0), ("forward", 8), ("gap", 2)]));
    assert_eq!(store.percentile("gather", 1.0), Some(2), "its own spans are still known");
}

#[test]
fn thread_that_continues_a_training_fills_the_same_table() {
    let (mut stream, main) = training();
    for step in 1..=2 {
        stream.step(main, step, START_NS + 10 * step, START_NS + 10 * step + 10);
    }
    // Another trains meanwhile, and one with the same name does not continue.
    let other = stream.track(TrackRole::Training, "main 2");
    stream.step(other, 3, START_NS + 20, START_NS + 30);
    let again = stream.track(TrackRole::Training, "main");
    stream.step(again, 1, START_NS + 30, START_NS + 35);
    let next = stream.track(TrackRole::Training, "main");
    stream.phase(next, 3, "forward", START_NS + 40, START_NS + 48);
    stream.step(next, 3, START_NS + 40, START_NS + 50);
    let store = store(&stream.bytes());
    assert_eq!((store.steps().total(), store.losses().steps_elsewhere), (3, 2));
    assert_eq!(row_ns(&store, 2), named(&[("forward", 8), ("gap", 2)]));
    assert_eq!(store.training_track().unwrap().id, next);
}

#[test]
fn phases_of_other_threads_do_not_tile() {
    let (mut stream, main) = training();
    let loader = stream.track(TrackRole::Loader, "loader");
    stream.phase(loader, 1, "sample", START_NS, START_NS + 9);
    stream.step(loader, 1, START_NS, START_NS + 9);
    stream.phase(main, 1, "forward", START_NS, START_NS + 8);
    stream.step(main, 1, START_NS, START_NS + 10);
    let store = store(&stream.bytes());
    assert_eq!(row_ns(&store, 0), named(&[("forward", 8), ("gap", 2)]));
    assert_eq!(store.losses().steps_elsewhere, 1);
    assert_eq!(store.training_track().unwrap().text, "main");
}

#[test]
fn track_with_steps_is_training_track() {
    let mut stream = StreamBuilder::new("test");
    let (a, b) = (stream.track(TrackRole::Other, "a"), stream.track(TrackRole::Other, "b"));
    stream.phase(a, 0, "sample", START_NS, START_NS + 9);
    stream.phase(b, 1, "forward", START_NS, START_NS + 8);
    stream.step(b, 1, START_NS, START_NS + 10);
    let store = store(&stream.bytes());
    assert_eq!(store.training_track().unwrap().text, "b");
    let row = store.steps().last().unwrap();
    assert_eq!(row.phase_ns(store.phase("forward").unwrap().slot), 8);
    assert_eq!(row.gap_ns(), 2);
}

#[test]
fn lost_step_does_not_lengthen_next() {
    let (mut stream, main) = training();
    stream.step(main, 1, START_NS, START_NS + 10);
    stream.miss(main, 2);
    stream.step(main, 3, START_NS + 25, START_NS + 35);
    stream.step(main, 4, START_NS + 36, START_NS + 45);
    let store = store(&stream.bytes());
    let periods: Vec<u64> = store.steps().all().map(|row| row.period_ns()).collect();
    assert_eq!(periods, [10, 10, 10]);
    let losses = store.losses();
    assert_eq!((losses.missing_steps, losses.untiled_ns, losses.missed_events), (1, 15, 2));
}

#[test]
fn steps_before_anything_could_be_written_are_missing() {
    let (mut stream, main) = training();
    let fact = Fact::NotRecorded { what: Fact::FIRST_STEPS.to_owned(), amount: "399".to_owned() };
    (0..2).for_each(|_| stream.define(Definition::Fact(fact.clone())));
    stream.step(main, 400, START_NS, START_NS + 10);
    assert_eq!(store(&stream.bytes()).losses().missing_steps, 399);
}

#[test]
fn odd_step_numbers_alone_are_no_loss() {
    let (mut stream, main) = training();
    stream.step(main, 10, START_NS, START_NS + 10);
    stream.step(main, 20, START_NS + 12, START_NS + 20);
    stream.step(main, 5, START_NS + 22, START_NS + 30);
    let store = store(&stream.bytes());
    assert!(store.losses().is_complete());
    assert_eq!(store.statistics().tiled_ns(), 30);
    assert_eq!(store.steps().find_step(gnntop_wire::StepId(20)).unwrap().ordinal(), 1);
}

#[test]
fn more_phases_than_wait_for_a_step_are_still_counted() {
    let (mut stream, main) = training();
    stream.step(main, 1, START_NS, START_NS + 10);
    let mut t_ns = START_NS + 10;
    for _ in 0..10_000 {
        stream.phase(main, 0, "forward", t_ns, t_ns + 3);
        t_ns += 5;
    }
    stream.step(main, 2, t_ns, t_ns + 1);
    let store = store(&stream.bytes());
    assert_eq!(row_ns(&store, 1), named(&[("forward", 30_000), ("gap", 20_001)]));
}

#[test]
fn drops_and_gaps_in_the_sequence_are_counted_by_track() {
    let (mut stream, main) = training();
    stream.mark(main, "a", START_NS);
    stream.miss(main, 5);
    stream.dropped(main, 7);
    stream.mark(main, "b", START_NS + 1);
    let store = store(&stream.bytes());
    let track = store.track(main).unwrap();
    assert_eq!((track.missed, track.dropped, track.events), (5, 7, 2));
    assert_eq!((store.losses().missed_events, store.losses().dropped_events), (5, 7));
    assert!(!store.losses().is_complete());
}

#[test]
fn an_open_span_shows_until_it_ends() {
    let (mut stream, main) = training();
    stream.phase(main, 1, "data wait", START_NS, START_NS + 10 * MS);
    stream.open(main, 1, "backward", START_NS + 10 * MS, START_NS + 40 * MS);
    stream.span(main, 1, "inner", START_NS + 15 * MS, START_NS + 41 * MS);
    stream.flush();
    let mut rest = StreamBuilder::new("test");
    let main_again = rest.track(TrackRole::Training, "main");
    rest.phase(main_again, 1, "backward", START_NS + 10 * MS, START_NS + 50 * MS);
    let mut store = store(&stream.bytes());
    let (track, open) = store.open_spans().next().unwrap();
    assert_eq!((track.text.as_str(), open.since_ns), ("main", START_NS + 10 * MS));
    each_item(&rest.bytes(), |item| store.apply(item));
    assert_eq!(store.open_spans().count(), 0);
}

#[test]
fn unconfirmed_open_span_is_removed() {
    let (mut stream, main) = training();
    stream.open(main, 1, "backward", START_NS, START_NS + MS);
    stream.anchor(START_NS + 5 * SECOND);
    assert_eq!(store(&stream.bytes()).open_spans().count(), 0);
}

#[test]
fn absence_and_decreasing_counter_are_breaks() {
    let (mut stream, main) = training();
    let cpu = stream.signal("process.cpu_time", Unit::Nanoseconds, SignalKind::Counter);
    for (at, value) in [(0, 100), (1, 600), (2, 50), (3, 1050)] {
        stream.sample(main, cpu, START_NS + at * SECOND, value * MS as i64);
    }
    stream.absent(main, cpu, START_NS + 4 * SECOND, "gone");
    stream.absent(main, cpu, START_NS + 5 * SECOND, "gone");
    stream.sample(main, cpu, START_NS + 6 * SECOND, 2 * SECOND as i64);
    let store = store(&stream.bytes());
    let signal = store.signals().find(Quantity::ProcessCpuTime).unwrap();
    let rates: Vec<Option<f64>> = signal.series.rates_per_s().map(|(_, rate)| rate).collect();
    assert_eq!(rates, [Some(5e8), None, Some(1e9), None, None]);
    assert_eq!(signal.series.summary().rate_per_s(), Some(7.5e8));
    assert_eq!(store.hardware().process_cores(), Err(Absence::NotReadYet));
}

#[test]
fn hardware_readings_have_display_units() {
    let store = store(&TrainingRun::default().bytes());
    let hardware = store.hardware();
    assert!((hardware.process_cores().unwrap() - 1.5).abs() < 1e-6);
    assert!((hardware.machine_cpu().busy.unwrap() - 1.6).abs() < 1e-6);
    assert_eq!(hardware.machine_cpu().iowait, Err(Absence::NotPublished));
    assert!(hardware.process_rss_bytes().unwrap() > 512e6);
    assert_eq!(hardware.gpu_absence(), Some(Absence::Reason("libnvidia-ml.so.1 not found")));
    assert!(hardware.gpus().is_empty());
}

#[test]
fn a_wall_clock_that_jumps_is_noticed() {
    let (mut stream, _) = training();
    let mut bytes = Vec::new();
    let mut jumped = gnntop_fixtures::anchor(START_NS + SECOND);
    jumped.wall_ns -= 3600 * SECOND;
    gnntop_wire::put_anchor(&mut bytes, &jumped);
    jumped.monotonic_ns += SECOND;
    jumped.wall_ns += SECOND + MS;
    jumped.boot_ns += SECOND;
    gnntop_wire::put_anchor(&mut bytes, &jumped);
    stream.raw(&bytes);
    let store = store(&stream.bytes());
    let steps: Vec<i64> = store.session().clock_steps().map(|step| step.by_ns).collect();
    assert_eq!(steps, [-3600 * SECOND as i64]);
}

#[test]
fn another_session_in_the_same_stream_is_left_out_and_counted() {
    let mut bytes = TrainingRun { steps: 3, ..TrainingRun::default() }.bytes();
    let mut other = gnntop_fixtures::session_info("other");
    other.session_id += 1;
    gnntop_wire::put_segment(&mut bytes, &other);
    let mut tail = StreamBuilder::new("pna");
    let track = tail.track(TrackRole::Training, "main");
    tail.step(track, 9, START_NS, START_NS + 5);
    let tail = tail.bytes();
    let mut own = Vec::new();
    gnntop_wire::put_segment(&mut own, &gnntop_fixtures::session_info("pna"));
    bytes.extend_from_slice(&tail[own.len()..]);
    let store = store(&bytes);
    assert_eq!(store.steps().total(), 3);
    assert_eq!(store.losses().foreign_segments, 1);
}

#[test]
fn damage_and_newer_formats_are_counted() {
    let mut store = Store::new();
    store.apply(Item::Damage(gnntop_wire::Damage { offset: 3, len: 9 }));
    store.apply(Item::Newer { major: 2 });
    store.apply(Item::Unknown);
    store.note_lost_segments(2);
    let losses = store.losses();
    assert_eq!((losses.damage_count, losses.damage_bytes, losses.damages.len()), (1, 9, 1));
    assert_eq!((losses.newer_format, losses.unknown_frames, losses.lost_segments), (Some(2), 1, 2));
}

#[test]
fn session_state_follows_items() {
    let mut store = Store::new();
    assert_eq!(*store.session().state(), SessionState::Unknown);
    store.note_publisher(true);
    assert_eq!(*store.session().state(), SessionState::Running);
    store.note_publisher(false);
    assert_eq!(*store.session().state(), SessionState::Gone);
    let end = gnntop_wire::End { t_ns: 5, reason: String::new() };
    store.apply(Item::End(end.clone()));
    store.note_publisher(false);
    assert_eq!(*store.session().state(), SessionState::Ended(end));
}

#[test]
fn phases_beyond_the_limit_share_one_place() {
    let (mut stream, main) = training();
    for n in 0..100 {
        stream.phase(main, 1, &format!("p{n}"), START_NS + n * 10, START_NS + n * 10 + 1);
    }
    stream.step(main, 1, START_NS, START_NS + 1000);
    let store = store(&stream.bytes());
    assert_eq!(store.phases().len(), MAX_PHASES + 1);
    let row = store.steps().last().unwrap();
    assert_eq!(row.gap_ns(), 900);
    assert_eq!(row.phase_ns(store.phase("other phases").unwrap().slot), 69);
}

#[test]
fn a_name_that_was_never_defined_still_counts() {
    let (mut stream, main) = training();
    let name = gnntop_wire::NameId(40);
    let span = gnntop_wire::Span { name, start_ns: START_NS, end_ns: START_NS + 7, step: gnntop_wire::StepId::NONE };
    stream.event(main, gnntop_wire::Event::Span(span));
    stream.name(NameKind::Span, "x");
    let store = store(&stream.bytes());
    assert_eq!(store.spans()[0].durations.total_ns(), 7);
    assert_eq!(store.name(name), "(unknown name)");
}

#[test]
fn old_rows_are_dropped_and_figures_stay() {
    let limits = Limits { step_rows: 100, ..Limits::default() };
    let mut store = Store::with_limits(limits);
    let run = TrainingRun { steps: 20_000, has_hardware: false, ..TrainingRun::default() };
    each_item(&run.bytes(), |item| store.apply(item));
    assert_eq!(store.steps().total(), 20_000);
    assert!((100..=8192).contains(&store.steps().len()));
    assert_eq!(store.statistics().steps(), 20_000);
    let kept = store.steps().kept_ordinals();
    assert_eq!(kept.end, 20_000);
    assert!(store.steps().row(kept.start - 1).is_none());
    assert_eq!(store.steps().row(kept.start).unwrap().step().0, kept.start + 1);
}

#[test]
fn the_step_at_a_time_is_found() {
    let store = store(&TrainingRun::default().bytes());
    let row = store.steps().row(42).unwrap();
    assert_eq!(store.steps().row_at(row.period_start_ns()).unwrap().ordinal(), 42);
    assert_eq!(store.steps().row_at(row.end_ns() - 1).unwrap().ordinal(), 42);
    assert!(store.steps().row_at(0).is_none());
    assert_eq!(store.steps().row_at(u64::MAX).unwrap().ordinal(), 99);
}

#[test]
fn throughput_counts_the_wall_time_of_steps() {
    let run = TrainingRun { epoch_steps: u64::MAX, ..TrainingRun::default() };
    let store = store(&run.bytes());
    let all = store.statistics().throughput();
    assert!((all.steps_per_s.unwrap() - 25.0).abs() < 0.1);
    assert!((all.graphs_per_s.unwrap() - 6400.0).abs() < 10.0);
    assert_eq!(all.seeds_per_s, None);
    let recent = store.recent_throughput(SECOND);
    assert!((recent.nodes_per_s.unwrap() - 89_600.0).abs() < 100.0);
}

#[test]
fn truncated_stream_gives_earlier_events() {
    let bytes = TrainingRun { steps: 60, ends: false, ..TrainingRun::default() }.bytes();
    let mut steps_before = 0;
    for cut in (0..bytes.len()).step_by(53) {
        let store = store(&bytes[..cut]);
        assert!(store.steps().total() >= steps_before);
        assert_eq!(*store.session().state(), SessionState::Unknown);
        steps_before = store.steps().total();
    }
    assert!(steps_before > 0);
}

#[test]
fn flipped_byte_loses_only_its_block() {
    let bytes = TrainingRun { steps: 60, ..TrainingRun::default() }.bytes();
    let whole = store(&bytes);
    for at in (0..bytes.len()).step_by(101) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        let store = store(&damaged);
        assert!(store.losses().damage_count > 0, "the flip at {at} goes unnoticed");
        assert!(store.steps().total() <= whole.steps().total());
    }
}

#[test]
fn absurd_span_time_does_not_change_now() {
    let (mut stream, main) = training();
    stream.phase(main, 1, "forward", START_NS, START_NS + 8);
    stream.span(main, 1, "odd", u64::MAX - 5, u64::MAX);
    stream.step(main, 1, START_NS, START_NS + 10);
    let store = store(&stream.bytes());
    assert_eq!(store.now_ns(), START_NS + 10);
    assert_eq!((store.losses().implausible_times, store.losses().backward_times), (1, 1));
}

#[test]
fn newest_fact_counts_and_inferred_phase_has_source() {
    let (mut stream, main) = training();
    let own = (0..1000).map(|i| Fact::Other { key: format!("fact {i}"), text: "x".to_owned() });
    let known = [
        Fact::Framework("Python 3.14.0".into()),
        Fact::Framework("PyTorch 2.9.1".into()),
        Fact::Inferred { phase: "forward".to_owned(), how: "from arrival to backward".to_owned() },
    ];
    own.chain(known).for_each(|fact| stream.define(Definition::Fact(fact)));
    stream.step(main, 1, START_NS, START_NS + 10);
    let store = store(&stream.bytes());
    assert_eq!(store.session().framework(), Some(&Framework::from("PyTorch 2.9.1")));
    assert_eq!(store.session().inferred("forward"), Some("from arrival to backward"));
    assert_eq!(store.session().inferred("backward"), None);
    assert_eq!(store.session().facts().len(), 130, "those of the program are bounded");
}

#[test]
fn rate_uses_readings_after_break() {
    let (mut stream, main) = training();
    let cpu = stream.signal("process.cpu_time", Unit::Nanoseconds, SignalKind::Counter);
    stream.sample(main, cpu, START_NS, 0);
    stream.absent(main, cpu, START_NS + 100 * MS, "gone");
    stream.sample(main, cpu, START_NS + 200 * MS, 5);
    stream.sample(main, cpu, START_NS + 300 * MS, 5 + 50 * MS as i64);
    let cores = store(&stream.bytes()).hardware().process_cores().unwrap();
    assert!((cores - 0.5).abs() < 1e-9, "{cores}");
}

#[test]
fn first_ns_is_start_of_first_span() {
    let (mut stream, main) = training();
    // A span is written when it ends.
    stream.span(main, 1, "model", START_NS - 300 * MS, START_NS + 50 * MS);
    stream.step(main, 1, START_NS - 200 * MS, START_NS + 100 * MS);
    let covered = store(&stream.bytes());
    assert_eq!((covered.first_ns(), covered.elapsed_ns()), (Some(START_NS - 300 * MS), 400 * MS));
    let (mut stream, main) = training();
    stream.anchor(START_NS + 2 * 86_400 * SECOND);
    stream.span(main, 1, "absurd", 0, START_NS + 2 * 86_400 * SECOND);
    assert_eq!(store(&stream.bytes()).first_ns(), Some(START_NS), "a start of days ago is not believed");
}

#[test]
fn samples_of_steps_follow_their_counter() {
    let run = |has_samples: bool| {
        let mut stream = StreamBuilder::new("train.py");
        let main = stream.track(TrackRole::Training, "main");
        for step in 1..=50 {
            let end_ns = START_NS + step * 10 * MS;
            if has_samples {
                stream.counter(main, "samples", end_ns, 64.0);
            }
            stream.step(main, step, end_ns - 10 * MS, end_ns);
        }
        let mut store = Store::new();
        each_item(&stream.bytes(), |item| store.apply(item));
        let last = store.steps().last().unwrap();
        (store.samples_of(&last), store.recent_samples_per_s(SECOND).map(f64::round))
    };
    assert_eq!((run(true), run(false)), ((Some(64), Some(6400.0)), (None, None)));
}
