//! Waiting: of the training thread for a CPU, and of the loop for data.

use gnntop_analysis::findings::FindingKind;
use gnntop_wire::{SignalKind, Unit};

use super::case::{Case, strengths};
use super::training_loop::TrainingLoop;

const STEPS: u64 = 400;
const STEP_MS: f64 = 60.0;

pub fn cases() -> Vec<Case> {
    [
        strengths([(0.02, "2 %"), (0.08, "8 %"), (0.4, "40 %")], |share| {
            waiting_for_cpu("waiting for a CPU", 41, share, 0.5)
        }),
        strengths([(0.02, "2 %"), (0.08, "8 %"), (0.4, "40 %")], |share| {
            waiting_for_cpu("waiting for a CPU, without pressure", 42, share, 0.0)
        }),
        strengths([(0.08, "8 %"), (0.2, "20 %"), (0.55, "55 %")], |share| {
            waiting_for_data("waiting for data, queue empty half the time", 43, share, 0.5)
                .expect_text("is empty in")
                .forbid_text("batches are ready")
        }),
        strengths([(0.08, "8 %"), (0.2, "20 %"), (0.55, "55 %")], |share| {
            waiting_for_data("waiting for data, queue full", 44, share, 0.0)
                .expect_text("batches are ready")
                .forbid_text("more workers")
        }),
        strengths([(0.08, "8 %"), (0.2, "20 %"), (0.55, "55 %")], occasional_wait),
        strengths([(0.08, "8 %"), (0.2, "20 %"), (0.55, "55 %")], sampling),
        vec![busy_machine(), quick_loader()],
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The training thread is ready to run and has no CPU for this share of the time, in pauses of 4 ms; `pressure` is the
/// share of the time in which something on the machine waits for one.
fn waiting_for_cpu(class: &'static str, seed: u64, share: f64, pressure: f64) -> Case {
    let case =
        Case::new(class, cpu_wait(seed, share, pressure)).expect(FindingKind::Contention).expect_text("for a CPU");
    case.allow(FindingKind::Spike).allow(FindingKind::Drift).allow(FindingKind::StepKinds)
}

fn cpu_wait(seed: u64, share: f64, pressure: f64) -> Vec<u8> {
    const PAUSE_MS: f64 = 4.0;
    let mut run = TrainingLoop::new(seed);
    let wait = run.signal("process.main_thread.cpu_wait", Unit::Nanoseconds, SignalKind::Counter);
    let pressed = run.signal("machine.pressure.cpu.some", Unit::Nanoseconds, SignalKind::Counter);
    // Pauses in each eighth of a step.
    let often = STEP_MS * share / (1.0 - share) / PAUSE_MS / 8.0;
    for _ in 0..STEPS {
        run.pass(0.5);
        run.step(|run| {
            for part in 0..8 {
                run.phase(if part < 3 { "forward" } else { "backward" }, STEP_MS / 8.0);
                let pauses = often as u64 + u64::from(run.random.chance(often.fract()));
                for _ in 0..pauses {
                    run.phase(if part < 3 { "forward" } else { "backward" }, PAUSE_MS);
                    run.count(wait, PAUSE_MS * 1e6);
                    run.preempt(1);
                }
                run.count(pressed, pressure * STEP_MS / 8.0 * 1e6 / (1.0 - share));
            }
        });
    }
    run.stream()
}

/// The loop waits for data for this share of the time, and the queue is found empty for that share of its readings.
fn waiting_for_data(class: &'static str, seed: u64, share: f64, empty: f64) -> Case {
    let mut run = TrainingLoop::new(seed);
    for _ in 0..STEPS {
        let depth = if run.random.chance(empty) { 0.0 } else { 4.0 };
        run.counter("queue depth", depth);
        run.pass(0.2);
        run.step(|run| {
            run.phase("data wait", STEP_MS * share / (1.0 - share));
            run.usual_phases();
        });
    }
    Case::new(class, run.stream()).expect(FindingKind::DataBound)
}

/// One step in ten waits, and the others hardly: what a step waits on average is not what most of them wait.
fn occasional_wait(share: f64) -> Case {
    let mut run = TrainingLoop::new(45);
    for step in 1..=STEPS {
        run.pass(0.2);
        run.step(|run| {
            run.phase("data wait", if step % 10 == 0 { 10.0 * STEP_MS * share / (1.0 - share) } else { 0.0022 });
            run.usual_phases();
        });
    }
    let case = Case::new("waiting for data at one step in ten", run.stream()).expect(FindingKind::DataBound);
    case.allow(FindingKind::Spike)
        .allow(FindingKind::StepKinds)
        .expect_text("a step on average")
        .forbid_text("µs a step")
}

/// The training thread samples and gathers for this share of the time, and hardly waits.
fn sampling(share: f64) -> Case {
    let mut run = TrainingLoop::new(48);
    let own_ms = STEP_MS * share / (1.0 - share);
    for _ in 0..STEPS {
        run.pass(0.2);
        run.step(|run| {
            run.phase("data wait", 0.1);
            run.phase("sample", 0.4 * own_ms);
            run.phase("gather", 0.6 * own_ms);
            run.usual_phases();
        });
    }
    let case = Case::new("sampling on the training thread", run.stream()).expect(FindingKind::DataBound);
    case.expect_text("gather is on the training thread")
}

/// Others keep the machine busy, and the training thread has its CPU all the same.
fn busy_machine() -> Case {
    Case::new("clean: a busy machine with a CPU to spare", cpu_wait(46, 0.01, 0.8))
}

fn quick_loader() -> Case {
    Case { expect: Vec::new(), ..waiting_for_data("clean: a quick loader", 47, 0.05, 0.4) }
}
