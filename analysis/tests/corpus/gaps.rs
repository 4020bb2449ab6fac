//! Time outside the phases and between steps: always, in a rhythm, once; and what the verdict makes of it.

use gnntop_analysis::findings::FindingKind;
use gnntop_fixtures::planned::StepPlan;

use super::case::{Case, strengths};
use super::clean::clean;
use super::training::{Training, ns};

pub fn cases() -> Vec<Case> {
    let pauses = [(8.0, "1 %"), (45.0, "6 %"), (300.0, "30 %")];
    let mut cases: Vec<Case> = [
        strengths([(1.0, "3 %"), (2.8, "8 %"), (12.0, "26 %")], always),
        strengths(pauses, pauses_at_epoch_ends),
        strengths(pauses, regular_pauses),
        strengths(pauses, |ms| three_step_epochs(ms / 5.0)),
        strengths([(10.0, "0.3 steps"), (40.0, "1.2 steps"), (400.0, "12 steps")], single_pause),
        strengths([(0.0, "0 %"), (4.0, "10 %"), (20.0, "37 %")], inside_the_step),
        strengths([(23.0, "40 %"), (46.0, "57 %"), (140.0, "80 %")], frequent_gaps),
    ]
    .into_iter()
    .flatten()
    .collect();
    cases.push(clean("an epoch starts after the warm-up", epoch_behind_warm_up()));
    cases
}

fn always(gap_ms: f64) -> Case {
    let stream = Training::new(300, 301).stream(|_, _| StepPlan { gap_ns: ns(gap_ms), ..StepPlan::default() });
    Case::new("gap, always", stream).expect(FindingKind::Gap)
}

/// Epochs of 20 steps with so many milliseconds between them, 14 times.
fn pauses_at_epoch_ends(pause_ms: f64) -> Case {
    let stream = Training::new(299, 302).stream(|step, _| StepPlan {
        epoch: step / 20,
        gap_ns: ns(if step.is_multiple_of(20) { pause_ms } else { 0.5 }),
        ..StepPlan::default()
    });
    let case = Case::new("gap at epoch ends", stream).expect(FindingKind::Gap);
    case.expect_text("every 20 steps").expect_text("14 times").expect_text("at epoch ends")
}

/// The same where the program does not tell its epochs.
fn regular_pauses(pause_ms: f64) -> Case {
    let stream = Training::new(299, 303)
        .stream(|step, _| StepPlan { gap_ns: ns(if step % 20 == 7 { pause_ms } else { 0.5 }), ..StepPlan::default() });
    // The seventh step is the first of 15.
    let case = Case::new("gap in a rhythm", stream)
        .expect(FindingKind::Gap)
        .expect_text("every 20 steps")
        .expect_text("15 times");
    case.forbid_text("epoch ends")
}

/// The first row behind the three that warm up begins an epoch.
fn three_step_epochs(pause_ms: f64) -> Case {
    let stream = Training::new(120, 304).stream(|step, _| StepPlan {
        epoch: (step - 1) / 3,
        gap_ns: ns(if step % 3 == 1 { pause_ms } else { 0.5 }),
        ..StepPlan::default()
    });
    Case::new("gap, epochs of three", stream)
        .expect(FindingKind::Gap)
        .expect_text("every 3 steps")
        .forbid_text("once far more")
}

fn single_pause(pause_ms: f64) -> Case {
    let stream = Training::new(300, 305)
        .stream(|step, _| StepPlan { gap_ns: ns(if step == 120 { pause_ms } else { 0.5 }), ..StepPlan::default() });
    Case::new("gap, once", stream).expect(FindingKind::Gap).expect_text("once")
}

/// Part of every step that no phase names.
fn inside_the_step(unnamed_ms: f64) -> Case {
    let stream = Training::new(300, 306).stream(|_, _| StepPlan { unnamed_ns: ns(unnamed_ms), ..StepPlan::default() });
    Case::new("gap inside the step", stream).expect(FindingKind::Gap).expect_text("add phases for the rest of the step")
}

/// What lies outside the phases is the largest part, but `mostly` is more than a half.
fn frequent_gaps(gap_ms: f64) -> Case {
    let stream = Training::new(200, 307).stream(|_, _| StepPlan { gap_ns: ns(gap_ms), ..StepPlan::default() });
    let case = Case::new("gap, the largest part", stream).expect(FindingKind::Gap);
    if gap_ms < 34.0 { case.forbid_text("mostly outside") } else { case.expect_text("mostly outside every phase") }
}

/// A pause of three steps where the first epoch ends, three steps in, and later ones too short to speak of.
fn epoch_behind_warm_up() -> Vec<u8> {
    Training::new(400, 308).stream(|step, _| {
        let gap_ms = match step {
            4 => 90.0,
            step if step % 100 == 4 => 60.0,
            _ => 0.5,
        };
        StepPlan { epoch: (step + 96) / 100, gap_ns: ns(gap_ms), ..StepPlan::default() }
    })
}
