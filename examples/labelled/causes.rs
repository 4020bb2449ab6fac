//! The causes: for each, what is done, what must be found, and what may also be found because it is true, too.

use std::cell::RefCell;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use gnntop::import::{self, CsvOptions, Mapping};
use gnntop_probe::{BatchShape, Name, TrackRole, counter, mark, phase, span};

use super::training::{TURNS, Turn, chance, run, session, sleep, spin, turns};

static GC: Name = Name::mark("gc");
static CHECKPOINT: Name = Name::mark("checkpoint");
static EPOCH: Name = Name::mark("epoch");
static QUEUE: Name = Name::counter("queue depth");
static DENORMALS: Name = Name::reported(gnntop_probe::Reported::Denormals);

/// A run whose cause is known.
pub struct Cause {
    pub name: &'static str,
    /// Ids of the findings that must be reported.
    pub expect: &'static [&'static str],
    /// Ids of findings that are also true, and are neither required nor counted as wrong.
    pub also: &'static [&'static str],
    /// Writes the recording.
    pub make: fn(&Path),
}

const fn cause(
    name: &'static str,
    expect: &'static [&'static str],
    also: &'static [&'static str],
    make: fn(&Path),
) -> Cause {
    Cause { name, expect, also, make }
}

pub static ALL: [Cause; 34] = [
    cause("clean-1", &[], &[], |path| clean(path, 1)),
    cause("clean-2", &[], &[], |path| clean(path, 2)),
    cause("clean-3", &[], &[], |path| clean(path, 3)),
    cause("clean-4-epochs", &[], &[], |path| run(path, |i| with_epoch_mark(i, Turn::default()))),
    cause("clean-5-sizes", &[], &[], |path| run(path, |i| sized(i, 0.2))),
    cause("clean-6-sizes", &[], &[], |path| run(path, |i| sized(i + 1000, 0.12))),
    cause("clean-7-busy", &[], &[], |path| run(path, |_| busy(1.0))),
    cause("clean-8-memory", &[], &[], |path| run(path, buffers)),
    cause("clean-9-levels-off", &[], &[], |path| {
        let mut held = Vec::new();
        run(path, |i| {
            if i < 40 {
                held.push(vec![1u8; 1 << 20]);
            }
            Turn::default()
        });
        black_box(&held);
    }),
    cause("clean-10-loader", &[], &[], |path| loader(path, 4.0)),
    cause("spike", &["spike"], &[], |path| run(path, |i| forward_ms(if i % 57 == 50 { 140.0 } else { 10.0 }))),
    cause("spike-one", &["spike"], &[], |path| run(path, |i| forward_ms(if i == 111 { 60.0 } else { 10.0 }))),
    cause("stall-gc", &["stall", "spike"], &[], |path| {
        run(path, |i| Turn { forward: (i % 40 == 39).then(|| pause(&GC, 130.0)), ..Turn::default() });
    }),
    cause("stall-checkpoint", &["stall", "gap"], &[], |path| {
        run(path, |i| Turn { between: (i % 50 == 49).then(|| pause(&CHECKPOINT, 80.0)), ..Turn::default() });
    }),
    cause("partial-batch", &["partial-batch"], &[], |path| run(path, |i| epochs_of(i, 10, 0.4))),
    cause("partial-batch-small", &["partial-batch"], &["phase-shift"], |path| run(path, |i| epochs_of(i, 3, 0.25))),
    cause("slow-loader", &["data-bound"], &["warm-up"], |path| loader(path, 40.0)),
    cause("slow-loader-worse", &["data-bound"], &["warm-up"], |path| loader(path, 60.0)),
    cause("gap", &["gap"], &[], |path| run(path, |_| Turn { between_ms: 6.0, ..Turn::default() })),
    cause("gap-epochs", &["gap"], &["partial-batch"], |path| {
        run(path, |i| Turn { between_ms: if i % 20 == 19 { 120.0 } else { 0.0 }, epoch: i / 20, ..Turn::default() });
    }),
    cause("page-fault-storm", &["page-faults", "spike"], &["contention"], |path| {
        run(path, |i| Turn { forward: (i % 37 == 20).then(|| touch(256 << 20)), ..Turn::default() });
    }),
    cause("denormals", &["denormals"], &["spike", "drift", "contention"], |path| {
        run(path, |i| Turn {
            forward: Some(Box::new(move || multiply(if i % 3 == 0 { 1e-40 } else { 1.0 }))),
            ..Turn::default()
        });
    }),
    cause("contention", &["contention"], &["spike", "stall", "gap", "drift", "warm-up", "data-bound"], contention),
    cause("leak", &["memory-growth"], &[], |path| {
        let held: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
        run(path, |_| {
            let held = Rc::clone(&held);
            Turn { forward: Some(Box::new(move || held.borrow_mut().push(vec![1; 1 << 20]))), ..Turn::default() }
        });
    }),
    cause("churn", &["allocation-churn"], &["spike", "contention"], |path| {
        run(path, |_| Turn { forward: Some(touch(40 << 20)), ..Turn::default() });
    }),
    cause("warm-up", &["warm-up"], &[], |path| {
        run(path, |i| forward_ms(if i < 8 { 100.0 - 10.0 * i as f64 } else { 10.0 }));
    }),
    cause("warm-up-one", &["warm-up"], &[], |path| run(path, |i| forward_ms(if i == 0 { 500.0 } else { 10.0 }))),
    cause("drift", &["drift"], &[], |path| {
        run(path, |i| Turn { backward_ms: 15.0 + 15.0 * i as f64 / TURNS as f64, ..Turn::default() });
    }),
    cause("phase-shift", &["phase-shift"], &[], |path| run(path, |i| sized(i, 0.8))),
    cause("overlapping-phases", &["bookkeeping"], &[], overlapping),
    cause("gpu-idle", &["gpu-idle"], &[], |path| {
        table(path, "gpu", &["signal:gpu.0.util=gpu:%"], |i| (20.0 + 60.0 * chance(i)).to_string());
    }),
    cause("gpu-throttled", &["gpu-throttled"], &[], |path| {
        let columns = ["signal:gpu.0.util=gpu:%", "signal:gpu.0.throttle=throttle:bits"];
        table(path, "gpu,throttle", &columns, |i| format!("99,{}", if i > TURNS / 2 { 0x40 } else { 0 }));
    }),
    cause("energy-modelled", &["modelled-energy"], &[], |path| {
        // 250 W times the time of the step, which `table` makes 10 ms or 25 ms.
        table(path, "joules", &["total:cpu.energy=joules:J"], |i| (250.0 * step_ms(i) / 1e3).to_string());
    }),
    cause("energy-measured", &[], &[], |path| {
        table(path, "joules", &["total:cpu.energy=joules:J"], |i| {
            (200.0 * (1.0 + chance(i)) * step_ms(i) / 1e3).to_string()
        });
    }),
];

