//! Time outside the phases and between steps: always, in a rhythm, once; and what the verdict makes of it.

use gnntop_analysis::findings::Kind;

use super::case::{Case, strengths};
use super::clean::clean;
use super::training::{Plan, Training};

pub fn cases() -> Vec<Case> {
    let pauses = [(8.0, "1 %"), (45.0, "6 %"), (300.0, "30 %")];
    let mut cases: Vec<Case> = [
        strengths([(1.0, "3 %"), (2.8, "8 %"), (12.0, "26 %")], always),
        strengths(pauses, at_epoch_ends),
        strengths(pauses, in_a_rhythm),
        strengths(pauses, |ms| epochs_of_three(ms / 5.0)),
        strengths([(10.0, "0.3 steps"), (40.0, "1.2 steps"), (400.0, "12 steps")], once),
        strengths([(0.0, "0 %"), (4.0, "10 %"), (20.0, "37 %")], inside_the_step),
        strengths([(23.0, "40 %"), (46.0, "57 %"), (140.0, "80 %")], mostly),
    ]
    .into_iter()
    .flatten()
    .collect();
    cases.push(clean("an epoch starts after the warm-up", epoch_behind_warm_up()));
    cases
}

fn always(gap_ms: f64) -> Case {
    let stream = Training::of(300, 301).stream(|_, _| Plan { gap_ms, ..Plan::default() });
    Case::of("gap, always", stream).expect(Kind::Gap)
}

/// Epochs of 20 steps with so many milliseconds between them, 14 times.
fn at_epoch_ends(pause_ms: f64) -> Case {
    let stream = Training::of(299, 302).stream(|step, _| Plan {
        epoch: step / 20,
        gap_ms: if step.is_multiple_of(20) { pause_ms } else { 0.5 },
        ..Plan::default()
    });
    let case = Case::of("gap at epoch ends", stream).expect(Kind::Gap);
    case.says("every 20 steps").says("14 times").says("at epoch ends")
}

/// The same where the program does not tell its epochs.
fn in_a_rhythm(pause_ms: f64) -> Case {
    let stream = Training::of(299, 303)
        .stream(|step, _| Plan { gap_ms: if step % 20 == 7 { pause_ms } else { 0.5 }, ..Plan::default() });
    // The seventh step is the first of 15.
    let case = Case::of("gap in a rhythm", stream).expect(Kind::Gap).says("every 20 steps").says("15 times");
    case.never_says("epoch ends")
}

/// The first row behind the three that warm up begins an epoch.
fn epochs_of_three(pause_ms: f64) -> Case {
    let stream = Training::of(120, 304).stream(|step, _| Plan {
        epoch: (step - 1) / 3,
        gap_ms: if step % 3 == 1 { pause_ms } else { 0.5 },
        ..Plan::default()
    });
    Case::of("gap, epochs of three", stream).expect(Kind::Gap).says("every 3 steps").never_says("once far more")
}

fn once(pause_ms: f64) -> Case {
    let stream = Training::of(300, 305)
        .stream(|step, _| Plan { gap_ms: if step == 120 { pause_ms } else { 0.5 }, ..Plan::default() });
    Case::of("gap, once", stream).expect(Kind::Gap).says("once")
}

/// Part of every step that no phase names.
fn inside_the_step(unnamed_ms: f64) -> Case {
    let stream = Training::of(300, 306).stream(|_, _| Plan { unnamed_ms, ..Plan::default() });
    Case::of("gap inside the step", stream).expect(Kind::Gap).says("add phases for the rest of the step")
}

/// What lies outside the phases is the largest part, but `mostly` is more than a half.
fn mostly(gap_ms: f64) -> Case {
    let stream = Training::of(200, 307).stream(|_, _| Plan { gap_ms, ..Plan::default() });
    let case = Case::of("gap, the largest part", stream).expect(Kind::Gap);
    if gap_ms < 34.0 { case.never_says("mostly outside") } else { case.says("mostly outside every phase") }
}

/// A pause of three steps where the first epoch ends, three steps in, and later ones too short to speak of.
fn epoch_behind_warm_up() -> Vec<u8> {
    Training::of(400, 308).stream(|step, _| {
        let gap_ms = match step {
            4 => 90.0,
            step if step % 100 == 4 => 60.0,
            _ => 0.5,
        };
        Plan { epoch: (step + 96) / 100, gap_ms, ..Plan::default() }
    })
}
