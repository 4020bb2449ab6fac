//! Partial batches: steps that are shorter because their batch is smaller, which means and percentiles over all
//! steps hide.

use crate::figures::{count, duration};
use crate::findings::batch_fit::batch_size;
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, PLACES_LISTED, Severity};
use crate::findings::number::Number;
use crate::findings::robust::median;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    if evidence.rows.iter().all(|row| batch_size(row).is_none()) {
        return CheckOutcome::NotEnough(sizes_missing(evidence).to_owned());
    }
    let Some(full) = evidence.shape.full else { return CheckOutcome::Nothing };
    let partial: Vec<usize> = (0..evidence.rows.len()).filter(|row| evidence.shape.is_partial[*row]).collect();
    let class_ns = |is: bool| {
        let of = |row: usize| (evidence.shape.is_partial[row] == is).then(|| evidence.inside_ns[row]);
        median(&mut (0..evidence.rows.len()).filter_map(of).collect::<Vec<f64>>())
    };
    let (Some(partial_ns), Some(full_ns)) = (class_ns(true), class_ns(false)) else { return CheckOutcome::Nothing };
    finding(evidence, full, &partial, partial_ns, full_ns).into()
}

/// Why the sizes of batches are not known; some programs report only how many samples they have had.
fn sizes_missing(evidence: &StepEvidence<'_>) -> &'static str {
    match evidence.rows.iter().any(|row| evidence.store.samples_of(row).is_some()) {
        true => "of a batch only its samples are known, not its graphs, nodes or edges",
        false => "the program does not report batch sizes",
    }
}

fn finding(evidence: &StepEvidence<'_>, full: u64, partial: &[usize], partial_ns: f64, full_ns: f64) -> Finding {
    let sentence = |row: &usize| {
        let size = batch_size(&evidence.rows[*row]).unwrap_or(0);
        let took = duration(evidence.inside_ns[*row] as u64);
        format!(
            "step {} has {} of {} in its batch and takes {took}",
            evidence.rows[*row].step().0,
            count(size),
            count(full)
        )
    };
    let places = partial.iter().take(PLACES_LISTED).map(|row| evidence.place(*row, sentence(row))).collect();
    let n = partial.len() as u64;
    let finding = Finding::for_run(FindingKind::PartialBatch, Confidence::High, None, |facts| {
        format!(
            "{} of {} steps have a partial batch: {} instead of {} for a full one",
            facts.count(Number::Steps, n),
            facts.count(Number::OfSteps, evidence.rows.len() as u64),
            facts.time(Number::PartialBatch, partial_ns),
            facts.time(Number::FullBatch, full_ns)
        )
    });
    let mut finding = finding.with_places(places, n);
    finding.severity = Severity::Note;
    if let Some((measure, line)) = evidence.shape.fit {
        finding = finding.with_evidence_from(|facts| {
            let base = (line.base >= 1.0).then(|| format!("{} + ", facts.time(Number::FixedTime, line.base)));
            let each = facts.time(Number::PerThousand, line.slope * 1000.0);
            let (base, r) = (base.unwrap_or_default(), facts.number(Number::Correlation, line.r));
            format!("time = {base}{each} per 1,000 {} (r = {r:.4})", measure.as_str())
        });
        if line.base > 0.1 * full_ns {
            finding = finding.with_evidence_from(|facts| {
                let fixed = facts.share(Number::FixedCost, line.base / full_ns);
                format!("{fixed} of a full step is fixed cost, whatever the batch size")
            });
        }
    } else {
        finding.confidence = Confidence::Medium;
        finding = finding.with_evidence("batch size does not explain the time: other things vary more".to_owned());
    }
    finding.with_advice("compare time per sample or edge, not per step")
}
