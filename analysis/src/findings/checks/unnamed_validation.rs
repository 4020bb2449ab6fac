//! A validation that computes gradients, and so is no phase: the model runs on many batches in some steps, and no backward pass follows.

use gnntop_wire::Origin;
use gnntop_wire::phase::{BACKWARD, DATA_WAIT, FORWARD, VALIDATION};

use crate::findings::claim::{Claim, StepCost};
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{Confidence, Finding, FindingKind, PLACES_LISTED};
use crate::findings::number::Number;
use crate::findings::robust::median;

/// The model runs this many times as often as in a usual step...
const TIMES: f64 = 3.0;
/// ...this many times more often without a backward pass...
const MORE: f64 = 2.0;
/// ...mostly on a batch that was fetched for it, which experience in an environment is not...
const ON_A_BATCH: f64 = 0.5;
/// ...in this many steps, and in at most this part of them.
const STEPS: usize = 3;
const MOST: f64 = 1.0 / 3.0;
/// A smaller share of the wall time is no finding.
const WORTH_REPORTING: f64 = 0.02;

/// What it finds in a session.
pub(super) fn find(evidence: &StepEvidence<'_>) -> Option<Finding> {
    let found = Validations::find(evidence)?;
    let period_ns = |row: usize| evidence.rows[row].period_ns() as f64;
    let others = (0..evidence.rows.len()).filter(|row| !found.have(*row));
    let usual_ns = median(&mut others.map(period_ns).collect::<Vec<f64>>())?;
    let costs = found.rows.iter().map(|row| (*row, (period_ns(*row) - usual_ns).max(0.0)));
    let all_ns: f64 = costs.clone().map(|(_, ns)| ns).sum();
    let share = evidence.share(all_ns);
    if share < WORTH_REPORTING {
        return None;
    }
    let cost = |(row, ns)| StepCost { row, is_inside: true, ns, without_ns: Some(usual_ns) };
    let sentence = |row: usize| format!("the model runs {} times in step {}", found.runs, evidence.rows[row].step().0);
    let places = found.rows.iter().take(PLACES_LISTED).map(|row| evidence.place(*row, sentence(*row))).collect();
    let finding = Finding::for_run(FindingKind::Validation, Confidence::Medium, Some(share), |facts| {
        let steps = facts.count(Number::Steps, found.rows.len() as u64);
        let runs = facts.count(Number::ModelRuns, found.runs);
        let (share, all) = (facts.share(Number::OfTime, share), facts.time(Number::InAll, all_ns));
        format!(
            "in {steps} steps the model runs {runs} times, mostly without a backward pass: {share} of the time, {all}"
        )
    })
    .with_evidence_from(|facts| {
        let usual = facts.count(Number::UsualModelRuns, found.usual);
        if found.usual == 1 {
            "in other steps it runs once".to_owned()
        } else {
            format!("in other steps it runs {usual} times")
        }
    })
    .with_claim(Claim::Steps(costs.map(cost).collect()))
    .with_places(places, found.rows.len() as u64);
    let is_python = evidence.store.session().info().is_some_and(|info| info.origin == Origin::Python);
    Some(finding.with_advice(match is_python {
        true => "if it is a validation, call model.eval() before it, and run it under torch.no_grad(): it takes less time and memory",
        false => "if it is a validation, compute no gradients in it, and make it a phase `validation`",
    }))
}

/// Whether one of these rows has such a validation.
pub(super) fn is_in(evidence: &StepEvidence<'_>, mut rows: impl Iterator<Item = usize>) -> bool {
    Validations::find(evidence).is_some_and(|found| rows.any(|row| found.have(row)))
}

/// Rows in which the model runs far more often than in others.
struct Validations {
    rows: Vec<usize>,
    /// How often it usually runs in these, and in the others.
    runs: u64,
    usual: u64,
}

impl Validations {
    /// Of the rows of which every span is kept.
    fn find(evidence: &StepEvidence<'_>) -> Option<Self> {
        let passes = passes(evidence)?;
        let of = |rows: &[usize], number: fn(&Passes) -> f64| {
            median(&mut rows.iter().map(|row| number(&passes[*row])).collect::<Vec<f64>>())
        };
        let known: Vec<usize> = (0..passes.len()).filter(|row| passes[*row].forward > 0.0).collect();
        let (usual, usual_alone) = (of(&known, |it| it.forward)?, of(&known, Passes::alone)?);
        let is_one = |row: &usize| {
            let it = passes[*row];
            let is_often = it.forward >= TIMES * usual && it.alone() >= usual_alone + MORE;
            is_often && it.fetch >= ON_A_BATCH * it.forward
        };
        let rows: Vec<usize> = known.iter().copied().filter(is_one).collect();
        let are_some = rows.len() >= STEPS && rows.len() as f64 <= MOST * known.len() as f64;
        let runs = of(&rows, |it| it.forward)? as u64;
        are_some.then_some(Self { rows, runs, usual: usual as u64 })
    }

    fn have(&self, row: usize) -> bool {
        self.rows.binary_search(&row).is_ok()
    }
}

/// How often each pass runs in a row, outside of validations that are phases, and how often a batch is fetched.
#[derive(Clone, Copy, Default)]
struct Passes {
    fetch: f64,
    forward: f64,
    backward: f64,
}

impl Passes {
    /// Forward passes that no backward pass follows.
    fn alone(&self) -> f64 {
        self.forward - self.backward
    }
}

fn passes(evidence: &StepEvidence<'_>) -> Option<Vec<Passes>> {
    let lane = evidence.store.training_track()?.lane()?;
    let span = evidence.span_ns()?;
    let mut passes = vec![Passes::default(); evidence.rows.len()];
    let mut validation_from_ns = u64::MAX;
    lane.each_box(span.start.max(lane.full_from_ns())..span.end, |inner, _| {
        let phase = evidence.store.phase_text(inner.name).unwrap_or_default();
        if phase == VALIDATION {
            validation_from_ns = inner.start_ns; // newest first: what began later and ended before is inside
        } else if matches!(phase, FORWARD | BACKWARD | DATA_WAIT)
            && inner.end_ns <= validation_from_ns
            && let Some(row) = evidence.row_at(inner.end_ns)
        {
            let Passes { fetch, forward, backward } = &mut passes[row];
            *(if phase == FORWARD {
                forward
            } else if phase == BACKWARD {
                backward
            } else {
                fetch
            }) += 1.0;
        }
    });
    Some(passes)
}
