//! How fast a stream becomes a store: `cargo bench --bench store [-- millions of spans]`.
//!
//! Encodes a training run in memory (steps of 20 spans: 4 phases, 16 spans inside them; a loader thread with one span a
//! step), then reads it three times: decoding alone, into a store, and into a store with its report. Prints the median
//! of five passes as nanoseconds of CPU time per span (wall time if the system does not report it), and the memory that
//! the store took.
#![allow(missing_docs, clippy::print_stdout, clippy::expect_used)]

use std::hint::black_box;
use std::time::Instant;

use gnntop::report::{Document, Options, Report};
use gnntop_analysis::catalogue::Catalogue;
use gnntop_analysis::store::Store;
use gnntop_wire::{
    BatchShape, BlockEncoder, Definition, Event, Item, NameId, NameKind, Span, Step, StepId, StreamReader, TrackId,
    TrackRole, put_definitions, put_segment,
};

const SPANS_A_STEP: u64 = 21;
const PASSES: usize = 5;

fn main() {
    let millions: u64 = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(10);
    let steps = millions * 1_000_000 / SPANS_A_STEP;
    let spans = steps * SPANS_A_STEP;
    let stream = encode(steps);
    println!("{spans} spans, {steps} steps, {:.1} bytes a span", stream.len() as f64 / spans as f64);
    let before = reset_peak_rss();
    print("decode", spans, || each_item(&stream, |item| _ = black_box(count(item))));
    print("decode and store", spans, || drop(black_box(load(&stream))));
    print("decode, store and report", spans, || {
        let store = load(&stream);
        let report = Report::new(&Catalogue::new(&store), &Options::default());
        drop(black_box(Document::from_reports(&[("a.gnntop", &report)]).to_text()));
    });
    if let (Some(before), Some(after)) = (before, peak_rss_bytes()) {
        println!("memory of a store, at its peak: {} MiB", (after - before) >> 20);
    }
}

fn print(what: &str, spans: u64, mut pass: impl FnMut()) {
    let mut seconds: Vec<f64> = Vec::new();
    for _ in 0..PASSES {
        let (start, cpu_start) = (Instant::now(), cpu_ns());
        pass();
        let cpu = cpu_start.zip(cpu_ns()).map(|(start, end)| (end - start) as f64 / 1e9);
        seconds.push(cpu.unwrap_or(start.elapsed().as_secs_f64()));
    }
    seconds.sort_unstable_by(f64::total_cmp);
    let median = seconds[PASSES / 2];
    let ns = |seconds: f64| seconds * 1e9 / spans as f64;
    println!("{what}: {median:.3} s, {:.1} ns a span (fastest {:.1})", ns(median), ns(seconds[0]));
}

fn load(stream: &[u8]) -> Store {
    let mut store = Store::new();
    each_item(stream, |item| store.apply(item));
    store
}

fn count(item: Item<'_>) -> usize {
    if let Item::Block(_, events) = item { events.map(black_box).count() } else { 0 }
}

fn each_item(stream: &[u8], mut take: impl FnMut(Item<'_>)) {
    let mut reader = StreamReader::new();
    for chunk in stream.chunks(256 << 10) {
        reader.fill(chunk);
        while let Some(item) = reader.next() {
            take(item);
        }
    }
}

/// The stream, in blocks of 20 ms as the drain thread makes them.
fn encode(steps: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_segment(&mut out, &gnntop_wire::SessionInfo::default());
    put_definitions(&mut out, &definitions());
    let (mut main, mut loader) = (BlockEncoder::new(TrackId(1)), BlockEncoder::new(TrackId(2)));
    let mut random = 1u64;
    let mut t_ns = 1_000_000_000;
    for step in 1..=steps {
        let start_ns = t_ns;
        for phase in 0..4 {
            let phase_start = t_ns;
            for inner in 0..4 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let ns = 20_000 * (phase + 1) + (random >> 48);
                push(&mut main, &mut out, span(5 + phase * 4 + inner, t_ns, t_ns + ns, step));
                t_ns += ns + 200;
            }
            push(&mut main, &mut out, span(1 + phase, phase_start, t_ns, step));
            t_ns += 300;
        }
        let batch = BatchShape { graphs: Some(256), nodes: Some(3600 + random % 64), ..BatchShape::default() };
        let (step_id, end_ns) = (StepId(step), t_ns);
        push(&mut main, &mut out, Event::Step(Step { step: step_id, start_ns, end_ns, batch, ..Step::default() }));
        push(&mut loader, &mut out, span(21, start_ns, start_ns + 500_000 + random % 1000, step));
        t_ns += 2_000;
        if step % 20 == 0 {
            main.finish(0, &mut out);
            loader.finish(0, &mut out);
        }
    }
    main.finish(0, &mut out);
    loader.finish(0, &mut out);
    out
}

fn definitions() -> Vec<Definition> {
    let track = |id, role| Definition::Track { id: TrackId(id), role, thread_id: 0, text: format!("track {id}") };
    let mut all = vec![track(1, TrackRole::Training), track(2, TrackRole::Loader)];
    let phases = ["data wait", "forward", "backward", "optimizer"];
    for id in 1..=21u32 {
        let text = phases.get(id as usize - 1).map_or_else(|| format!("span {id}"), |text| text.to_string());
        let kind = if id <= 4 { NameKind::Phase } else { NameKind::Span };
        all.push(Definition::Name { id: NameId(id), kind, text });
    }
    all
}

fn span(name: u64, start_ns: u64, end_ns: u64, step: u64) -> Event {
    Event::Span(Span { name: NameId(name as u32), start_ns, end_ns, step: StepId(step) })
}

fn push(encoder: &mut BlockEncoder, out: &mut Vec<u8>, event: Event) {
    if !encoder.push(&event) {
        encoder.finish(0, out);
        assert!(encoder.push(&event), "an empty block takes any event");
    }
}

/// CPU time of this thread, if the system reports it.
fn cpu_ns() -> Option<u64> {
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}

/// Resets the peak to the memory held now, and returns that.
fn reset_peak_rss() -> Option<u64> {
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    peak_rss_bytes()
}

/// Peak memory of this process since the last reset, if the system reports it.
fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}
