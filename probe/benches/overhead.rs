//! Throughput lost by publishing: steps of 1, 5 and 50 ms with 20 spans each, published and not, interleaved. With
//! `--sensors`: lost by reading the hardware, both sides being published.
//!
//! Work is a fixed number of operations, not a fixed time, so that whatever publishing takes shows in the steps
//! done per second. Slices with and without a session alternate in the order ABBA; the figure is the median over
//! pairs of neighbouring slices, with its quartiles.
//!
//! ```sh
//! cargo bench -p gnntop-probe --bench overhead                # about a minute
//! cargo bench -p gnntop-probe --bench overhead -- --pairs 200
//! cargo bench -p gnntop-probe --bench overhead -- --sensors
//! ```
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use gnntop_probe::{BatchShape, Name, Session, TrackRole, phase, span, step};

static LAYER: Name = Name::span("layer");
const SPANS: u64 = 20;
/// Length of one slice.
const SLICE: Duration = Duration::from_millis(300);

fn main() {
    let pairs = pairs_from_args().unwrap_or(40);
    let temp = tempfile::tempdir().unwrap();
    let per_ms = operations_per_ms();
    let of_sensors = std::env::args().any(|arg| arg == "--sensors");
    let (cause, targets) =
        if of_sensors { ("reading sensors", [0.5, 0.5, 0.5]) } else { ("publishing", [0.5, 0.1, 0.05]) };
    println!("step   lost by {cause}: median (quartiles) of {pairs} pairs; target");
    for (step_ms, target) in [1, 5, 50].into_iter().zip(targets) {
        let steps = (SLICE.as_millis() as u64 / step_ms).max(4);
        let operations = per_ms * step_ms / SPANS;
        let lost_in = |pair| lost_in_pair(pair, of_sensors, || slice(steps, operations), temp.path());
        let mut lost: Vec<f64> = (0..pairs).map(lost_in).collect();
        lost.sort_by(f64::total_cmp);
        let quantile = |q: f64| lost[((lost.len() - 1) as f64 * q) as usize] * 100.0;
        println!(
            "{step_ms:>3} ms  {:+.3} % ({:+.3} .. {:+.3}); {target} %",
            quantile(0.5),
            quantile(0.25),
            quantile(0.75)
        );
    }
}

/// Share of time lost in one pair of slices; every other pair runs the other way round.
fn lost_in_pair(pair: u64, of_sensors: bool, slice: impl Fn() -> f64, dir: &Path) -> f64 {
    let published = |has_sensors: bool| {
        let builder = Session::builder("overhead").directory(dir);
        let session = if has_sensors { builder.start() } else { builder.sensors(None).start() };
        let track = session.track("bench", TrackRole::Training);
        // Starting is not what is measured: let the threads open their files and sensors first.
        std::thread::sleep(Duration::from_millis(60));
        let time = slice();
        drop((track, session));
        time
    };
    let plain = || if of_sensors { published(false) } else { slice() };
    let (without, with) = if pair.is_multiple_of(2) {
        let without = plain();
        (without, published(true))
    } else {
        let with = published(true);
        (plain(), with)
    };
    with / without - 1.0
}

/// Seconds for `steps` steps of [`SPANS`] spans of `operations` each.
fn slice(steps: u64, operations: u64) -> f64 {
    let begin = Instant::now();
    for _ in 0..steps {
        let mut step = step(0);
        let _forward = span(&phase::FORWARD);
        for _ in 1..SPANS {
            let _layer = span(&LAYER);
            work(operations);
        }
        work(operations);
        step.batch(BatchShape { graphs: Some(1), nodes: Some(2), edges: Some(3), seeds: None });
    }
    begin.elapsed().as_secs_f64()
}

/// A chain of dependent multiplications that nothing can shorten.
fn work(operations: u64) {
    let mut x = black_box(1u64);
    for _ in 0..operations {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    }
    black_box(x);
}

fn operations_per_ms() -> u64 {
    let mut rates: Vec<u64> = (0..21)
        .map(|_| {
            let begin = Instant::now();
            work(1_000_000);
            (1e12 / begin.elapsed().as_nanos() as f64) as u64
        })
        .collect();
    rates.sort_unstable();
    rates[10]
}

fn pairs_from_args() -> Option<u64> {
    let mut args = std::env::args().skip_while(|arg| arg != "--pairs");
    args.nth(1)?.parse().ok()
}