fn clean(path: &Path, seed: u64) {
    run(path, move |i| Turn { forward_ms: 9.8 + 0.4 * chance(seed * 1000 + i), ..Turn::default() });
}

fn forward_ms(forward_ms: f64) -> Turn {
    Turn { forward_ms, ..Turn::default() }
}

fn with_epoch_mark(i: u64, turn: Turn) -> Turn {
    if i.is_multiple_of(25) {
        mark(&EPOCH, Some((i / 25) as f64));
    }
    Turn { epoch: i / 25, ..turn }
}

/// A batch whose edges vary by this share, and a backward phase that takes its time by them.
fn sized(i: u64, by: f64) -> Turn {
    let size = 1.0 + by * (2.0 * chance(i * 7) - 1.0);
    let batch = BatchShape { edges: Some((1900.0 * size) as u64), ..BatchShape::default() };
    Turn { backward_ms: 20.0 * size, batch, ..Turn::default() }
}

/// Epochs of this many steps, the last of which has this share of a batch.
fn epochs_of(i: u64, steps: u64, share: f64) -> Turn {
    let share = if i % steps == steps - 1 { share } else { 1.0 };
    let part = |n: f64| Some((n * share) as u64);
    let batch = BatchShape { graphs: part(64.0), nodes: part(900.0), edges: part(1900.0), seeds: None };
    Turn { epoch: i / steps, forward_ms: 10.0 * share, backward_ms: 18.0 * share, batch, ..Turn::default() }
}

fn busy(ms: f64) -> Turn {
    Turn { forward: Some(Box::new(move || spin(ms))), forward_ms: 9.0, ..Turn::default() }
}

/// Allocates and frees some memory in every step, too little for the system to notice.
fn buffers(i: u64) -> Turn {
    let bytes = 1000 * (1 + i % 7) as usize;
    Turn { forward: Some(Box::new(move || drop(black_box(vec![1u8; bytes])))), ..Turn::default() }
}

