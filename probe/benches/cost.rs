//! What one record costs the program, beside the two clock reads that it cannot do without.
//!
//! ```sh
//! cargo bench -p gnntop-probe --bench cost                 # nanoseconds, medians of interleaved rounds
//! cargo bench -p gnntop-probe --bench cost -- --spans 1e9  # and the memory after so many spans
//! ```
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use gnntop_probe::device::Attach;
use gnntop_probe::{BatchShape, Name, Session, TrackRole, counter, phase, span, step};
use gnntop_simulated::{Nature, Simulated};

static INNER: Name = Name::span("inner");
static DEPTH: Name = Name::counter("depth");

/// Records in a timed round: well under a ring, so that none is dropped.
const ROUND: usize = 3000;
const ROUNDS: usize = 101;

fn main() {
    let temp = tempfile::tempdir().unwrap();
    let clock = quanta::Clock::new();
    let off = measure(&mut [("span, off", &mut || repeat(|| drop(black_box(span(&INNER)))))], Duration::ZERO);

    let session = Session::builder("cost").directory(temp.path()).start();
    let track = session.track("bench", TrackRole::Training);
    let mut reads = || {
        repeat(|| {
            black_box((clock.raw(), clock.raw()));
        });
    };
    let mut spans = || repeat(|| drop(black_box(span(&INNER))));
    let mut counters = || repeat(|| counter(&DEPTH, black_box(3.0)));
    let mut steps = || repeat(whole_step);
    let on = measure(
        &mut [
            ("two clock reads", &mut reads),
            ("span, on", &mut spans),
            ("counter, on", &mut counters),
            ("step with batch and loss, on", &mut steps),
        ],
        Duration::from_millis(25),
    );
    for (name, ns) in off.iter().chain(&on) {
        println!("{name:<30} {ns:7.1} ns");
    }
    println!("span, on / two clock reads     {:7.2} x   (target 1.5)", on[1].1 / on[0].1);
    if let Some(spans) = spans_asked() {
        memory_over(spans);
    }
    drop((track, session));
    device_spans(temp.path());
}

/// What it costs to have a phase timed by its device beside what the device's own driver takes, which here is a lock.
fn device_spans(dir: &std::path::Path) {
    let session = Session::builder("device").directory(dir).sensors(None).start();
    let track = session.track("bench", TrackRole::Training);
    let mut phases = || rounds(|| drop(black_box(span(&phase::FORWARD))));
    let plain = measure(&mut [("phase, on", &mut phases)], Duration::from_millis(25));
    let device = Simulated::new(Nature { marks: 2 * DEVICE_ROUND as u32 + 64, ..Nature::default() });
    Attach::new("simulated").stream(device.clone()).start();
    let mut timed = || rounds(|| drop(black_box(span(&phase::FORWARD))));
    let mut marks = || {
        rounds(|| {
            black_box(gnntop_probe::device::Stream::record(&*device, 0)).ok();
            black_box(gnntop_probe::device::Stream::record(&*device, 1)).ok();
        });
    };
    let both =
        [("phase, timed by a simulated device", &mut timed as &mut dyn FnMut()), ("its two marks alone", &mut marks)];
    let timed = measure(&mut both.map(|(name, body)| (name, body)), Duration::from_millis(60));
    let scale = ROUND as f64 / DEVICE_ROUND as f64;
    for (name, ns) in plain.iter().chain(&timed) {
        println!("{name:<30} {:7.1} ns", ns * scale);
    }
    drop((track, session));
}

/// Spans of a round on a device: no more than it has marks.
const DEVICE_ROUND: usize = 1000;

fn rounds(mut body: impl FnMut()) {
    (0..DEVICE_ROUND).for_each(|_| body());
}

fn whole_step() {
    let mut step = step(0);
    step.batch(BatchShape { graphs: Some(1), nodes: Some(2), edges: Some(3), seeds: None });
    step.loss(0.5);
}

/// The timed loop, compiled for each body apart: no call through a pointer inside.
fn repeat(mut body: impl FnMut()) {
    for _ in 0..ROUND {
        body();
    }
}

/// Median nanoseconds a record of each loop, in interleaved rounds with a rest after each, so that rings are empty.
fn measure(loops: &mut [(&'static str, &mut dyn FnMut())], rest: Duration) -> Vec<(&'static str, f64)> {
    let mut times = vec![Vec::with_capacity(ROUNDS); loops.len()];
    for _ in 0..ROUNDS {
        for ((_, timed), times) in loops.iter_mut().zip(&mut times) {
            let begin = Instant::now();
            timed();
            times.push(begin.elapsed().as_nanos() as f64 / ROUND as f64);
            std::thread::sleep(rest);
        }
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    loops.iter().zip(&mut times).map(|((name, _), times)| (*name, median(times))).collect()
}

fn spans_asked() -> Option<u64> {
    let mut args = std::env::args().skip_while(|arg| arg != "--spans");
    args.nth(1)?.parse::<f64>().ok().map(|spans| spans as u64)
}

fn memory_over(spans: u64) {
    println!("resident memory, MiB: {:.2} before", resident_mib());
    for tenth in 1..=10 {
        for _ in 0..spans / 10 {
            drop(span(&INNER));
        }
        println!("  {:.2} after {:.1e} spans", resident_mib(), (spans / 10 * tenth) as f64);
    }
}

fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap_or(0.0) / 1024.0
}
