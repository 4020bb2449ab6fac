//! A training loop with nothing to learn, in which every turn takes a set time.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use gnntop_probe::{BatchShape, SensorOptions, Session, TrackRole, phase, span, step};

/// Turns of every run: long enough for slow sensors to be read often.
pub const TURNS: u64 = 240;

/// What one turn does. Times are milliseconds.
pub struct Turn {
    pub epoch: u64,
    pub wait_ms: f64,
    pub forward_ms: f64,
    pub backward_ms: f64,
    pub between_ms: f64,
    pub batch: BatchShape,
    /// Extra work in the forward phase.
    pub forward: Option<Box<dyn FnOnce()>>,
    /// Work between this step and the next, outside every phase.
    pub between: Option<Box<dyn FnOnce()>>,
}

impl Default for Turn {
    fn default() -> Self {
        Self {
            epoch: 0,
            wait_ms: 0.75,
            forward_ms: 10.0,
            backward_ms: 15.0,
            between_ms: 0.0,
            batch: BatchShape { graphs: Some(64), nodes: Some(900), edges: Some(1900), seeds: None },
            forward: None,
            between: None,
        }
    }
}

/// Opens a session that is written to `path`.
pub fn session(path: &Path) -> Session {
    let _ = std::fs::remove_file(path);
    let sensors = SensorOptions { per_core: false, gpu: false, ..SensorOptions::default() };
    let session = Session::builder("labelled").record_to(path).sensors(Some(sensors));
    session.sensor_interval(Duration::from_millis(97)).start()
}

/// Runs the loop into a recording at `path`.
pub fn run(path: &Path, plan: impl FnMut(u64) -> Turn) {
    let session = session(path);
    let _track = session.track("main", TrackRole::Training);
    turns(plan);
}

/// Runs the loop on the calling thread's track.
pub fn turns(mut plan: impl FnMut(u64) -> Turn) {
    for i in 0..TURNS {
        let turn = plan(i);
        let mut step = step(turn.epoch);
        if turn.wait_ms > 0.0 {
            let _wait = span(&phase::DATA_WAIT);
            sleep(turn.wait_ms, i * 4);
        }
        {
            let _forward = span(&phase::FORWARD);
            turn.forward.into_iter().for_each(|act| act());
            sleep(turn.forward_ms, i * 4 + 1);
        }
        {
            let _backward = span(&phase::BACKWARD);
            sleep(turn.backward_ms, i * 4 + 2);
        }
        {
            let _optimizer = span(&phase::OPTIMIZER);
            sleep(2.5, i * 4 + 3);
        }
        step.batch(turn.batch);
        drop(step);
        turn.between.into_iter().for_each(|act| act());
        if turn.between_ms > 0.0 {
            sleep(turn.between_ms, i);
        }
    }
}

/// Sleeps for this long, within 2 %.
pub fn sleep(ms: f64, seed: u64) {
    thread::sleep(Duration::from_secs_f64(ms * (0.98 + 0.04 * chance(seed)) / 1e3));
}

/// Keeps the CPU busy for this long.
pub fn spin(ms: f64) {
    let end = Instant::now() + Duration::from_secs_f64(ms / 1e3);
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// A number from 0 to 1, the same for the same seed.
pub fn chance(seed: u64) -> f64 {
    let mixed = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}
