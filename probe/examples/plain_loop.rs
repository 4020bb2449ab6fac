//! An instrumented loop with no learning in it: phases, nested spans, a counter, marks, and a slow iteration every 40 steps.
//!
//! ```sh
//! cargo run --release -p gnntop-probe --example plain_loop          # then, in another terminal: gnntop attach
//! cargo run --release -p gnntop-probe --example plain_loop -- 200   # only 200 steps
//! ```

use std::alloc::System;
use std::time::{Duration, Instant};

use gnntop_probe::{BatchShape, Name, Session, TrackRole, TrackingAllocator, counter, mark, phase, span, step};

#[global_allocator]
static ALLOCATOR: TrackingAllocator<System> = TrackingAllocator::new(System);

static BLOCK: Name = Name::span("block");
static QUEUE: Name = Name::counter("queue depth");
static EPOCH: Name = Name::mark("epoch");

fn main() {
    let steps: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(u64::MAX);
    let session = Session::builder("plain loop").start();
    let _track = session.track("main", TrackRole::Training);
    for i in 0..steps {
        let epoch = i / 100;
        if i % 100 == 0 {
            mark(&EPOCH, Some(epoch as f64));
        }
        turn(epoch, i);
    }
}

fn turn(epoch: u64, i: u64) {
    let mut step = step(epoch);
    {
        let _wait = span(&phase::DATA_WAIT);
        counter(&QUEUE, (i % 5) as f64);
        work(Duration::from_millis(1));
    }
    let memory = {
        let _forward = span(&phase::FORWARD);
        for _ in 0..4 {
            let _block = span(&BLOCK);
            work(Duration::from_millis(2));
        }
        vec![1u8; 2 << 20]
    };
    {
        let _backward = span(&phase::BACKWARD);
        let slow = if i % 40 == 39 { 60 } else { 0 };
        work(Duration::from_millis(12 + slow));
        drop(memory);
    }
    {
        let _optimizer = span(&phase::OPTIMIZER);
        work(Duration::from_millis(2));
    }
    step.batch(BatchShape { graphs: Some(64), nodes: Some(900), edges: Some(1840), seeds: None });
    step.loss(1.0 / (1.0 + i as f64).sqrt());
}

/// Keeps the CPU busy.
fn work(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}
