//! Speed and size of the codec: `cargo bench -p gnntop-wire`.
//!
//! The events are those of a training of a layered model: a step of four phases, sixteen layer spans inside
//! `forward`, durations that jitter by some percent, gaps of some hundred nanoseconds, and a step record with
//! batch shape and loss. Each figure is the median of many repetitions on one core, in spans a second (step
//! records are work too, but not counted) and in bytes a span, frames included.

#![allow(clippy::print_stdout, clippy::panic)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use gnntop_wire::{
    BatchShape, BlockEncoder, Event, EventSink, Item, NameId, Span, Step, StepId, StreamReader, ThreadUsage, TrackId,
};

const SPANS: usize = 20_000;
const SPANS_PER_STEP: usize = 20;
const REPETITIONS: usize = 301;

fn main() {
    // `cargo test --all-targets` starts benchmarks too, without this argument.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!("{:>9} {:>7} {:>7} {:>14} {:>14} {:>12}", "step", "as", "block", "encode", "decode", "size");
    for step_ns in [1_400_000, 40_000_000] {
        let events = training(step_ns);
        println!("a span alone takes {:.2} bytes before frames and compression", span_len(&events));
        for spans_per_block in [20, 200, 5000] {
            report(step_ns, spans_per_block, &events, BlockEncoder::new(TrackId(1)), "rows");
            report(step_ns, spans_per_block, &events, BlockEncoder::packed(TrackId(1)), "packed");
        }
    }
}

fn report(step_ns: u64, spans_per_block: usize, events: &[Event], mut encoder: BlockEncoder, kind: &str) {
    let events_per_block = spans_per_block + spans_per_block / SPANS_PER_STEP;
    let mut stream = Vec::with_capacity(16 * SPANS);
    let encode = median(|| {
        stream.clear();
        for block in events.chunks(events_per_block) {
            for event in block {
                assert!(encoder.push(event), "blocks stay below their limit");
            }
            encoder.finish(0, &mut stream);
        }
        black_box(&stream);
    });
    let decode = median(|| assert_eq!(spans_in(&stream), SPANS));
    let rate = |time: Duration| SPANS as f64 / time.as_secs_f64() / 1e6;
    println!(
        "{:>6.1} ms {kind:>7} {:>7} {:>8.1} M/s {:>10.1} M/s {:>8.2} B/span",
        step_ns as f64 / 1e6,
        spans_per_block,
        rate(encode),
        rate(decode),
        stream.len() as f64 / SPANS as f64,
    );
}

/// Bytes that a span takes in the body of a block.
fn span_len(events: &[Event]) -> f64 {
    let mut encoder = BlockEncoder::new(TrackId(1));
    let (mut bytes, mut discarded) = (0, Vec::new());
    for event in events.iter().filter(|event| matches!(event, Event::Span(_))) {
        let before = encoder.len();
        assert!(encoder.push(event), "finished before it is full");
        bytes += encoder.len() - before;
        if encoder.is_full() {
            encoder.finish(0, &mut discarded);
        }
    }
    bytes as f64 / SPANS as f64
}

/// Decodes the stream as a viewer does, in chunks, and counts its spans.
fn spans_in(stream: &[u8]) -> usize {
    let mut reader = StreamReader::new();
    let mut seen = SpanCounter::default();
    for chunk in stream.chunks(256 * 1024) {
        reader.fill(chunk);
        while let Some(item) = reader.next() {
            let Item::Block(_, mut events) = item else { panic!("only blocks were written") };
            events.decode_into(&mut seen);
        }
    }
    black_box(seen.total_ns);
    seen.spans
}

/// Counts spans.
#[derive(Default)]
struct SpanCounter {
    spans: usize,
    total_ns: u64,
}

impl EventSink for SpanCounter {
    fn span(&mut self, span: &Span) {
        self.spans += 1;
        self.total_ns = self.total_ns.wrapping_add(span.end_ns - span.start_ns);
    }

    fn other(&mut self, event: &Event) {
        black_box(event);
    }
}

fn median(mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..REPETITIONS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[REPETITIONS / 2]
}

/// The events of a training with steps of about `step_ns`, [`SPANS`] spans in all.
fn training(step_ns: u64) -> Vec<Event> {
    let mut random = Random(42);
    let mut t = 3_600_000_000_000;
    let mut events = Vec::new();
    for step in 1..=(SPANS / SPANS_PER_STEP) as u64 {
        let start_ns = t;
        let mut span = |name: u32, start_ns: u64, end_ns: u64| {
            events.push(Event::Span(Span { name: NameId(name), start_ns, end_ns, step: StepId(step) }));
        };
        t = leaf(&mut random, &mut span, 1, t, step_ns / 40);
        let forward_ns = t + random.around(150);
        t = forward_ns;
        for layer in 0..16 {
            t = leaf(&mut random, &mut span, 5 + layer, t, step_ns / 40);
        }
        t += random.around(200);
        span(2, forward_ns, t);
        t = leaf(&mut random, &mut span, 3, t, step_ns / 2);
        t = leaf(&mut random, &mut span, 4, t, step_ns / 20);
        t += random.around(300);
        events.push(Event::Step(step_record(step, start_ns, t, &mut random)));
        t += random.around(2000);
    }
    events
}

fn leaf(random: &mut Random, span: &mut impl FnMut(u32, u64, u64), name: u32, t: u64, duration_ns: u64) -> u64 {
    let start_ns = t + random.around(150);
    let end_ns = start_ns + random.around(duration_ns);
    span(name, start_ns, end_ns);
    end_ns
}

fn step_record(step: u64, start_ns: u64, end_ns: u64, random: &mut Random) -> Step {
    Step {
        is_traced: false,
        step: StepId(step),
        epoch: step / 1000,
        start_ns,
        end_ns,
        batch: BatchShape {
            graphs: Some(256),
            nodes: Some(random.around(3600)),
            edges: Some(random.around(7800)),
            seeds: None,
        },
        loss: Some(f64::from(1.0 / (step as f32).sqrt())),
        usage: Some(ThreadUsage {
            minor_faults: random.around(20),
            involuntary_switches: random.around(3),
            ..Default::default()
        }),
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// About `mean`: a sum of four uniform parts, with a standard deviation of some 7 %.
    fn around(&mut self, mean: u64) -> u64 {
        let width = mean / 2 + 1;
        let parts: u64 = (0..4).map(|_| self.next() % (width / 4 + 1)).sum();
        mean - mean / 4 + parts
    }
}
