//! Traces of a few steps, as `torch.profiler` records them: no check has enough, but the shares are known.

use gnntop_fixtures::MS;
use gnntop_fixtures::planned::StepPlan;

use super::case::{Case, strengths};
use super::training::Training;

pub fn cases() -> Vec<Case> {
    let steps = [(1, "1 step"), (3, "3 steps"), (8, "8 steps")];
    [strengths(steps, with_phases), strengths(steps, bare), strengths(steps, mostly_waiting)]
        .into_iter()
        .flatten()
        .collect()
}

fn with_phases(steps: u64) -> Case {
    let stream = Training::new(steps, 400 + steps).stream(|_, _| StepPlan::default());
    let case = Case::new("short trace", stream).expect_text(format!("{steps} steps")).expect_text("backward-bound (5");
    case.expect_text("too few").forbid_text("warming up")
}

fn bare(steps: u64) -> Case {
    let stream = Training::new(steps, 410 + steps).stream(|_, _| StepPlan::bare(300 * MS));
    let case = Case::new("short trace, step times alone", stream).expect_text(format!("{steps} steps"));
    case.forbid_text("outside every phase").forbid_text("warming up")
}

fn mostly_waiting(steps: u64) -> Case {
    let stream = Training::new(steps, 420 + steps).stream(|_, _| StepPlan::default().with_phase("data wait", 99 * MS));
    Case::new("short trace, waiting", stream)
        .expect_text(format!("{steps} steps"))
        .expect_text("data-bound (7")
        .forbid_text("warming up")
}
