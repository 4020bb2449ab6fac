//! The cost of watching: `cargo bench --bench viewer`.
//!
//! 1. CPU of a viewer in a terminal of 120x40 that follows 100,000 spans a second, and of one that follows a program
//!    at rest, in percent of a core.
//! 2. Throughput of a run with 5 ms steps of 20 spans each while a viewer follows it, against the same run without:
//!    slices alternate in the order ABBA, the figure is the median over pairs.
//! 3. CPU and memory of a viewer of a run of 64 ranks with 1,000 spans a second each, in the overview and in the view of the
//!    ranks. `cargo bench --bench viewer -- ranks` does only this.
#![allow(missing_docs, clippy::print_stdout, clippy::expect_used)]

use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use gnntop_probe::{Name, Session, TrackRole, phase, span, step};
use gnntop_sessions::layout;
use gnntop_wire::{
    Anchor, BatchShape, BlockEncoder, Definition, Event, NameId, NameKind, Place, SessionInfo, Span, Step, StepId,
    TrackId, put_anchor, put_definitions, put_segment,
};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

static LAYER: Name = Name::span("layer");
const SPANS_A_STEP: u64 = 20;
const WATCHED: Duration = Duration::from_secs(10);
const PAIRS: usize = 30;

fn main() {
    if !std::env::args().any(|argument| argument == "ranks") {
        one_session();
    }
    many_ranks();
}

fn many_ranks() {
    for (keys, view) in [("", "overview"), ("R", "ranks")] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut run = ManyRanks::start(dir.path());
        run.publish(Duration::from_millis(500));
        let mut viewer = Viewer::start(dir.path(), "many");
        run.publish(Duration::from_millis(1500));
        viewer.press(keys);
        run.publish(Duration::from_millis(500));
        let before = (Instant::now(), viewer.cpu_s());
        run.publish(WATCHED);
        let (cpu, rss) = (viewer.cpu_percent_since(before), viewer.rss_mib());
        println!(
            "viewer of {RANKS} ranks at 1,000 spans a second each, {view}: {cpu:.2} % of a core (target 10), {rss} MiB"
        );
    }
}

/// Ranks of the simulated run.
const RANKS: u32 = 64;
/// Time between two writes of a rank, as in a program's drain thread.
const DRAIN: Duration = Duration::from_millis(20);
/// Spans of a rank between two writes.
const SPANS: u64 = 20;

/// The sessions of a run, all written by this thread: 64 processes would take up the measured machine.
struct ManyRanks {
    ranks: Vec<(File, BlockEncoder)>,
    _locks: Vec<File>,
    start: Instant,
    next: Duration,
    step: u64,
}

impl ManyRanks {
    fn start(sessions: &Path) -> Self {
        let (mut ranks, mut locks) = (Vec::new(), Vec::new());
        for rank in 0..RANKS {
            let dir = sessions.join(format!("rank{rank}"));
            std::fs::create_dir(&dir).expect("a directory");
            let lock = File::create(dir.join(layout::LOCK_FILE)).expect("a file");
            lock.lock().expect("nobody else has it");
            let mut file = File::create(dir.join(layout::segment_file_name(0))).expect("a file");
            file.write_all(&head(rank)).expect("written");
            ranks.push((file, BlockEncoder::new(TrackId(1))));
            locks.push(lock);
        }
        Self { ranks, _locks: locks, start: Instant::now(), next: Duration::ZERO, step: 0 }
    }

    /// Writes what the ranks would write in this time.
    fn publish(&mut self, time: Duration) {
        let end = self.start.elapsed() + time;
        while self.next < end {
            std::thread::sleep(self.next.saturating_sub(self.start.elapsed()));
            self.step += 1;
            let start_ns = START_NS + self.next.as_nanos() as u64;
            let mut bytes = Vec::new();
            for (rank, (file, block)) in self.ranks.iter_mut().enumerate() {
                bytes.clear();
                put_step(block, self.step, start_ns, rank as u64 * 20_000);
                block.finish(0, &mut bytes);
                if self.step.is_multiple_of(50) {
                    put_anchor(&mut bytes, &anchor(start_ns + DRAIN.as_nanos() as u64));
                }
                file.write_all(&bytes).expect("written");
            }
            self.next += DRAIN;
        }
    }
}

const START_NS: u64 = 1_000_000_000_000;

fn anchor(t_ns: u64) -> Anchor {
    Anchor { monotonic_ns: t_ns, wall_ns: 1_700_000_000_000_000_000 + t_ns, boot_ns: t_ns }
}

/// The names of a step's parts: phases, then spans.
const NAMES: [&str; 7] = ["data wait", "forward", "backward", "all-reduce", "layer", "wait", "reduce"];

