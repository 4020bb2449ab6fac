//! Gaps that spans of the training track fill: evaluation between epochs, logging between steps.

use gnntop_analysis::findings::FindingKind;

use super::case::{Case, strengths};
use super::training_loop::TrainingLoop;

const EPOCHS: u64 = 6;
const EPOCH_STEPS: u64 = 50;
/// A usual step with the time before it.
const PERIOD_MS: f64 = 60.5;
/// Advice for those of whose gap nothing is known.
const UNKNOWN: &str = "measure what the loop does between steps";
/// Shares of the wall time that lie in the gap; the usual pauses add 0.8 %.
const SHARES: [(f64, &str); 3] = [(0.03, "3 %"), (0.07, "7 %"), (0.3, "30 %")];

pub fn cases() -> Vec<Case> {
    [
        strengths(SHARES, |share| evaluated("evaluation between epochs", 21, share, evaluate)),
        strengths(SHARES, in_epochs),
        strengths(SHARES, |share| {
            evaluated("evaluation of many batches", 23, share, |run, ms| {
                run.span("evaluate", |run| (0..20).for_each(|_| run.span("batch", |run| run.pass(ms / 20.0))));
            })
        }),
        strengths(SHARES, logged),
        strengths(SHARES, |share| unknown(share).expect_text(UNKNOWN)),
        vec![short()],
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn evaluate(run: &mut TrainingLoop, ms: f64) {
    run.span("evaluate", |run| run.pass(ms));
}

/// After each epoch so much of the time is spent on evaluation.
fn evaluated(class: &'static str, seed: u64, share: f64, evaluate: fn(&mut TrainingLoop, f64)) -> Case {
    let evaluation_ms = EPOCH_STEPS as f64 * PERIOD_MS * share / (1.0 - share);
    let stream = epochs(seed, |run| run.pass(0.5), |run| evaluate(run, evaluation_ms));
    Case::new(class, stream)
        .expect(FindingKind::Gap)
        .allow(FindingKind::Stall)
        .expect_text("\"evaluate\"")
        .forbid_text(UNKNOWN)
}

/// The same where each epoch, with its steps and its evaluation, has a span around it.
fn in_epochs(share: f64) -> Case {
    let evaluation_ms = EPOCH_STEPS as f64 * PERIOD_MS * share / (1.0 - share);
    let mut run = TrainingLoop::new(22);
    for _ in 0..EPOCHS {
        run.span("epoch", |run| {
            for _ in 0..EPOCH_STEPS {
                run.pass(0.5);
                run.usual_step();
            }
            evaluate(run, evaluation_ms);
        });
        run.next_epoch();
    }
    let case =
        Case::new("evaluation in an epoch's span", run.stream()).expect(FindingKind::Gap).allow(FindingKind::Stall);
    case.expect_text("\"evaluate\"").forbid_text("of it in \"epoch\"").forbid_text(UNKNOWN)
}

/// Before each step something is written, and most of the gap is that.
fn logged(share: f64) -> Case {
    let log_ms = PERIOD_MS * share / (1.0 - share);
    let pause = |run: &mut TrainingLoop| {
        run.span("write log", |run| run.pass(0.9 * log_ms));
        run.pass(0.5 + 0.1 * log_ms);
    };
    Case::new("logging between steps", epochs(24, pause, |_| ()))
        .expect(FindingKind::Gap)
        .expect_text("\"write log\"")
        .forbid_text(UNKNOWN)
}

/// The same time without a span that tells what it is.
fn unknown(share: f64) -> Case {
    let pause_ms = PERIOD_MS * share / (1.0 - share);
    Case::new("gaps, unexplained", epochs(25, |run| run.pass(0.5 + pause_ms), |_| ())).expect(FindingKind::Gap)
}

/// Evaluation that is over in a moment.
fn short() -> Case {
    Case::new("clean: a short evaluation", epochs(26, |run| run.pass(0.5), |run| evaluate(run, 25.0)))
}

/// Steps with a pause before each and something after each epoch.
fn epochs(seed: u64, pause: impl Fn(&mut TrainingLoop), after: impl Fn(&mut TrainingLoop)) -> Vec<u8> {
    let mut run = TrainingLoop::new(seed);
    for _ in 0..EPOCHS {
        for _ in 0..EPOCH_STEPS {
            pause(&mut run);
            run.usual_step();
        }
        after(&mut run);
        run.next_epoch();
    }
    run.stream()
}
