//! Steps of 5 ms with four phases and all sensors, written straight to a recording: how large does it get?
//!
//! ```sh
//! cargo run --release -p gnntop-probe --example small_steps -- a.gnntop 6000
//! cargo run --release -p gnntop-wire --example anatomy -- a.gnntop
//! ```

use std::time::{Duration, Instant};

use gnntop_probe::{BatchShape, Session, TrackRole, phase, span, step};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().unwrap_or_else(|| "small-steps.gnntop".to_owned());
    let steps: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(6000);
    let session = Session::builder("small steps").record_to(file).start();
    let _track = session.track("main", TrackRole::Training);
    for i in 0..steps {
        turn(i);
    }
}

fn turn(i: u64) {
    let mut step = step(i / 1000);
    for (phase, us) in
        [(&phase::DATA_WAIT, 400), (&phase::FORWARD, 1500), (&phase::BACKWARD, 2700), (&phase::OPTIMIZER, 400)]
    {
        let _phase = span(phase);
        work(Duration::from_micros(us));
    }
    // Varies like a batch of molecules.
    let vary = (i * 7919) % 101;
    step.batch(BatchShape { graphs: Some(256), nodes: Some(3550 + vary), edges: Some(7400 + 2 * vary), seeds: None });
    step.loss(f64::from(1.0 / (1.0 + i as f32).sqrt()));
}

/// Keeps the thread busy.
fn work(time: Duration) {
    let start = Instant::now();
    let mut state = 1u64;
    while start.elapsed() < time {
        for _ in 0..200 {
            state = std::hint::black_box(state.wrapping_mul(6364136223846793005).wrapping_add(1));
        }
    }
}
