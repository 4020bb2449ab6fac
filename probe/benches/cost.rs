//! What one record costs the program, in addition to the two clock reads that it needs in any case.
//!
//! ```sh
//! cargo bench -p gnntop-probe --bench cost                 # nanoseconds, medians of interleaved rounds
//! cargo bench -p gnntop-probe --bench cost -- --spans 1e9  # and the memory after that many spans
//! ```
//!
//! Each figure is the time of a loop minus that of an empty one in the same round. What a loop records stays in registers
//! if the compiler can keep it there, as in a program: no guard is passed to `black_box`, which would move it to memory.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gnntop_probe::device::{Attach, Stream as _};
use gnntop_probe::{BatchShape, Name, Session, Step, TrackRole, counter, phase, span, step};
use gnntop_simulated::{DeviceModel, Simulated};

static INNER: Name = Name::span("inner");
static DEPTH: Name = Name::counter("depth");

/// Records in a timed round: well under a ring, so that none is dropped.
const ROUND: usize = 3000;
/// Spans of a round on a device: no more than it has marks.
const DEVICE_ROUND: usize = 1000;
const ROUNDS: usize = 101;

/// A timed loop: its name and its body.
type Timed<'a> = (&'static str, &'a mut dyn FnMut());

fn main() {
    let temp = tempfile::tempdir().unwrap();
    let mut spans = || {
        repeat(|_| {
            let _span = span(&INNER);
        })
    };
    print(&measure(ROUND, &mut [("span, off", &mut spans)], Duration::ZERO));
    println!();

    let session = Session::builder("cost").directory(temp.path()).start();
    let track = session.track("bench", TrackRole::Training);
    records();
    if let Some(spans) = spans_from_args() {
        memory_over(spans);
    }
    drop((track, session));
    println!();
    device_spans(temp.path());
}

/// What records cost while they are published.
fn records() {
    let clock = quanta::Clock::new();
    let mut reads = || {
        repeat(|_| {
            black_box((clock.raw(), clock.raw()));
        });
    };
    let mut spans = || {
        repeat(|_| {
            let _span = span(&INNER);
        })
    };
    let mut phases = || {
        repeat(|_| {
            let _span = span(&phase::FORWARD);
        })
    };
    let mut counters = || repeat(|i| counter(&DEPTH, i as f64));
    let mut bare = || repeat(|_| drop(step(0)));
    let mut steps = || repeat(|_| whole_step(&mut step(0)));
    let mut usage = || repeat(|_| query_usage());
    let on = measure(
        ROUND,
        &mut [
            ("two clock reads", &mut reads),
            ("span, on", &mut spans),
            ("phase, on", &mut phases),
            ("counter, on", &mut counters),
            ("step, on", &mut bare),
            ("step with batch and loss, on", &mut steps),
            ("the call that counts page faults", &mut usage),
        ],
        Duration::from_millis(25),
    );
    print(&on);
    let of_reads = |row: usize| on[row].1 / on[0].1;
    println!("span / two clock reads              {:7.2} x", of_reads(1));
    println!("phase / two clock reads             {:7.2} x   (target 1.25)", of_reads(2));
}

fn whole_step(step: &mut Step) {
    step.batch(BatchShape { graphs: Some(1), nodes: Some(2), edges: Some(3), seeds: None });
    step.loss(0.5);
}

/// What a step costs in addition if it is not short.
fn query_usage() {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: `usage` is a valid place for the result, which nobody reads.
    #[cfg(target_os = "linux")]
    unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr())
    };
    black_box(&mut usage);
}

/// What it costs to time a phase on its device, besides the device's driver, which here is a lock.
fn device_spans(dir: &std::path::Path) {
    let session = Session::builder("device").directory(dir).sensors(None).start();
    let track = session.track("bench", TrackRole::Training);
    let mut phases = || {
        device_round(|| {
            let _span = span(&phase::FORWARD);
        })
    };
    let plain = measure(DEVICE_ROUND, &mut [("phase, on", &mut phases)], Duration::from_millis(25));
    let device = Simulated::new(DeviceModel { marks: 2 * DEVICE_ROUND as u32 + 64, ..DeviceModel::default() });
    let stream = Arc::clone(&device);
    Attach::new("simulated").stream(device).start();
    let mut timed = || {
        device_round(|| {
            let _span = span(&phase::FORWARD);
        })
    };
    let mut marks = || {
        device_round(|| {
            black_box(stream.record(0)).ok();
            black_box(stream.record(1)).ok();
        });
    };
    let both = &mut [
        ("phase, timed by a simulated device", &mut timed as &mut dyn FnMut()),
        ("its two marks alone", &mut marks),
    ];
    let timed = measure(DEVICE_ROUND, both, Duration::from_millis(60));
    print(&plain);
    print(&timed);
    println!("timing itself                       {:7.1} ns", timed[0].1 - timed[1].1 - plain[0].1);
    drop((track, session));
}

/// The timed loop, compiled separately for each body: no call through a pointer inside.
#[inline(never)]
fn repeat(mut body: impl FnMut(usize)) {
    for i in 0..ROUND {
        body(black_box(i));
    }
}

#[inline(never)]
fn device_round(mut body: impl FnMut()) {
    for i in 0..DEVICE_ROUND {
        black_box(i);
        body();
    }
}

/// Median nanoseconds per record of each loop, minus those of an empty one, in interleaved rounds with a rest after each,
/// so that rings are empty.
fn measure(records: usize, loops: &mut [Timed<'_>], rest: Duration) -> Vec<(&'static str, f64)> {
    let mut times = vec![Vec::with_capacity(ROUNDS); loops.len()];
    for _ in 0..ROUNDS {
        let empty = time(&mut || repeat(|_| ())) / ROUND as f64;
        for ((_, timed), times) in loops.iter_mut().zip(&mut times) {
            times.push(time(timed) / records as f64 - empty);
            std::thread::sleep(rest);
        }
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    loops.iter().zip(&mut times).map(|((name, _), times)| (*name, median(times))).collect()
}

/// Nanoseconds that a loop takes.
fn time(timed: &mut dyn FnMut()) -> f64 {
    let begin = Instant::now();
    timed();
    begin.elapsed().as_nanos() as f64
}

fn print(figures: &[(&str, f64)]) {
    for (name, ns) in figures {
        println!("{name:<35} {ns:7.1} ns");
    }
}

fn spans_from_args() -> Option<u64> {
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
