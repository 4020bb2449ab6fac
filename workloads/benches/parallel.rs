//! What ranks as threads of one process cost and gain: the all-reduce of 16 MiB beside a copy of as much, and steps of
//! GraphSAGE, GAT and ViG on two ranks of one thread beside one rank of one thread.
//!
//! `cd workloads && cargo bench --bench parallel` prints medians; everything compared is measured in turn.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gnntop_workloads::command::Workload;
use gnntop_workloads::parallel::{Collective, thread_ranks};
use gnntop_workloads::train::{Observer, StepReport};

/// Values of 16 MiB.
const VALUES: usize = 4 << 20;
const ROUNDS: usize = 40;
/// Turns of one rank and two, and steps of each that count after those that warm up.
const TURNS: usize = 5;
const WARM_UP: u64 = 3;
const STEPS: u64 = 15;

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

fn timed(run: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    run();
    begin.elapsed().as_secs_f64()
}

/// Medians of a copy on each of two threads at once, and of an all-reduce between them, in turn.
fn all_reduce(threads: usize) {
    let times: Mutex<[Vec<f64>; 2]> = Mutex::default();
    std::thread::scope(|scope| {
        for rank in thread_ranks(threads, true) {
            let times = &times;
            scope.spawn(move || {
                let mut values = vec![rank.rank() as f32; VALUES];
                let mut copy = vec![0.0_f32; VALUES];
                for _ in 0..ROUNDS {
                    rank.barrier().unwrap();
                    let copied = timed(|| black_box(&mut copy).copy_from_slice(black_box(&values)));
                    rank.barrier().unwrap();
                    let reduced = timed(|| rank.all_reduce(black_box(&mut values)).unwrap());
                    let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
                    times[0].push(copied);
                    times[1].push(reduced);
                }
            });
        }
    });
    let rate = |times: Vec<f64>| (VALUES * 4) as f64 / median(times) / 1e9;
    let [copy, reduce] = times.into_inner().unwrap().map(rate);
    println!(
        "all-reduce of 16 MiB, {threads} ranks: {reduce:.1} GB/s, a copy {copy:.1} GB/s: {:.2} of it",
        reduce / copy
    );
}

/// Notes when steps end.
#[derive(Default)]
struct Clock {
    times: Vec<Duration>,
    /// Seeds or images of a step.
    work: u64,
}

impl Observer for Clock {
    fn step(&mut self, report: &StepReport) {
        self.times.push(report.time);
        self.work = report.shape.seeds.or(report.shape.graphs).unwrap_or(0);
    }
}

/// Seeds or images per second of a whole run, by the median step of rank 0 after warming up.
fn rate(name: &str, ranks: usize) -> f64 {
    let steps = (WARM_UP + STEPS).to_string();
    let ranks_given = ranks.to_string();
    let words = ["--ranks", &ranks_given, "--threads-per-rank", "1", "--workers", "0", "--steps", &steps];
    let sizes = match name {
        "vig" => "--batch-size 20 --images 1000 --epochs 100",
        _ => "--batch-size 256 --nodes 20000 --edges 1000000 --epochs 1",
    };
    let words: Vec<_> = words.into_iter().chain(sizes.split(' ')).map(Into::into).collect();
    let mut clock = Clock::default();
    Workload::parse(name, &words).unwrap().run(&mut clock).unwrap();
    let times = clock.times[WARM_UP as usize..].iter().map(Duration::as_secs_f64).collect();
    (ranks as u64 * clock.work) as f64 / median(times)
}

fn data_parallel(name: &str) {
    let turns: Vec<_> = (0..TURNS).map(|_| (rate(name, 1), rate(name, 2))).collect();
    let one = median(turns.iter().map(|turn| turn.0).collect());
    let two = median(turns.iter().map(|turn| turn.1).collect());
    let gain = median(turns.iter().map(|turn| turn.1 / turn.0).collect());
    let unit = if name == "vig" { "images" } else { "seeds" };
    println!("{name}: 1 rank {one:.0} {unit}/s, 2 ranks {two:.0} {unit}/s: {gain:.2} times (median of {TURNS} turns)");
}

fn main() {
    // SAFETY: nothing else runs yet. The steps are what counts here, not their publishing.
    unsafe { std::env::set_var("GNNTOP", "0") };
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| name.contains(word));
    if is_wanted("all-reduce") {
        all_reduce(2);
    }
    for name in ["sage", "gat", "vig"] {
        if is_wanted(name) {
            data_parallel(name);
        }
    }
}
