//! GPUs that are idle, told by their readings and by what the readings cannot see.

use gnntop_analysis::findings::FindingKind;
use gnntop_wire::{SignalKind, Unit};

use super::case::{Case, strengths};
use super::training_loop::TrainingLoop;

const STEPS: u64 = 300;
const STEP_MS: f64 = 60.0;

pub fn cases() -> Vec<Case> {
    let mut all = strengths([(0.2, "20 %"), (0.35, "35 %"), (0.6, "60 %")], between_rows);
    all.extend(strengths([(0.2, "20 %"), (0.35, "35 %"), (0.6, "60 %")], by_readings));
    all.extend([busy_table(), handed_over(), evaluated()]);
    all
}

/// A table whose readings, one a row and taken as its step ends, are all of a busy GPU, while so much of the wall time
/// passes between its steps.
fn between_rows(share: f64) -> Case {
    let case = Case::new("GPU idle between a table's steps", table(31, share, |_| 98_000.0));
    case.expect(FindingKind::GpuIdle).allow(FindingKind::Gap).allow(FindingKind::Aliasing).expect_text("at least")
}

fn table(seed: u64, share: f64, util: impl Fn(u64) -> f64) -> Vec<u8> {
    let mut run = TrainingLoop::new(seed);
    let column = run.column(90, "gpu.0.util", Unit::MilliPercent, SignalKind::Gauge);
    for step in 1..=STEPS {
        run.pass(STEP_MS * share / (1.0 - share) + 0.1);
        run.usual_step();
        run.cell(column, util(step));
    }
    run.stream()
}

fn busy_table() -> Case {
    let stream = table(32, 0.02, |step| 95_000.0 + (step % 5) as f64 * 1000.0);
    Case::new("clean: a table of a busy GPU", stream).allow(FindingKind::Aliasing)
}

/// A sensor's readings say that no kernel runs so much of the time.
fn by_readings(share: f64) -> Case {
    let mut run = TrainingLoop::new(33);
    let util = run.signal("gpu.0.util", Unit::MilliPercent, SignalKind::Gauge);
    for _ in 0..STEPS {
        let percent = 100.0 * (1.0 - share) + run.random.between(-5.0, 5.0);
        run.set(util, 1e3 * percent.clamp(0.0, 100.0));
        run.pass(0.5);
        run.usual_step();
    }
    Case::new("GPU idle by its readings", run.stream()).expect(FindingKind::GpuIdle)
}

/// A program that hands its work to the GPU and goes on: the GPU works between its steps, too.
fn handed_over() -> Case {
    let mut run = TrainingLoop::new(34);
    let util = run.signal("gpu.0.util", Unit::MilliPercent, SignalKind::Gauge);
    run.set(util, 96_000.0);
    for _ in 0..STEPS {
        run.pass(40.0);
        run.usual_step();
    }
    Case::new("clean GPU: work that is queued", run.stream()).allow(FindingKind::Gap).forbid_text("idle")
}

/// Between a table's steps lies what has a span of its own, in which the GPU may work.
fn evaluated() -> Case {
    let mut run = TrainingLoop::new(35);
    let column = run.column(90, "gpu.0.util", Unit::MilliPercent, SignalKind::Gauge);
    for step in 1..=STEPS {
        run.pass(0.5);
        run.usual_step();
        run.cell(column, 95_000.0);
        if step % 50 == 0 {
            run.span("evaluate", |run| run.pass(2000.0));
            run.next_epoch();
        }
    }
    Case::new("clean GPU: evaluation between a table's steps", run.stream())
        .allow(FindingKind::Gap)
        .allow(FindingKind::Aliasing)
        .forbid_text("idle")
}
