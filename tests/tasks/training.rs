//! A training that a person has: a program that links gnntop's probe, started as `./train`.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use gnntop_probe::{BatchShape, Session, TrackRole, phase, span, step};

use crate::sessions::Sessions;

/// What nobody ends, ends itself.
const LONGEST: Duration = Duration::from_secs(120);
/// The backward pass of every so many steps takes longer.
const SPIKE_EVERY: u64 = 40;
const SPIKE_MS: u64 = 120;

/// Puts `./train` beside the sessions. Its variable `LOADER_MS` says how long a batch is waited for, `STEPS` how many there
/// are.
pub fn put(sessions: &Sessions) {
    let this = std::env::current_exe().unwrap();
    let script =
        format!("#!/bin/sh\nexec '{}' --exact tasks::training::trains --ignored --nocapture\n", this.display());
    let path = sessions.file("train", script.as_bytes());
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
#[ignore = "is the training of the tasks beside it"]
fn trains() {
    let set = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let (loader_ms, steps) = (set("LOADER_MS").unwrap_or(1), set("STEPS").unwrap_or(u64::MAX));
    let session = Session::builder("train").start();
    let _track = session.track("main", TrackRole::Training);
    let began = Instant::now();
    for number in 0..steps {
        if began.elapsed() > LONGEST {
            return;
        }
        let mut step = step(number / 100);
        let sleep = |ms| std::thread::sleep(Duration::from_millis(ms));
        {
            let _wait = span(&phase::DATA_WAIT);
            sleep(loader_ms);
        }
        {
            let _forward = span(&phase::FORWARD);
            let _layer = span!("layer 1");
            sleep(5);
        }
        {
            let _backward = span(&phase::BACKWARD);
            sleep(if number % SPIKE_EVERY == SPIKE_EVERY - 1 { SPIKE_MS } else { 8 });
        }
        {
            let _optimizer = span(&phase::OPTIMIZER);
            sleep(1);
        }
        step.batch(BatchShape { graphs: Some(32), nodes: Some(450), edges: Some(920), seeds: None });
        step.loss(1.0 / (1.0 + number as f64).sqrt());
    }
}
