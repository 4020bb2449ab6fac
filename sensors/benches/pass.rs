//! What one sampling pass over this process and machine costs, without a GPU.
//!
//! At ten passes a second the target, below 0.1 % of a core, is 100 µs a pass. The CPU time of the thread is measured,
//! not the time on the wall, since that is what a pass takes from a training run, and neighbours do not disturb it.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use gnntop_sensors::{Rivals, SensorOptions, SensorSet};

/// The CPU time this thread has used.
fn thread_cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live, writable timespec.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0, "this system has no clock of a thread's CPU time");
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The CPU time of `iterations` calls of `work`.
fn cpu_time_of(iterations: u64, mut work: impl FnMut()) -> Duration {
    let before = thread_cpu_time();
    for _ in 0..iterations {
        work();
    }
    thread_cpu_time() - before
}

fn pass(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pass");
    for (name, per_core) in [("total and cores", true), ("total only", false)] {
        let mut set = SensorSet::open(&SensorOptions { gpu: false, per_core, ..SensorOptions::default() });
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|iterations| {
                cpu_time_of(iterations, || set.read(&mut |reading| drop(black_box(reading))))
            });
        });
    }
    group.finish();
}

fn open(criterion: &mut Criterion) {
    let options = SensorOptions { gpu: false, ..SensorOptions::default() };
    criterion.bench_function("open", |bencher| {
        bencher.iter_custom(|iterations| cpu_time_of(iterations, || drop(black_box(SensorSet::open(&options)))));
    });
}

/// A look through all processes, made every 10 s at most and only while others take the processor.
fn rivals(criterion: &mut Criterion) {
    let mut rivals = Rivals::new(&SensorOptions::default());
    let listed = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes =
        listed.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok())).count();
    criterion.bench_function(&format!("look through {processes} processes"), |bencher| {
        bencher.iter_custom(|iterations| cpu_time_of(iterations, || drop(black_box(rivals.scan()))));
    });
}

criterion_group!(benches, pass, open, rivals);
criterion_main!(benches);