fn pause(name: &'static Name, ms: f64) -> Box<dyn FnOnce()> {
    Box::new(move || {
        sleep(ms, 0);
        mark(name, Some(ms));
    })
}

/// Takes fresh pages from the system, writes to each, and frees them.
fn touch(bytes: usize) -> Box<dyn FnOnce()> {
    Box::new(move || drop(black_box(vec![1u8; bytes])))
}

/// Multiplies numbers of this size, a fixed number of times, and counts the denormal ones among them.
fn multiply(size: f32) {
    let (mut x, factor) = (black_box(size), black_box(0.999_999_f32));
    let mut sums = [0.0f32; 4];
    for _ in 0..400_000 {
        x = black_box(x) * factor;
        x = if x.abs() < size * 0.5 { size } else { x };
        sums[0] += x;
    }
    black_box(sums);
    counter(&DENORMALS, if size < f32::MIN_POSITIVE { 400_000.0 } else { 0.0 });
}

/// A separate loader thread that needs this long for a batch.
fn loader(path: &Path, ms: f64) {
    let session = session(path);
    let (sender, receiver) = sync_channel::<u64>(4);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _track = session.track("loader 0", TrackRole::Loader);
            static COLLATE: Name = Name::span("collate");
            for i in 0..TURNS {
                {
                    let _collate = span(&COLLATE);
                    sleep(ms, i);
                }
                if sender.send(i).is_err() {
                    return;
                }
            }
        });
        let _track = session.track("main", TrackRole::Training);
        let mut ready = 0u64;
        for i in 0..TURNS {
            let mut step = gnntop_probe::step(0);
            {
                let _wait = span(&phase::DATA_WAIT);
                // Polls without waiting first: whether one was ready is the depth of the queue.
                ready = if receiver.try_recv().is_ok() { ready.max(1) } else { u64::from(receiver.recv().is_err()) };
                counter(&QUEUE, ready as f64);
            }
            {
                let _forward = span(&phase::FORWARD);
                sleep(10.0, i);
            }
            {
                let _backward = span(&phase::BACKWARD);
                sleep(15.0, i + 1);
            }
            step.batch(BatchShape { graphs: Some(64), nodes: Some(900), edges: Some(1900), seeds: None });
        }
        drop(receiver);
    });
}

/// Computes on every core while the training loop wants one.
fn contention(path: &Path) {
    let session = session(path);
    let done = Arc::new(AtomicBool::new(false));
    let cores = thread::available_parallelism().map_or(2, usize::from);
    let others: Vec<_> = (0..3 * cores)
        .map(|_| {
            let done = Arc::clone(&done);
            thread::spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    spin(1.0)
                }
            })
        })
        .collect();
    thread::sleep(Duration::from_millis(50));
    {
        let _track = session.track("main", TrackRole::Training);
        turns(|_| Turn { wait_ms: 0.0, forward_ms: 0.0, backward_ms: 0.0, ..busy(15.0) });
    }
    done.store(true, Ordering::Relaxed);
    others.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Another thread has phases too, at the same time.
fn overlapping(path: &Path) {
    let session = session(path);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _track = session.track("second", TrackRole::Other);
            while !done.load(Ordering::Relaxed) {
                let _forward = span(&phase::FORWARD);
                thread::sleep(Duration::from_millis(12));
            }
        });
        let _track = session.track("main", TrackRole::Training);
        turns(|_| Turn::default());
        done.store(true, Ordering::Relaxed);
    });
}

fn step_ms(i: u64) -> f64 {
    10.0 * (0.98 + 0.04 * chance(i * 3))
}

/// Imports a table of steps with these columns besides their times.
fn table(path: &Path, head: &str, columns: &[&str], row: impl Fn(u64) -> String) {
    let mut text = format!("step_ms,forward_ms,{head}\n");
    for i in 0..TURNS {
        text += &format!("{},{},{}\n", step_ms(i), step_ms(i) * 0.98, row(i));
    }
    let csv = path.with_extension("csv");
    fs::write(&csv, text).unwrap();
    let columns = columns.iter().map(|column| Mapping::parse(column).unwrap()).collect();
    let given = CsvOptions { columns, ..CsvOptions::default() };
    import::csv(&csv, &given, fs::File::create(path).unwrap()).unwrap();
    fs::remove_file(csv).unwrap();
}
