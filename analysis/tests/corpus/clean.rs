//! Clean runs on a quiet machine: nothing may be found in them.

use gnntop_fixtures::MS;
use gnntop_fixtures::planned::{StepPlan, counted, gauge};
use gnntop_wire::{BatchShape, Unit};

use super::case::Case;
use super::random::Random;
use super::training::{Training, ns};

pub fn cases() -> Vec<Case> {
    let even = |_: u64, _: &mut Random| StepPlan::default();
    let mut cases = vec![
        clean("even steps", Training::new(500, 1).stream(even)),
        clean("a tenth of noise", Training::new(400, 2).spread(0.1).stream(even)),
        clean("12 steps", Training::new(12, 3).stream(even)),
        clean("25 steps", Training::new(25, 4).stream(even)),
        clean("60 steps of 2 s", Training::new(60, 5).stream(|_, _| StepPlan::default().times(60.0))),
        clean(
            "2,000 steps of 0.7 ms",
            Training::new(2000, 6).stream(|_, _| StepPlan { gap_ns: MS / 100, ..StepPlan::default().times(0.02) }),
        ),
        clean("sizes that explain times", Training::new(500, 7).stream(sized)),
        clean("a level that wanders", wandering()),
        clean("short pauses between epochs", Training::new(400, 8).stream(short_pauses)),
        clean(
            "epochs of three steps",
            Training::new(90, 9).stream(|step, _| StepPlan { epoch: step / 3, ..StepPlan::default() }),
        ),
        clean("sensors that are calm", calm_sensors()),
        clean("memory that levels off", levels_off()),
    ];
    // Of a table with step times alone nothing is known of phases, so there is no gap to speak of.
    let bare = [
        ("step times alone", 300, 40.0),
        ("step times alone, long", 40, 900.0),
        ("step times alone, short", 1000, 0.6),
    ];
    cases.extend(bare.map(|(name, steps, ms)| {
        let case = clean(name, Training::new(steps, steps).stream(|_, _| StepPlan::bare(ns(ms))));
        case.forbid_text("outside every phase").forbid_text("gap")
    }));
    cases
}

pub fn clean(name: &str, stream: Vec<u8>) -> Case {
    Case { amount: name.to_owned(), ..Case::new("clean", stream) }
}

fn sized(step: u64, _: &mut Random) -> StepPlan {
    let edges = 6000 + step * 7919 % 3000;
    let batch = BatchShape { edges: Some(edges), ..BatchShape::default() };
    StepPlan { batch, ..StepPlan::default().times(edges as f64 / 7500.0) }
}

/// Every step is where the one before was, give or take a little, and drawn back to where it began.
fn wandering() -> Vec<u8> {
    let mut level = 0.0;
    Training::new(600, 10).stream(move |_, random| {
        level = 0.9 * level + 0.01 * random.normal();
        StepPlan::default().times(1.0 + level)
    })
}

fn short_pauses(step: u64, _: &mut Random) -> StepPlan {
    StepPlan { epoch: step / 50, gap_ns: if step.is_multiple_of(50) { 6 * MS } else { MS / 2 }, ..StepPlan::default() }
}

fn calm_sensors() -> Vec<u8> {
    Training::new(500, 11)
        .reads(gauge("process.rss", Unit::Bytes, |t| 5e8 + 1e6 * (t * 3.0).sin()))
        .reads(counted("machine.pressure.cpu.some", Unit::Nanoseconds, |t| t * 3e7))
        .reads(counted("machine.cpu.steal", Unit::Nanoseconds, |t| t * 5e6))
        .reads(counted("process.cpu_time", Unit::Nanoseconds, |t| t * 1e9))
        .reads(counted("process.cpu_time.system", Unit::Nanoseconds, |t| t * 4e7))
        .reads(counted("cpu.0.energy", Unit::Microjoules, |t| t * 100e6 + 4e6 * (t * 2.0).sin()))
        .stream(|_, _| StepPlan::default())
}

fn levels_off() -> Vec<u8> {
    Training::new(400, 12)
        .reads(gauge("process.rss", Unit::Bytes, |t| 5e8 + 2e8 * (1.0 - (-t).exp())))
        .stream(|_, _| StepPlan::default())
}
