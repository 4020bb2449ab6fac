//! How much of a core the drain thread uses while the program publishes 20,000 spans a second, in steps of 20 spans.
//!
//! ```sh
//! cargo bench -p gnntop-probe --bench drain           # 20 seconds
//! cargo bench -p gnntop-probe --bench drain -- 1e5    # another rate
//! ```
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use gnntop_probe::{BatchShape, Name, Session, TrackRole, phase, span, step};

static LAYER: Name = Name::span("layer");
const SPANS_A_STEP: u32 = 20;
const MEASURED: Duration = Duration::from_secs(20);
const TARGET_PERCENT: f64 = 1.0;

fn main() {
    let rate = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(20_000.0);
    let temp = tempfile::tempdir().unwrap();
    let session = Session::builder("drain").directory(temp.path()).sensors(None).start();
    let track = session.track("bench", TrackRole::Training);
    publish(rate, Duration::from_secs(1));
    let Some(thread) = drain_thread() else { return println!("threads cannot be measured on this system") };
    let (before, begin) = (cpu_s(&thread), Instant::now());
    let spans = publish(rate, MEASURED);
    let (cpu_s, time_s) = (cpu_s(&thread) - before, begin.elapsed().as_secs_f64());
    println!(
        "drain thread at {:.0} spans a second: {:.2} % of a core (target {TARGET_PERCENT}),",
        spans as f64 / time_s,
        100.0 * cpu_s / time_s
    );
    println!("{:.0} ns a span", 1e9 * cpu_s / spans as f64);
    publish(0.0, Duration::from_secs(1));
    let (before, begin) = (self::cpu_s(&thread), Instant::now());
    publish(0.0, MEASURED / 2);
    println!("and at rest: {:.2} %", 100.0 * (self::cpu_s(&thread) - before) / begin.elapsed().as_secs_f64());
    drop((track, session));
}

/// Publishes this many spans a second; returns how many that were.
fn publish(rate: f64, time: Duration) -> u64 {
    let begin = Instant::now();
    let mut steps = 0;
    while begin.elapsed() < time {
        std::thread::sleep(Duration::from_millis(1));
        let due = (begin.elapsed().as_secs_f64() * rate / f64::from(SPANS_A_STEP)) as u64;
        (steps..due).for_each(|_| one_step());
        steps = due.max(steps);
    }
    steps * u64::from(SPANS_A_STEP)
}

fn one_step() {
    let mut step = step(0);
    let _forward = span(&phase::FORWARD);
    for _ in 1..SPANS_A_STEP {
        let _layer = span(&LAYER);
        black_box(());
    }
    step.batch(BatchShape { graphs: Some(1), nodes: Some(2), edges: Some(3), seeds: None });
}

/// The system's record of the drain thread's time: a file in `/proc`.
fn drain_thread() -> Option<std::path::PathBuf> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?.filter_map(Result::ok);
    let is_drain = |task: &std::path::Path| {
        std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "gnntop drain")
    };
    Some(tasks.map(|task| task.path()).find(|task| is_drain(task))?.join("schedstat"))
}

/// CPU seconds of a thread so far.
fn cpu_s(thread: &std::path::Path) -> f64 {
    let schedstat = std::fs::read_to_string(thread).unwrap();
    schedstat.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e9
}
