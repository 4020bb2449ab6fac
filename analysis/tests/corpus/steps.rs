//! What the times and batches of steps tell: spikes, warm-up, drift, batches, data.

use gnntop_analysis::findings::FindingKind;
use gnntop_fixtures::MS;
use gnntop_fixtures::planned::StepPlan;
use gnntop_wire::BatchShape;

use super::case::{Case, strengths};
use super::training::{Training, ns};

pub fn cases() -> Vec<Case> {
    let longer = [(1.3, "1.3 x"), (1.7, "1.7 x"), (3.0, "3 x")];
    [
        strengths(longer, |times| spike("spike", Training::new(300, 101), StepPlan::default(), times)),
        strengths(longer, |times| {
            spike("spike, 0.8 ms steps", Training::new(600, 102), StepPlan::default().times(0.023), times)
        }),
        strengths(longer, |times| {
            spike("spike, 2 s steps", Training::new(40, 103), StepPlan::default().times(60.0), times)
        }),
        strengths(longer, |times| {
            spike("spike, step times alone", Training::new(200, 104), StepPlan::bare(300 * MS), times)
        }),
        strengths([(1.2, "1.2 x"), (1.8, "1.8 x"), (5.0, "5 x")], warm_up),
        strengths([(0.05, "5 %"), (0.2, "20 %"), (0.6, "60 %")], drift),
        strengths([(0.05, "5 %"), (0.15, "15 %"), (0.6, "60 %")], slower_since),
        strengths([(240, "240 of 256"), (160, "160 of 256"), (32, "32 of 256")], partial_batch),
        strengths([(12, "12 samples"), (8, "8 samples"), (2, "2 samples")], tiny_batch),
        strengths([(6.4, "6 points"), (10.0, "17 points"), (25.0, "38 points")], phase_shift),
        strengths([(3.0, "8 %"), (9.0, "21 %"), (50.0, "60 %")], data_bound),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// One step, about in the middle, takes so many times as long.
fn spike(class: &'static str, training: Training, usual: StepPlan, times: f64) -> Case {
    let at = training.steps / 2 + 3;
    let gap_ns = usual.phases.first().map_or(0, |phase| phase.1 / 4);
    let usual = StepPlan { gap_ns, ..usual };
    let stream = training.stream(move |step, _| if step == at { usual.clone().times(times) } else { usual.clone() });
    Case::new(class, stream).expect(FindingKind::Spike).expect_spikes([at])
}

/// The first five steps are so many times slower.
fn warm_up(times: f64) -> Case {
    let stream =
        Training::new(300, 111).stream(|step, _| StepPlan::default().times(if step <= 5 { times } else { 1.0 }));
    Case::new("warm-up", stream).expect(FindingKind::WarmUp)
}

/// Steps get slower by so much until the end.
fn drift(slower: f64) -> Case {
    let stream =
        Training::new(400, 112).stream(|step, _| StepPlan::default().times(1.0 + slower * step as f64 / 400.0));
    Case::new("drift", stream).expect(FindingKind::Drift)
}

/// Steps take so much longer from one on, two thirds into the run.
fn slower_since(slower: f64) -> Case {
    let more = move |step: u64| if step > 2000 { 1.0 + slower } else { 1.0 };
    let stream = Training::new(3000, 117).stream(move |step, _| StepPlan::default().times(more(step)));
    Case::new("slower since a step", stream).expect(FindingKind::SlowerSince).expect_text("(step 2,00")
}

/// Each tenth batch, the last of an epoch, has so many graphs of 256.
fn partial_batch(graphs: u64) -> Case {
    let stream = Training::new(300, 113).stream(|step, _| {
        let graphs = if step.is_multiple_of(10) { graphs } else { 256 };
        let batch =
            BatchShape { graphs: Some(graphs), nodes: Some(graphs * 14), edges: Some(graphs * 28), seeds: None };
        StepPlan { batch, epoch: (step - 1) / 10, ..StepPlan::default().times(graphs as f64 / 256.0) }
    });
    Case::new("partial batches", stream).expect(FindingKind::PartialBatch)
}

/// An optimizer that takes a fourth of every step, beside batches of so many samples.
fn tiny_batch(samples: u64) -> Case {
    let stream = Training::new(300, 114).stream(|_, _| StepPlan {
        phases: vec![("forward", MS), ("backward", 2 * MS), ("optimizer", MS)],
        gap_ns: MS / 20,
        batch: BatchShape::default(),
        counters: vec![("samples", samples as f64)],
        ..StepPlan::default()
    });
    Case::new("tiny batches", stream).expect(FindingKind::TinyBatch)
}

/// Backward takes so long with large batches and 5 ms with small ones, forward 10 ms with both.
fn phase_shift(backward_ms: f64) -> Case {
    let stream = Training::new(300, 115).stream(|step, _| {
        let is_large = step * 7 % 10 < 5;
        let batch = BatchShape { edges: Some(if is_large { 8000 } else { 2000 }), ..BatchShape::default() };
        let backward_ms = if is_large { backward_ms } else { 5.0 };
        StepPlan {
            phases: vec![("forward", 10 * MS), ("backward", ns(backward_ms))],
            gap_ns: MS / 10,
            batch,
            ..StepPlan::default()
        }
    });
    Case::new("phases shift", stream).expect(FindingKind::PhaseShift)
}

/// The loop waits so long for each batch, beside 33 ms of work.
fn data_bound(wait_ms: f64) -> Case {
    let stream = Training::new(300, 116).stream(|_, _| StepPlan::default().with_phase("data wait", ns(wait_ms - 1.0)));
    Case::new("waiting for data", stream).expect(FindingKind::DataBound)
}
