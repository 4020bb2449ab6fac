//! Marks: frequent ones and rare ones, in steps and between them, with a duration of their own and without.

use gnntop_analysis::findings::FindingKind;

use super::case::{Case, strengths};
use super::training_loop::TrainingLoop;

const STEPS: u64 = 400;
/// A usual step with the time before it.
const PERIOD_MS: f64 = 60.5;
/// Shares of the wall time, of which a person would want to know from one in a hundred on.
const SHARES: [(f64, &str); 3] = [(0.003, "0.3 %"), (0.015, "1.5 %"), (0.048, "4.8 %")];

pub fn cases() -> Vec<Case> {
    [
        strengths(SHARES, |share| between("frequent marks between steps", 1, share, Some("gc"))),
        strengths(SHARES, |share| inside("frequent marks in steps", 2, share, Some("gc"))),
        strengths(SHARES, |share| between("frequent marks between steps, without durations", 3, share, None)),
        strengths([(0.003, "0.3 %"), (0.03, "3 %"), (0.1, "10 %")], |share| {
            inside("frequent marks in steps, without durations", 4, share, None)
        }),
        strengths([(4.0, "4 ms"), (20.0, "20 ms"), (130.0, "130 ms")], rare),
        strengths([(0.03, "+3 %"), (0.2, "+20 %"), (1.0, "+100 %")], slow_after),
        clean(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Marks at 44 of 100 steps, in the time before them, that cost this share of the wall time in all.
fn between(class: &'static str, seed: u64, share: f64, timed: Option<&str>) -> Case {
    let stream = marked(seed, share, timed, |run, marks| {
        run.pass(0.5);
        marks(run);
        run.usual_step();
    });
    let case =
        Case::new(class, stream).expect(FindingKind::Stall).allow(FindingKind::Gap).expect_text("all between steps");
    if timed.is_some() { case.expect_text("\"gc\"") } else { case.expect_text("\"collected\"") }
}

/// The same inside of steps.
fn inside(class: &'static str, seed: u64, share: f64, timed: Option<&str>) -> Case {
    let stream = marked(seed, share, timed, |run, marks| {
        run.pass(0.5);
        run.step(|run| {
            run.span("work", marks);
            run.usual_phases();
        });
    });
    let case =
        Case::new(class, stream).expect(FindingKind::Stall).allow(FindingKind::Gap).allow(FindingKind::StepKinds);
    case.expect_text("all in steps")
}

/// Calls `step` for each of 400 steps with what marks 44 of 100 of them: a pause that together with the others takes
/// this share of the time, and the mark at its end.
fn marked(
    seed: u64,
    share: f64,
    timed: Option<&str>,
    mut step: impl FnMut(&mut TrainingLoop, &mut dyn FnMut(&mut TrainingLoop)),
) -> Vec<u8> {
    let pause_ms = PERIOD_MS * share / (1.0 - share) / 0.44;
    let mut run = TrainingLoop::new(seed);
    for _ in 0..STEPS {
        let is_marked = run.random.chance(0.44);
        let mut marks = |run: &mut TrainingLoop| {
            if is_marked {
                let took_ms = run.pause(pause_ms);
                match timed {
                    Some(text) => run.timed_mark(text, took_ms),
                    None => run.mark("collected"),
                }
            }
        };
        step(&mut run, &mut marks);
    }
    run.stream()
}

/// One step in 33 is marked and so much longer.
fn rare(pause_ms: f64) -> Case {
    let mut run = TrainingLoop::new(5);
    for step in 1..=STEPS {
        run.pass(0.5);
        run.step(|run| {
            run.usual_phases();
            if step % 33 == 0 {
                run.phase("forward", pause_ms);
                run.mark("checkpoint");
            }
        });
    }
    Case::new("rare marks", run.stream())
        .expect(FindingKind::Stall)
        .allow(FindingKind::Spike)
        .allow(FindingKind::StepKinds)
        .expect_text("checkpoint")
}

/// A checkpoint every 40 steps takes no time, and the six steps after it take this much longer.
fn slow_after(more: f64) -> Case {
    let mut run = TrainingLoop::new(11);
    for step in 1..=STEPS {
        run.pass(0.5);
        if step % 40 == 0 {
            run.mark("checkpoint");
        }
        run.step(|run| {
            run.usual_phases();
            if step >= 40 && step % 40 < 6 {
                run.phase("backward", more * 60.0);
            }
        });
    }
    let case = Case::new("slow after checkpoints", run.stream()).expect(FindingKind::AfterCheckpoint);
    case.allow(FindingKind::Spike).allow(FindingKind::StepKinds).expect_text("the 6 steps after a checkpoint")
}

/// Marks that cost nothing, or whose numbers are no durations.
fn clean() -> Vec<Case> {
    let with = |class, seed, mark: fn(&mut TrainingLoop, u64)| {
        let mut run = TrainingLoop::new(seed);
        for step in 1..=STEPS {
            run.pass(0.5);
            mark(&mut run, step);
            run.usual_step();
        }
        Case::new(class, run.stream())
    };
    vec![
        with("clean: a mark at every step", 6, |run, _| run.mark("step begins")),
        with("clean: a mark at every second step", 7, |run, step| {
            if step % 2 == 0 {
                run.mark("logged");
            }
        }),
        with("clean: marks with numbers that are not times", 8, |run, step| {
            run.valued_mark("learning rate", 400.0 / step as f64);
            run.valued_mark("batch", 512.0);
        }),
        with("clean: short collections", 9, |run, step| {
            if step % 2 == 0 {
                let took_ms = run.pause(0.15);
                run.timed_mark("gc", took_ms);
            }
        }),
        with("clean: an epoch's marks", 10, |run, step| {
            if step % 25 == 1 {
                run.mark("epoch");
            }
        }),
    ]
}
