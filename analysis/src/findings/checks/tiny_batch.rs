//! Tiny batches: so little work in a step that its fixed costs are a large part of it.
//!
//! Calling the library, launching kernels and going over all parameters in the optimizer takes as long for one sample
//! as for a hundred. A stream does not separate these costs, except that the optimizer's phase is one of them as a
//! whole.

use gnntop_wire::Reported;
use gnntop_wire::phase::{BACKWARD, FORWARD, OPTIMIZER};

use crate::findings::batch_fit::batch_size;
use crate::findings::claim::Claim;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::number::Number;
use crate::findings::robust::median;

/// A batch of more samples, graphs or seeds is not tiny...
const TINY: u64 = 8;
/// ...nor is one of larger graphs.
const FEW_EDGES: u64 = 4096;
/// The optimizer has at least this share of a step's compute time...
const FIXED: f64 = 0.15;
/// ...and the run computes for this share of the time: else a larger batch makes what it waits for longer, and little shorter.
const COMPUTES: f64 = 0.5;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let Some((size, of)) = usual_size(evidence) else {
        return CheckOutcome::NotEnough("the program does not report batch sizes".to_owned());
    };
    let edges = evidence.median(|row| row.batch().edges.map(|edges| edges as f64)).unwrap_or(0.0);
    if size > TINY || edges > FEW_EDGES as f64 {
        return CheckOutcome::Nothing;
    }
    let phase = |name| evidence.store.phase(name).map_or(0.0, |phase| evidence.phase_total_ns(phase.slot));
    let (work, fixed) = (phase(FORWARD) + phase(BACKWARD), phase(OPTIMIZER));
    if work == 0.0 || fixed == 0.0 {
        return CheckOutcome::NotEnough("the program does not separate forward, backward and optimizer".to_owned());
    }
    let of_computing = fixed / (work + fixed);
    if of_computing < FIXED || evidence.share(work + fixed) < COMPUTES {
        return CheckOutcome::Nothing;
    }
    finding(evidence, size, of, of_computing, evidence.share(fixed)).into()
}

/// The usual size of a batch, and its unit.
fn usual_size(evidence: &StepEvidence<'_>) -> Option<(u64, &'static str)> {
    if let Some(size) = evidence.median(|row| batch_size(row).map(|size| size as f64)) {
        let is_graphs = evidence.rows.iter().any(|row| row.batch().graphs.is_some());
        return Some((size as u64, if is_graphs { "graphs" } else { "seeds" }));
    }
    let span = evidence.span_ns()?;
    let samples = evidence.store.counter_of(Reported::Samples)?;
    let points = samples.series.points().filter(|point| span.contains(&point.t_ns()));
    let size = median(&mut points.filter_map(|point| point.value()).collect::<Vec<f64>>())?;
    Some((size as u64, Reported::Samples.text()))
}

fn finding(evidence: &StepEvidence<'_>, size: u64, of: &str, of_computing: f64, share: f64) -> Finding {
    let step_ns = evidence.timed_median(|row| Some(row.period_ns() as f64)).unwrap_or(0.0);
    let one = of.trim_end_matches('s');
    let of = if size == 1 { one } else { of };
    let finding = Finding::for_run(FindingKind::TinyBatch, Confidence::Medium, Some(share), |facts| {
        let (size, optimizer) = (facts.count(Number::BatchSize, size), facts.share(Number::OfCompute, of_computing));
        format!(
            "batches of {size} {of} are so small that the optimizer, a fixed cost, takes {optimizer} of the compute time"
        )
    });
    let claim = evidence.store.phase(OPTIMIZER).map(|phase| Claim::Phases(vec![phase.slot]));
    Finding { claim, ..finding }
        .with_evidence_from(|facts| {
            let each = facts.time(Number::PerItem, step_ns / size.max(1) as f64);
            let step = facts.time(Number::Step, step_ns);
            format!("a step takes {step}, {each} per {one}")
        })
        .with_evidence("library calls and kernel launches also cost the same whatever the batch size")
        .with_advice("use larger batches, as far as memory and convergence allow")
}
