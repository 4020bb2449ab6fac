//! Traces of a few steps, as `torch.profiler` records them: no check has enough, but the shares are known.

use super::case::{Case, strengths};
use super::training::{Plan, Training};

pub fn cases() -> Vec<Case> {
    let steps = [(1, "1 step"), (3, "3 steps"), (8, "8 steps")];
    [strengths(steps, with_phases), strengths(steps, bare), strengths(steps, mostly_waiting)]
        .into_iter()
        .flatten()
        .collect()
}

fn with_phases(steps: u64) -> Case {
    let stream = Training::of(steps, 400 + steps).stream(|_, _| Plan::default());
    let case = Case::of("short trace", stream).says(format!("{steps} steps")).says("backward-bound (5");
    case.says("too few").never_says("warming up")
}

fn bare(steps: u64) -> Case {
    let stream = Training::of(steps, 410 + steps).stream(|_, _| Plan::bare(300.0));
    let case = Case::of("short trace, step times alone", stream).says(format!("{steps} steps"));
    case.never_says("outside every phase").never_says("warming up")
}

fn mostly_waiting(steps: u64) -> Case {
    let stream = Training::of(steps, 420 + steps).stream(|_, _| Plan::default().more("data wait", 99.0));
    Case::of("short trace, waiting", stream)
        .says(format!("{steps} steps"))
        .says("data-bound (7")
        .never_says("warming up")
}
