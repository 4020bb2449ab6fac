//! Warm-up: first steps that are slower than the rest and do not belong in a mean.

use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, Occurrence};
use crate::findings::number::Number;
use crate::findings::robust::median;

/// The slowest of the first steps must take this many times the usual time.
const SLOW: f64 = 1.5;

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let full = |row: &usize| !evidence.shape.is_partial[*row];
    let mut times: Vec<f64> = (0..evidence.rows.len()).filter(full).map(|row| evidence.inside_ns[row]).collect();
    let usual_ns = median(&mut times).unwrap_or(0.0).max(1.0);
    let slowest = evidence.warm_up.iter().map(|row| evidence.row_inside_ns(row)).fold(0.0, f64::max);
    let (Some(first), Some(last)) = (evidence.warm_up.first(), evidence.warm_up.last()) else {
        return CheckOutcome::Nothing; // the session's first steps are not looked at
    };
    if evidence.warm_up_ratio < SLOW || slowest - usual_ns < 6.0 * evidence.noise_ns {
        return CheckOutcome::Nothing;
    }
    let n = evidence.warm_up.len() as f64;
    let cost = evidence.warm_up.iter().map(|row| evidence.row_inside_ns(row)).sum::<f64>() - n * usual_ns;
    let finding = Finding::for_run(FindingKind::WarmUp, Confidence::High, None, |facts| {
        let noun = if evidence.warm_up.len() == 1 { "step warms up" } else { "steps warm up" };
        format!(
            "the first {} {noun}: up to {} each instead of {}, {} more in all",
            facts.count(Number::Steps, evidence.warm_up.len() as u64),
            facts.time(Number::Longest, slowest),
            facts.time(Number::Usual, usual_ns),
            facts.time(Number::MoreInAll, cost)
        )
    });
    let place = Occurrence {
        ordinals: first.ordinal()..last.ordinal() + 1,
        start_ns: first.period_start_ns(),
        end_ns: last.end_ns(),
        sentence: finding.summary.clone(),
    };
    finding
        .with_places(vec![place], 1)
        .with_evidence("they come before the first three steps in a row that take at most 1.2 x the usual time")
        .with_advice(format!("exclude them from means and percentiles (--skip-steps {})", evidence.warm_up.len()))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings;
    use crate::store::Store;
    use gnntop_fixtures::{MS, TrainingRun, each_item};
    use gnntop_wire::Item;

    #[test]
    fn warm_up_only_at_session_start() {
        let spikes = (1..=6).map(|step| (step, "forward", 200 * MS)).collect();
        let run = TrainingRun { spikes, ..TrainingRun::default() };
        let warms_up = |segment| {
            let mut store = Store::new();
            each_item(&run.bytes(), |item| match item {
                Item::Segment(info) => store.apply(Item::Segment(gnntop_wire::SessionInfo { segment, ..info })),
                item => store.apply(item),
            });
            findings::all_findings(&store).found.iter().any(|finding| finding.kind == FindingKind::WarmUp)
        };
        assert!(warms_up(0) && !warms_up(3));
    }
}
