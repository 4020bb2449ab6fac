//! How much memory a viewer's store takes over ten minutes of a busy training, fed at accelerated time.
//!
//! Its tables fill up and then stay as they are; the longest, those of steps and readings, fill for half an hour.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use gnntop_analysis::ranks::Run;
use gnntop_fixtures::{MS, SECOND, START_NS, StreamBuilder};
use gnntop_wire::{Event, NameKind, SignalKind, Span, StepId, StreamReader, TrackRole, Unit};

/// Bytes that are allocated now.
static LIVE: AtomicUsize = AtomicUsize::new(0);

struct Counted;

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller promises what the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// Steps a second, spans in each step, and sensors, each read ten times a second: 40,000 events a second.
const STEPS_PER_S: u64 = 100;
const SPANS_PER_STEP: u64 = 392;
const SENSORS: usize = 60;
const PHASES: [&str; 6] = ["data wait", "gather", "forward", "loss", "backward", "optimizer"];
/// What the store may grow by after its first minute: 170 bytes for each of 54,000 steps, which are kept up to 262,144, and 24
/// bytes for each of 324,000 readings, which are kept for half an hour, with the room that both have to grow.
const GROWTH: usize = 32 << 20;

#[test]
fn store_memory_is_bounded_by_limits() {
    let mut stream = StreamBuilder::new("busy");
    let train = stream.track(TrackRole::Training, "main");
    let sensors = stream.track(TrackRole::Sensors, "sensors");
    let layers: Vec<_> = (0..40).map(|layer| stream.name(NameKind::Span, &format!("layer {layer}"))).collect();
    let signals: Vec<_> =
        (0..SENSORS).map(|n| stream.signal(&format!("cpu.{n}.util"), Unit::MilliPercent, SignalKind::Gauge)).collect();
    let (mut run, mut reader) = (Run::default(), StreamReader::new());
    let step_ns = SECOND / STEPS_PER_S;
    let mut by_minute = Vec::new();
    let mut noise = 1_u64;
    for minute in 0..10 {
        for step in minute * 60 * STEPS_PER_S..(minute + 1) * 60 * STEPS_PER_S {
            let begin_ns = START_NS + step * step_ns;
            let each_ns = step_ns / (SPANS_PER_STEP + 1);
            for n in 0..SPANS_PER_STEP {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let start_ns = begin_ns + n * each_ns;
                let end_ns = start_ns + each_ns - noise % (each_ns / 4);
                let name = layers[(n % 40) as usize];
                stream.event(train, Event::Span(Span { name, start_ns, end_ns, step: StepId(step + 1) }));
            }
            for (at, phase) in (0..).zip(PHASES) {
                let start_ns = begin_ns + at * step_ns / 7;
                stream.phase(train, step + 1, phase, start_ns, start_ns + step_ns / 8);
            }
            stream.step(train, step + 1, begin_ns, begin_ns + step_ns - MS / 10);
            if step % (STEPS_PER_S / 10) == 0 {
                let read = |(n, signal): (usize, &_)| (*signal, (noise >> (n % 32)) as i64 % 100_000);
                signals
                    .iter()
                    .enumerate()
                    .map(read)
                    .for_each(|(signal, value)| stream.sample(sensors, signal, begin_ns, value));
            }
            if step % STEPS_PER_S == 0 {
                stream.anchor(begin_ns);
            }
            if step % 10 == 9 {
                reader.fill(&stream.take_bytes());
                while let Some(item) = reader.next() {
                    run.apply(item);
                }
            }
        }
        by_minute.push(LIVE.load(Ordering::Relaxed));
    }
    let in_mb: Vec<usize> = by_minute.iter().map(|bytes| bytes >> 20).collect();
    println!("MB at the end of each minute: {in_mb:?}");
    assert_eq!(run.store().steps().total(), 600 * STEPS_PER_S);
    assert!(by_minute[9] <= by_minute[0] + GROWTH, "{in_mb:?} MB by minute");
}
