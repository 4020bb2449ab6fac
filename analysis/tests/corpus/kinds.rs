//! Steps of several kinds whose batches tell no sizes: by rhythm, by position in the epoch, by mixture, and spikes that
//! are spikes only beside their own kind.

use gnntop_analysis::findings::FindingKind;
use gnntop_fixtures::MS;
use gnntop_fixtures::planned::StepPlan;
use gnntop_wire::BatchShape;

use super::case::{Case, strengths};
use super::training::Training;

pub fn cases() -> Vec<Case> {
    let shorter = [(0.96, "0.96 x"), (0.7, "0.7 x"), (0.37, "0.37 x")];
    let longer = [(1.3, "1.3 x"), (1.7, "1.7 x"), (2.5, "2.5 x")];
    [
        strengths(shorter, every_third),
        strengths(shorter, alternating),
        strengths(shorter, last_of_epoch),
        strengths(shorter, last_of_uneven_epochs),
        strengths([(1.08, "1.08 x"), (1.6, "1.6 x"), (3.0, "3 x")], mixture),
        strengths([(1.08, "1.08 x"), (1.6, "1.6 x"), (3.0, "3 x")], longer_every_tenth),
        strengths(longer, spike_of_a_short_kind),
        strengths(longer, spike_of_a_long_kind),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A published table's rhythm: every third step is short.
fn every_third(times: f64) -> Case {
    let stream = Training::new(240, 201)
        .stream(|step, _| StepPlan::bare(774 * MS).times(if step.is_multiple_of(3) { times } else { 1.0 }));
    Case::new("kinds by rhythm, 3", stream).expect(FindingKind::StepKinds).expect_text("every 3rd step takes")
}

fn alternating(times: f64) -> Case {
    let stream = Training::new(200, 202)
        .spread(0.03)
        .stream(|step, _| unsized_step().times(if step.is_multiple_of(2) { times } else { 1.0 }));
    Case::new("kinds by rhythm, 2", stream).expect(FindingKind::StepKinds).expect_text("every 2nd step takes")
}

/// Epochs of twelve steps, the last of which has what was left over.
fn last_of_epoch(times: f64) -> Case {
    let stream = Training::new(240, 203).stream(|step, _| StepPlan {
        epoch: (step - 1) / 12,
        ..StepPlan::bare(50 * MS).times(if step.is_multiple_of(12) { times } else { 1.0 })
    });
    Case::new("kinds by position, 12", stream)
        .expect(FindingKind::StepKinds)
        .expect_text("the last of an epoch")
        .expect_text("every 12th step")
}

/// Epochs of 11, 12 and 13 steps in turns, so that no rhythm explains which step is short.
fn last_of_uneven_epochs(times: f64) -> Case {
    let stream = Training::new(360, 204).stream(|step, _| {
        let (round, within) = ((step - 1) / 36, (step - 1) % 36);
        let epoch = round * 3 + u64::from(within >= 11) + u64::from(within >= 23);
        let is_last = [10, 22, 35].contains(&within);
        StepPlan { epoch, ..unsized_step().times(if is_last { times } else { 1.0 }) }
    });
    Case::new("kinds by position, uneven", stream)
        .expect(FindingKind::StepKinds)
        .expect_text("the last step of an epoch takes")
}

/// Three in ten steps, in no order, take longer: long and short sequences, say.
fn mixture(times: f64) -> Case {
    let stream = Training::new(400, 205).spread(0.04).stream(|_, random| {
        let is_long = random.chance(0.3);
        unsized_step().times(if is_long { times } else { 1.0 })
    });
    Case::new("kinds by mixture", stream).expect(FindingKind::StepKinds).expect_text("in no regular order")
}

/// Every tenth step does more, such as reading results back from the device.
fn longer_every_tenth(times: f64) -> Case {
    let stream = Training::new(300, 206)
        .stream(|step, _| unsized_step().times(if step.is_multiple_of(10) { times } else { 1.0 }));
    // At this length each of them is a spike as well, if it is not known for a kind.
    Case::new("kinds by rhythm, 10 longer", stream).expect(FindingKind::StepKinds).expect_text("every 10th step takes")
}

/// One short step takes longer than short steps do, and yet no longer than the others.
fn spike_of_a_short_kind(times: f64) -> Case {
    let stream = Training::new(240, 207).stream(|step, _| {
        let is_spike = step == 150;
        let of_kind = if step.is_multiple_of(3) { 0.37 } else { 1.0 };
        StepPlan::bare(774 * MS).times(of_kind * if is_spike { times } else { 1.0 })
    });
    let case = Case::new("spike of a short kind", stream).expect(FindingKind::Spike).allow(FindingKind::StepKinds);
    case.expect_text("every 3rd step takes").expect_spikes([150])
}

fn spike_of_a_long_kind(times: f64) -> Case {
    let stream = Training::new(300, 208).spread(0.03).stream(|step, _| {
        let is_spike = step == 160;
        let of_kind = if step.is_multiple_of(5) { 2.2 } else { 1.0 };
        unsized_step().times(of_kind * if is_spike { times } else { 1.0 })
    });
    let case = Case::new("spike of a long kind", stream).expect(FindingKind::Spike).allow(FindingKind::StepKinds);
    case.expect_text("every 5th step takes").expect_spikes([160])
}

/// A step of which no batch's size is known.
fn unsized_step() -> StepPlan {
    StepPlan { batch: BatchShape::default(), ..StepPlan::default() }
}
