//! What watching costs: `cargo bench --bench viewer`.
//!
//! 1. CPU of a viewer in a terminal of 120x40 that follows 100,000 spans a second, and of one that follows a program
//!    at rest, in percent of a core.
//! 2. Throughput of a training of 5 ms steps with 20 spans each while a viewer follows it, against the same training
//!    with none: slices alternate in the order ABBA, the figure is the median over pairs.
#![allow(missing_docs, clippy::print_stdout, clippy::expect_used)]

use std::hint::black_box;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use gnntop_probe::{Name, Session, TrackRole, phase, span, step};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

static LAYER: Name = Name::span("layer");
const SPANS_A_STEP: u64 = 20;
const WATCHED: Duration = Duration::from_secs(10);
const PAIRS: usize = 30;

fn main() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let session = Session::builder("watched").directory(dir.path()).start();
    let track = session.track("train", TrackRole::Training);
    busy(Duration::from_millis(300), 100_000);

    let (viewer, before) = watched_from_now(dir.path());
    busy(WATCHED, 100_000);
    println!("viewer at 100,000 spans a second: {:.2} % of a core (target 5)", viewer.cpu_percent_since(before));
    drop(viewer);

    let (viewer, before) = watched_from_now(dir.path());
    std::thread::sleep(WATCHED);
    println!("viewer of a program at rest: {:.2} % of a core", viewer.cpu_percent_since(before));
    drop(viewer);

    let mut lost: Vec<f64> = (0..PAIRS).map(|pair| lost_in_pair(pair, dir.path())).collect();
    lost.sort_by(f64::total_cmp);
    let quantile = |q: usize| lost[(PAIRS - 1) * q / 4] * 100.0;
    println!("time lost to a viewer at 5 ms steps: {:+.2} % ({:+.2} .. {:+.2})", quantile(2), quantile(1), quantile(3));
    drop((track, session));
}

/// A viewer that has drawn its first screens, and its CPU time then.
fn watched_from_now(dir: &Path) -> (Viewer, (Instant, f64)) {
    let viewer = Viewer::start(dir);
    std::thread::sleep(Duration::from_millis(700));
    let before = (Instant::now(), viewer.cpu_s());
    (viewer, before)
}

/// The program in a terminal of its own.
struct Viewer {
    child: Box<dyn Child + Send + Sync>,
    _terminal: Box<dyn MasterPty + Send>,
}

impl Viewer {
    fn start(dir: &Path) -> Self {
        let size = PtySize { rows: 40, cols: 120, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a terminal");
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_gnntop"));
        command.args(["attach", "watched"]);
        command.env("GNNTOP_DIR", dir);
        command.env("TERM", "xterm-256color");
        let child = pair.slave.spawn_command(command).expect("the viewer starts");
        let mut output = pair.master.try_clone_reader().expect("its output");
        std::thread::spawn(move || {
            let mut bytes = [0; 1 << 16];
            while output.read(&mut bytes).is_ok_and(|len| len > 0) {}
        });
        Self { child, _terminal: pair.master }
    }

    /// CPU seconds so far, user and system, from `/proc`.
    fn cpu_s(&self) -> f64 {
        let pid = self.child.process_id().expect("a process");
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the viewer runs");
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        let ticks: f64 = after_name.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<f64>().ok()).sum();
        ticks / 100.0
    }

    fn cpu_percent_since(&self, (start, cpu_s): (Instant, f64)) -> f64 {
        (self.cpu_s() - cpu_s) / start.elapsed().as_secs_f64() * 100.0
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        // Already gone is as good as killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Publishes so many spans a second, in steps of [`SPANS_A_STEP`].
fn busy(time: Duration, spans_per_s: u64) {
    let step_time = Duration::from_nanos(1_000_000_000 * SPANS_A_STEP / spans_per_s);
    let (start, mut next) = (Instant::now(), Instant::now());
    while start.elapsed() < time {
        {
            let _step = step(0);
            let _forward = span(&phase::FORWARD);
            (1..SPANS_A_STEP).for_each(|_| drop(black_box(span(&LAYER))));
        }
        next += step_time;
        // Sleeping is too coarse for 200 us: catch up in bursts of a millisecond.
        if next > Instant::now() + Duration::from_millis(1) {
            std::thread::sleep(next - Instant::now());
        }
    }
}

fn lost_in_pair(pair: usize, dir: &Path) -> f64 {
    let watched = || {
        let (viewer, _) = watched_from_now(dir);
        let time = slice();
        drop(viewer);
        time
    };
    let (without, with) = if pair.is_multiple_of(2) {
        let without = slice();
        (without, watched())
    } else {
        let with = watched();
        (slice(), with)
    };
    with / without - 1.0
}

/// Seconds for 60 steps of a fixed amount of work, about 5 ms each.
fn slice() -> f64 {
    let begin = Instant::now();
    for _ in 0..60 {
        let _step = step(0);
        let _forward = span(&phase::FORWARD);
        for _ in 1..SPANS_A_STEP {
            let _layer = span(&LAYER);
            work(150_000);
        }
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