fn head(rank: u32) -> Vec<u8> {
    let (start, device) = (anchor(START_NS), "CPU".to_owned());
    let place = Place {
        run: "many".to_owned(),
        rank,
        ranks: RANKS,
        copies: RANKS,
        stages: 1,
        device,
        host_ranks: RANKS,
        ..Place::default()
    };
    let (name, boot_id) = ("many".to_owned(), "boot".to_owned());
    let session_id = u128::from(rank) + 1;
    let info = SessionInfo {
        session_id,
        name,
        boot_id,
        pid: 9000 + rank,
        start,
        place: Some(Box::new(place)),
        ..SessionInfo::default()
    };
    let mut out = Vec::new();
    put_segment(&mut out, &info);
    let kind = |at: usize| if at < 4 { NameKind::Phase } else { NameKind::Span };
    let name = |(at, text): (usize, &&str)| Definition::Name {
        id: NameId(at as u32 + 1),
        kind: kind(at),
        text: (*text).to_owned(),
    };
    let mut definitions: Vec<Definition> = NAMES.iter().enumerate().map(name).collect();
    let (role, text) = (TrackRole::Training, "main".to_owned());
    definitions.push(Definition::Track { id: TrackId(1), role, thread_id: 1, text });
    put_definitions(&mut out, &definitions);
    put_anchor(&mut out, &start);
    out
}

/// One step with its spans; a rank that is later in its backward waits less in the all-reduce.
fn put_step(block: &mut BlockEncoder, step: u64, start_ns: u64, later_ns: u64) {
    let id = StepId(step);
    let mut put = |name: u32, from_us: u64, to_us: u64, late: (bool, bool)| {
        let at = |us: u64, is_late: bool| start_ns + us * 1000 + if is_late { later_ns } else { 0 };
        let (start_ns, end_ns) = (at(from_us, late.0), at(to_us, late.1));
        assert!(
            block.push(&Event::Span(Span { name: NameId(name), start_ns, end_ns, step: id })),
            "a step fits a block"
        );
    };
    put(1, 0, 1000, (false, false));
    (0..SPANS - 6).for_each(|layer| put(5, 1000 + layer * 300, 1300 + layer * 300, (false, false)));
    put(2, 1000, 6000, (false, false));
    put(3, 6000, 12_000, (false, true));
    put(6, 12_000, 16_000, (true, false));
    put(7, 16_000, 18_000, (false, false));
    put(4, 12_000, 18_000, (true, false));
    let batch = BatchShape { seeds: Some(512), ..BatchShape::default() };
    let end_ns = start_ns + 19_000_000;
    assert!(block.push(&Event::Step(Step { step: id, start_ns, end_ns, batch, ..Step::default() })));
}

fn one_session() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let session = Session::builder("watched").directory(dir.path()).start();
    let track = session.track("train", TrackRole::Training);
    busy(Duration::from_millis(300), 100_000);

    let (viewer, before) = start_watching(dir.path());
    busy(WATCHED, 100_000);
    println!("viewer at 100,000 spans a second: {:.2} % of a core (target 5)", viewer.cpu_percent_since(before));
    drop(viewer);

    let (viewer, before) = start_watching(dir.path());
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
fn start_watching(dir: &Path) -> (Viewer, (Instant, f64)) {
    let viewer = Viewer::start(dir, "watched");
    std::thread::sleep(Duration::from_millis(700));
    let before = (Instant::now(), viewer.cpu_s());
    (viewer, before)
}

/// The program in its own terminal.
struct Viewer {
    child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn Write + Send>,
    _terminal: Box<dyn MasterPty + Send>,
}

impl Viewer {
    fn start(dir: &Path, named: &str) -> Self {
        let size = PtySize { rows: 40, cols: 120, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a terminal");
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_gnntop"));
        command.args(["attach", named]);
        command.env("GNNTOP_DIR", dir);
        command.env("TERM", "xterm-256color");
        let child = pair.slave.spawn_command(command).expect("the viewer starts");
        let mut output = pair.master.try_clone_reader().expect("its output");
        std::thread::spawn(move || {
            let mut bytes = [0; 1 << 16];
            while output.read(&mut bytes).is_ok_and(|len| len > 0) {}
        });
        let keyboard = pair.master.take_writer().expect("its input");
        Self { child, keyboard, _terminal: pair.master }
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the viewer listens");
    }

    /// Resident memory now, from `/proc`, which counts pages of 4 KiB.
    fn rss_mib(&self) -> u64 {
        let pid = self.child.process_id().expect("a process");
        let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).expect("the viewer runs");
        statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4 / 1024
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

/// Publishes this many spans per second, in steps of [`SPANS_A_STEP`].
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
        let (viewer, _) = start_watching(dir);
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
