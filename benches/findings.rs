//! The cost of looking for findings: `cargo bench --bench findings [-- thousands of steps]`.
//!
//! Makes a store of this many steps (default 1,000,000) with four phases, varying batches, spikes and marks, and prints
//! the median time of five searches in all of it, and in the newest 8,192 steps as in a running session.
#![allow(missing_docs, clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use gnntop_analysis::findings;
use gnntop_analysis::store::{Limits, Store};
use gnntop_wire::{
    BatchShape, BlockEncoder, Definition, Event, Mark, NameId, NameKind, Span, Step, StepId, StreamReader, ThreadUsage,
    TrackId, TrackRole, put_definitions,
};

const PASSES: usize = 5;
const MS: u64 = 1_000_000;

fn main() {
    let thousands: u64 = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(1000);
    let store = store(thousands * 1000);
    let steps = store.steps().total();
    println!("{steps} steps, {} rows kept", store.steps().len());
    print("all findings over all rows", || drop(black_box(findings::all_findings(&store))));
    print("all findings over the newest 8,192", || drop(black_box(findings::findings_in(&store, steps - 8192..steps))));
    let kinds: Vec<&str> = findings::all_findings(&store).found.iter().map(|finding| finding.kind.id()).collect();
    println!("found: {}", kinds.join(", "));
}

fn print(what: &str, mut pass: impl FnMut()) {
    let mut times: Vec<f64> = Vec::new();
    for _ in 0..PASSES {
        let start = Instant::now();
        pass();
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_unstable_by(f64::total_cmp);
    println!("{what}: {:.1} ms (fastest {:.1})", times[PASSES / 2], times[0]);
}

fn store(steps: u64) -> Store {
    let mut store = Store::with_limits(Limits { step_rows: 1 << 20, ..Limits::default() });
    let mut bytes = Vec::new();
    let main = TrackId(1);
    let names = ["data wait", "forward", "backward", "optimizer"];
    let name = |(i, text): (usize, &&str)| Definition::Name {
        id: NameId(i as u32 + 1),
        kind: NameKind::Phase,
        text: (*text).to_owned(),
    };
    let mut definitions: Vec<Definition> = names.iter().enumerate().map(name).collect();
    definitions.push(Definition::Name { id: NameId(9), kind: NameKind::Text, text: "gc".to_owned() });
    definitions.push(Definition::Track { id: main, role: TrackRole::Training, thread_id: 1, text: "main".to_owned() });
    put_definitions(&mut bytes, &definitions);
    let mut encoder = BlockEncoder::new(main);
    let mut t_ns = MS;
    for step in 1..=steps {
        for event in step_events(step, &mut t_ns) {
            if !encoder.push(&event) {
                encoder.finish(0, &mut bytes);
                encoder.push(&event);
            }
        }
        if bytes.len() > 1 << 20 {
            feed(&mut store, &mut bytes);
        }
    }
    encoder.finish(0, &mut bytes);
    feed(&mut store, &mut bytes);
    store
}

fn feed(store: &mut Store, bytes: &mut Vec<u8>) {
    let mut reader = StreamReader::new();
    reader.fill(bytes);
    reader.finish();
    while let Some(item) = reader.next() {
        store.apply(item);
    }
    bytes.clear();
}

fn step_events(step: u64, t_ns: &mut u64) -> Vec<Event> {
    let edges = 6000 + step * 7919 % 3000;
    let spike = if step.is_multiple_of(400) { 40 * MS } else { 0 };
    let phases = [MS, edges * 1000, 2 * edges * 1000 + spike, MS];
    let start_ns = *t_ns + MS / 4;
    *t_ns = start_ns;
    let mut events = Vec::new();
    for (i, ns) in phases.into_iter().enumerate() {
        let end_ns = *t_ns + ns + (step * 31 + i as u64) * 2_654_435_761 % (ns / 16);
        events.push(Event::Span(Span { name: NameId(i as u32 + 1), start_ns: *t_ns, end_ns, step: StepId(step) }));
        *t_ns = end_ns;
    }
    if spike > 0 {
        events.push(Event::Mark(Mark { name: NameId(9), t_ns: *t_ns, ..Mark::default() }));
    }
    let batch = BatchShape { graphs: Some(256), nodes: Some(edges / 2), edges: Some(edges), seeds: None };
    let usage = Some(ThreadUsage { minor_faults: step % 7, ..ThreadUsage::default() });
    let (step, end_ns, epoch) = (StepId(step), *t_ns, step / 1000);
    events.push(Event::Step(Step { step, epoch, start_ns, end_ns, batch, usage, ..Step::default() }));
    events
}
