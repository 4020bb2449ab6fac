//! Traces in Chrome's format: of old and new versions of torch, with one's own steps, of several ranks, with kernels.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::store_of;
use crate::sessions::{Ran, Sessions};
use gnntop_analysis::findings::{Finding, FindingKind, all_findings};
use gnntop_analysis::store::Store;

/// A complete event; times in microseconds.
fn event(category: &str, name: &str, thread: &str, ts: u64, dur: u64) -> String {
    let pid = if thread.starts_with("stream") { 0 } else { 7 };
    format!(r#"{{"ph":"X","cat":"{category}","name":"{name}","pid":{pid},"tid":"{thread}","ts":{ts},"dur":{dur}}}"#)
}

/// Four steps of 1 ms from number `first` on, each with a forward pass of 400 us and a kernel of 250 us.
fn trace(head: &str, annotation: &str, step: impl Fn(u64) -> String, kernel: &str) -> String {
    let mut events = Vec::new();
    for n in 0..4 {
        let ts = 1_770_000_000_000_000 + n * 1000;
        events.push(event(annotation, &step(n), "7", ts, 1000));
        events.push(event(annotation, "forward", "7", ts, 400));
        events.push(event("cpu_op", "aten::mm", "7", ts + 10, 50));
        events.push(event(kernel, "gemm", "stream 7", ts + 200, 150));
        events.push(event(kernel, "gemm", "stream 9", ts + 300, 150));
    }
    format!(r#"{{{head}"traceEvents":[{}]}}"#, events.join(","))
}

fn import(bytes: &[u8], arguments: &[&str]) -> (Ran, Option<Store>) {
    let sessions = Sessions::new();
    sessions.file("t.json", bytes);
    let ran = sessions.run([&["import", "chrome", "t.json", "-o", "t.gnntop"], arguments].concat());
    let store = fs::read(sessions.path().join("t.gnntop")).ok().map(|bytes| store_of(&bytes));
    (ran, store)
}

fn numbers(store: &Store) -> Vec<u64> {
    store.steps().all().map(|row| row.step().0).collect()
}

#[test]
fn steps_keep_the_numbers_of_the_file() {
    let of = |first: u64| trace("", "user_annotation", move |n| format!("ProfilerStep#{}", first + n), "kernel");
    let (ran, store) = import(of(5).as_bytes(), &[]);
    assert!(!ran.err.contains("warning"), "{ran:?}");
    assert_eq!(numbers(&store.unwrap()), [5, 6, 7, 8]);
    let (ran, store) = import(of(0).as_bytes(), &[]);
    assert!(ran.err.contains("counted from 0 in the trace"), "{ran:?}");
    assert_eq!(numbers(&store.unwrap()), [1, 2, 3, 4]);
}

#[test]
fn torch_1_11_calls_annotations_operators() {
    let text = trace("", "Operator", |n| format!("ProfilerStep#{}", n + 1), "Kernel").replace("cpu_op", "Operator");
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(text.as_bytes()).unwrap();
    let (ran, store) = import(&packed.finish().unwrap(), &[]);
    let store = store.unwrap_or_else(|| panic!("{ran:?}"));
    let forward = store.phase("forward").unwrap().slot;
    assert_eq!(store.steps().row(2).unwrap().phase_ns(forward), 400_000);
    assert!(store.phase("aten::mm").is_none());
}

#[test]
fn step_option_selects_the_annotation() {
    let text = trace("", "user_annotation", |_| "train".to_owned(), "kernel");
    let (ran, store) = import(text.as_bytes(), &["--step", "train"]);
    assert!(ran.err.contains("train as step"), "{ran:?}");
    assert_eq!(numbers(&store.unwrap()), [1, 2, 3, 4]);
    let numbered = trace("", "user_annotation", |n| format!("train {}", n * 10 + 7), "kernel");
    assert_eq!(numbers(&import(numbered.as_bytes(), &["--step", "train"]).1.unwrap()), [7, 17, 27, 37]);
    assert!(import(text.as_bytes(), &[]).0.err.contains("name your own annotation with --step NAME"));
    assert!(import(text.as_bytes(), &["--step", "nope"]).0.err.contains("no annotation is called nope"));
}

#[test]
fn kernels_are_tracks_of_their_gpu_and_measure_how_busy_it_was() {
    let text = trace("", "user_annotation", |n| format!("ProfilerStep#{}", n + 1), "kernel");
    let (_, store) = import(text.as_bytes(), &[]);
    let store = store.unwrap();
    let util = store.signals().find(gnntop_wire::Quantity::GpuUtil).unwrap();
    let values: Vec<i64> = util.series.points().map(|point| point.value().unwrap()).collect();
    assert_eq!(values, [25_000; 4], "two kernels of 150 us that overlap by 50 us are busy for 250 us of 1 ms");
    let tracks: Vec<&str> = store.tracks().iter().map(|track| track.text.as_str()).collect();
    assert!(tracks.contains(&"GPU 0 stream 7") && tracks.contains(&"GPU 0 stream 9"), "{tracks:?}");
}

#[test]
fn files_of_ranks_become_one_run_without_clock_skew() {
    let sessions = Sessions::new();
    let said = |rank: u32| format!(r#""distributedInfo":{{"backend":"nccl","rank":{rank},"world_size":2}},"#);
    for rank in 0..2 {
        let text = trace(&said(rank), "user_annotation", |n| format!("ProfilerStep#{}", n + 1), "kernel");
        sessions.file(&format!("{rank}.json"), text.as_bytes());
        let (from, to) = (format!("{rank}.json"), format!("{rank}.gnntop"));
        let ran = sessions.run(["import", "chrome", &from, "-o", &to]);
        assert!(ran.err.contains(&format!("rank {rank} of 2")), "{ran:?}");
    }
    let report = sessions.run(["report", "0.gnntop", "1.gnntop"]);
    assert!(report.out.contains("2 of 2 ranks") && !report.out.contains("clock of rank"), "{report:?}");
    let replay = sessions.run(["replay", "0.gnntop", "1.gnntop", "--plain", "--speed", "100"]);
    assert!(replay.code == Some(0) && replay.out.contains("rank 0 of 2"), "{replay:?}");
    let other = trace("", "user_annotation", |n| format!("ProfilerStep#{}", n + 1), "kernel");
    sessions.file("other.json", other.as_bytes());
    assert_eq!(sessions.run(["import", "chrome", "other.json", "-o", "other.gnntop"]).code, Some(0));
    sessions.run(["replay", "0.gnntop", "other.gnntop", "--plain"]).assert_refused("are from different runs");
    let half = trace(r#""distributedInfo":{"rank":1},"#, "user_annotation", |n| format!("ProfilerStep#{n}"), "kernel");
    assert!(import(half.as_bytes(), &[]).0.err.contains("give --rank 1/N"));
    let (_, store) = import(half.as_bytes(), &["--rank", "1/4", "--run", "r"]);
    let place = store.unwrap().session().info().unwrap().place.clone().unwrap();
    assert_eq!((place.run.as_str(), place.rank, place.ranks), ("r", 1, 4));
}

#[test]
fn an_idle_gpu_is_measured_by_its_kernels() {
    // Steps of 1 ms, end to end, with kernels on two streams that overlap: 200 to 450 us of each.
    let mut events = Vec::new();
    for n in 0..30 {
        let ts = 1_770_000_000_000_000 + n * 1000;
        events.push(event("user_annotation", &format!("ProfilerStep#{}", n + 1), "7", ts, 1000));
        events.push(event("user_annotation", "forward", "7", ts, 400));
        events.push(event("kernel", "gemm", "stream 7", ts + 200, 150));
        events.push(event("kernel", "gemm", "stream 9", ts + 300, 150));
    }
    let store = import(format!(r#"{{"traceEvents":[{}]}}"#, events.join(",")).as_bytes(), &[]).1.unwrap();
    let idle = finding(&store, FindingKind::GpuIdle).unwrap();
    assert_eq!(idle.summary, "no kernel runs on the GPU 75 % of the time");
    assert!(idle.evidence.iter().any(|line| line.ends_with("kernels and copies were traced")), "{idle:#?}");
}

/// The store of 30 steps of 1 ms, end to end, with these events in each, at times since its begin.
fn steps_with(inside: &[(&str, &str, &str, u64, u64)]) -> Store {
    let mut events = Vec::new();
    for n in 0..30 {
        let ts = 1_770_000_000_000_000 + n * 1000;
        events.push(event("user_annotation", &format!("ProfilerStep#{}", n + 1), "7", ts, 1000));
        let at = |(category, name, thread, at, dur): &(&str, &str, &str, u64, u64)| {
            event(category, name, thread, ts + at, *dur)
        };
        events.extend(inside.iter().map(at));
    }
    import(format!(r#"{{"traceEvents":[{}]}}"#, events.join(",")).as_bytes(), &[]).1.unwrap()
}

fn finding(store: &Store, kind: FindingKind) -> Option<Finding> {
    all_findings(store).found.into_iter().find(|it| it.kind == kind)
}

#[test]
fn copies_are_no_kernels() {
    let store = steps_with(&[
        ("user_annotation", "forward", "7", 0, 400),
        ("kernel", "gemm", "stream 7", 200, 200),
        ("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", "stream 7", 400, 600),
    ]);
    let idle = finding(&store, FindingKind::GpuIdle).unwrap();
    assert_eq!(idle.summary, "no kernel runs on the GPU 80 % of the time");
    assert!(
        idle.evidence.iter().any(|line| line == "copies run 60 % of the time, and no kernel meanwhile"),
        "{idle:#?}"
    );
    assert!(idle.advice[0].starts_with("copy ahead, from pinned memory"), "{idle:#?}");
    let util = store.signals().find(gnntop_wire::Quantity::GpuUtil).unwrap();
    assert!(util.series.points().all(|point| point.value() == Some(20_000)), "{:?}", util.series);
}

#[test]
fn waits_for_an_idle_gpu_are_found_with_their_operator() {
    let waits = [
        ("user_annotation", "forward", "7", 0, 500),
        ("cpu_op", "aten::item", "7", 100, 320),
        ("cpu_op", "aten::_local_scalar_dense", "7", 105, 310),
        ("cuda_runtime", "cudaStreamSynchronize", "7", 110, 300),
    ];
    let idle = [&waits[..], &[("kernel", "gemm", "stream 7", 100, 300)]].concat();
    let found = finding(&steps_with(&idle), FindingKind::HostSync).unwrap();
    assert_eq!(found.summary, "the program waits for the GPU 1.0 times a step, 30 % of the time");
    assert!(found.evidence[0].ends_with(": aten::item") && found.confidence.as_str() == "likely", "{found:#?}");
    let busy = [&waits[..], &[("kernel", "gemm", "stream 7", 0, 1000)]].concat();
    assert_eq!(finding(&steps_with(&busy), FindingKind::HostSync), None, "it waits, and loses nothing");
}

#[test]
fn graphs_that_are_recorded_in_every_step_are_found() {
    let recording = [
        ("cuda_runtime", "cudaStreamBeginCapture", "7", 100, 10),
        ("cuda_runtime", "cudaStreamEndCapture", "7", 290, 10),
        ("cuda_runtime", "cudaGraphLaunch", "7", 310, 10),
    ];
    let it = finding(&steps_with(&recording), FindingKind::Recompilation).unwrap();
    assert!(it.summary.starts_with("CUDA graphs are recorded again after the warm-up"), "{it:#?}");
    assert!((it.share.unwrap() - 0.2).abs() < 0.02, "{it:#?}");
    assert_eq!(finding(&steps_with(&recording[2..]), FindingKind::Recompilation), None);
}

#[test]
fn gradients_set_to_zero_are_the_optimizers() {
    let store = steps_with(&[
        ("user_annotation", "Optimizer.zero_grad#Adam.zero_grad", "7", 0, 100),
        ("user_annotation", "Optimizer.step#Adam.step", "7", 700, 200),
    ]);
    let optimizer = store.phase("optimizer").unwrap().slot;
    assert!(store.steps().all().all(|row| row.phase_ns(optimizer) == 300_000), "as in a live run");
}

#[test]
fn an_optimizer_that_outlasts_its_step_belongs_to_it_alone() {
    // As torch writes it where a step ends in one of the optimizer's hooks.
    let mut events = Vec::new();
    for n in 0..4 {
        let ts = 1_770_000_000_000_000 + n * 1010;
        events.push(event("user_annotation", &format!("ProfilerStep#{}", n + 1), "7", ts, 1000));
        events.push(event("user_annotation", "Optimizer.step#Adam.step", "7", ts + 700, 307));
        events.push(event("Trace", "PyTorch Profiler (0)", "PyTorch Profiler", ts, 1000));
    }
    let (_, store) = import(format!(r#"{{"traceEvents":[{}]}}"#, events.join(",")).as_bytes(), &[]);
    let store = store.unwrap();
    let optimizer = store.phase("optimizer").unwrap().slot;
    let each: Vec<u64> = store.steps().all().map(|row| row.phase_ns(optimizer)).collect();
    assert_eq!(each, [300_000; 4]);
    assert!(store.tracks().iter().all(|track| !track.text.contains("PyTorch Profiler")), "{:?}", store.tracks());
}

#[test]
fn kernels_of_a_trace_without_steps_are_its_busy_time() {
    let text = trace("", "user_annotation", |_| "other".to_owned(), "kernel");
    let (ran, store) = import(text.as_bytes(), &[]);
    // Of each 1,000 us a kernel runs for 250.
    assert!(ran.err.contains("kernels of GPU 0: it was busy for 25 % of the trace"), "{ran:?}");
    let store = store.unwrap();
    let signal = store.signals().find(gnntop_wire::Quantity::GpuUtil.with_instance(0)).unwrap();
    let values: Vec<i64> = signal.series.points().filter_map(|point| point.value()).collect();
    assert!(values.len() > 50, "{values:?}");
    assert!(values.contains(&100_000) && values.contains(&0), "{values:?}");
}
