//! Gradients that are summed over the ranks in each micro-batch, where once a step would do.

use gnntop_wire::phase::{ALL_REDUCE, BACKWARD, OPTIMIZER};

use super::evidence::RankEvidence;
use super::reduce_lines;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::number::Number;
use crate::ranks::Rank;
use crate::store::Track;

/// Reported from this share of the time.
const WORTH_REPORTING: f64 = 0.02;

/// What it finds in a run.
pub(super) fn check(evidence: &RankEvidence<'_>) -> CheckOutcome {
    if !evidence.has_steps() {
        return evidence.too_few_steps();
    }
    let (Some(first), Some(last)) = (evidence.steps.last(), evidence.steps.first()) else {
        return CheckOutcome::Nothing;
    };
    let ranks = evidence.ranks.all();
    let of_rank = |at: usize| {
        let (first, last) = (first.rows[at].as_ref()?, last.rows[at].as_ref()?);
        Some((&ranks[at], Reduces::find(&ranks[at], first.period_start_ns()..last.end_ns())))
    };
    // The rank that waits least: the others' time in it is also that of waiting for it.
    let least = (0..ranks.len()).filter_map(of_rank).min_by(|(_, a), (_, b)| a.early_ns.total_cmp(&b.early_ns));
    match least {
        Some((rank, reduces)) if evidence.share(reduces.early_ns) >= WORTH_REPORTING => {
            reduce_lines::add(rank.store, finding(evidence, &reduces)).into()
        }
        _ => CheckOutcome::Nothing,
    }
}

/// The all-reduces of a rank's backward passes.
#[derive(Default)]
struct Reduces {
    /// How many there were.
    all: u64,
    /// Those that another backward pass of the same step followed, and their time.
    early: u64,
    early_ns: f64,
}

impl Reduces {
    fn find(rank: &Rank<'_>, span: std::ops::Range<u64>) -> Self {
        let mut found = Self::default();
        let Some(lane) = rank.store.training_track().and_then(Track::lane) else { return found };
        // Newest first: whether another backward pass follows before an optimizer steps, and the all-reduce after this one.
        let (mut is_followed, mut reduce) = (false, None);
        lane.each_box(span, |one, _| match rank.store.phase_text(one.name) {
            Some(ALL_REDUCE) => reduce = Some(*one),
            Some(OPTIMIZER) => (is_followed, reduce) = (false, None),
            Some(BACKWARD) => {
                if let Some(reduce) = reduce.take().filter(|reduce| reduce.start_ns == one.end_ns) {
                    found.all += 1;
                    if is_followed {
                        found.early += 1;
                        found.early_ns += reduce.end_ns.saturating_sub(reduce.start_ns) as f64;
                    }
                }
                is_followed = true;
            }
            _ => {}
        });
        found
    }
}

fn finding(evidence: &RankEvidence<'_>, reduces: &Reduces) -> Finding {
    let share = evidence.share(reduces.early_ns);
    Finding::for_run(FindingKind::RepeatedReduce, Confidence::High, Some(share), |facts| {
        let (early, all) = (facts.count(Number::Times, reduces.early), facts.count(Number::Collectives, reduces.all));
        let share = facts.share(Number::OfTime, share);
        format!(
            "{early} of {all} all-reduces sum gradients of micro-batches that are not the last of their step: {share} of the time"
        )
    })
    .with_evidence_from(|facts| {
        let steps = facts.count(Number::OfSteps, evidence.steps.len() as u64);
        format!("over {steps} steps, on the rank that waits least in them")
    })
    .with_advice("run all micro-batches but the last under model.no_sync(), which adds gradients up without sending them")
}

#[cfg(test)]
mod tests {
    use gnntop_fixtures::uneven::{place, rank_info};
    use gnntop_fixtures::{MS, START_NS, StreamBuilder};
    use gnntop_wire::TrackRole;

    use super::*;
    use crate::findings::Severity;
    use crate::findings::ranks::rank_findings;
    use crate::ranks::fixture::run;

    /// Two ranks with three micro-batches a step, of which these reduce, and an optimizer's step where that is said.
    fn found(reduces: fn(u64) -> bool, steps_after: fn(u64) -> bool) -> Option<Finding> {
        let found = findings(2 * MS, reduces, steps_after);
        found.into_iter().find(|finding| finding.kind == FindingKind::RepeatedReduce)
    }

    /// All findings, if a reduce takes so long.
    fn findings(reduce_ns: u64, reduces: fn(u64) -> bool, steps_after: fn(u64) -> bool) -> Vec<Finding> {
        let session = |rank: u32| {
            let mut stream = StreamBuilder::from_info(&rank_info("ddp", place(rank, 2)));
            let main = stream.track(TrackRole::Training, "train");
            let mut t_ns = START_NS;
            for step in 1..=40 {
                let start_ns = t_ns;
                let mut phase = |name, ns: u64| {
                    stream.phase(main, step, name, t_ns, t_ns + ns);
                    t_ns += ns;
                };
                for micro_batch in 0..3 {
                    phase("forward", 5 * MS);
                    phase("backward", 10 * MS);
                    if reduces(micro_batch) {
                        phase("all-reduce", reduce_ns);
                    }
                    if steps_after(micro_batch) {
                        phase("optimizer", MS);
                    }
                }
                stream.step(main, step, start_ns, t_ns);
            }
            stream.end(t_ns);
            stream.bytes()
        };
        rank_findings(&run(&[0, 1].map(session)).ranks()).found
    }

    #[test]
    fn all_reduce_in_each_micro_batch_is_found() {
        let it = found(|_| true, |micro_batch| micro_batch == 2).unwrap();
        // 37 steps after the warm-up, each with two that are needless.
        assert_eq!((it.fact(Number::Times), it.fact(Number::Collectives)), (Some(74.0), Some(111.0)), "{it:#?}");
        assert!((it.share.unwrap() - 4.0 / 52.0).abs() < 0.001, "{it:#?}");
    }

    #[test]
    fn all_reduce_of_the_last_micro_batch_or_before_an_optimizer_is_none() {
        assert_eq!(found(|micro_batch| micro_batch == 2, |micro_batch| micro_batch == 2), None);
        assert_eq!(found(|_| true, |_| true), None, "several optimizers take turns");
    }

    #[test]
    fn communication_keeps_what_is_not_needless() {
        let found = findings(15 * MS, |_| true, |micro_batch| micro_batch == 2);
        let of = |kind| found.iter().find(|finding| finding.kind == kind).unwrap();
        let (needless, communication) = (of(FindingKind::RepeatedReduce), of(FindingKind::CommunicationBound));
        assert_eq!(found[0].kind, FindingKind::RepeatedReduce, "the cause comes first: {found:#?}");
        // 45 of 91 ms, of which 30 need not be.
        assert!((needless.share.unwrap() - 30.0 / 91.0).abs() < 0.001, "{needless:#?}");
        assert!((communication.share.unwrap() - 15.0 / 91.0).abs() < 0.001, "{communication:#?}");
        assert_eq!(communication.severity, Severity::Note, "{communication:#?}");
    }
}
