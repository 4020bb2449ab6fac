//! The verdict in parts, by how much they matter, so that a narrow screen can leave out the last ones: what is wrong, what bounds the
//! run, then shares and what else is worth knowing.

use gnntop_wire::phase::{ALL_REDUCE, ASSEMBLE, DATA_WAIT, GATHER, RECEIVE, SAMPLE, SEND, TRANSFER, VALIDATION};

use super::bottleneck::Verdict;
use super::finding::{Finding, FindingKind, Severity};
use super::number::Number;
use crate::figures::{bytes, counted, percent};
use crate::store::GAP;

/// Kinds of findings that the line mentions.
const KINDS_NAMED: usize = 4;
/// Shares that differ by no more than this are taken for the same.
const ABOUT_THE_SAME: f64 = 0.01;
/// Kinds that make every phase longer.
const LENGTHENS_ALL: [FindingKind; 2] = [FindingKind::Contention, FindingKind::Interpreter];
/// Kinds that make ranks wait for each other, or send more than they need.
const CAUSES_OF_WAITS: [FindingKind; 6] = [
    FindingKind::Straggler,
    FindingKind::StarvedRank,
    FindingKind::UnevenWork,
    FindingKind::Imbalance,
    FindingKind::WorkNotConserved,
    FindingKind::RepeatedReduce,
];
/// The larger part of the time.
const MOSTLY: f64 = 0.5;
/// Phases in which a run waits, or does what is no training: one that takes the largest part of the time is what is wrong.
const NOT_TRAINING: [&str; 15] = [
    DATA_WAIT,
    SAMPLE,
    GATHER,
    ASSEMBLE,
    TRANSFER,
    ALL_REDUCE,
    RECEIVE,
    SEND,
    VALIDATION,
    GAP,
    "checkpoint",
    "compile",
    "gc",
    "rollout",
    "environment",
];

/// A part of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadlinePart {
    /// Its words.
    pub text: String,
    /// How many of the listed findings it stands for.
    pub findings: usize,
}

impl HeadlinePart {
    /// A part that is no finding.
    pub fn note(text: String) -> Self {
        Self { text, findings: 0 }
    }

    fn finding(finding: &Finding) -> Self {
        Self { text: named(finding), findings: 1 }
    }
}

/// The parts for settled steps with these findings, the most severe first.
pub(super) fn parts(verdict: &Verdict, found: &[Finding]) -> Vec<HeadlinePart> {
    let mut kinds: Vec<&Finding> = Vec::new();
    for finding in found.iter().filter(|finding| is_worth_naming(verdict, finding)) {
        if !kinds.iter().any(|named| named.kind == finding.kind) {
            kinds.push(finding);
        }
    }
    let bound = verdict.bound.as_ref().map_or(0.0, |(_, share)| *share);
    // If the CPU or the interpreter is taken away most of the time, that leads: all phases are longer than the program makes them.
    let leads = |finding: &&Finding| {
        let is_most = |share| share > bound.min(MOSTLY);
        LENGTHENS_ALL.contains(&finding.kind) && (finding.is_unmeasured_cause() || finding.share.is_some_and(is_most))
    };
    let cause = kinds.iter().position(leads).map(|at| kinds.remove(at));
    let of_waits = kinds.iter().position(|finding| causes_waits_for_ranks(verdict, finding)).map(|at| kinds.remove(at));
    let more = kinds.len().saturating_sub(KINDS_NAMED);
    kinds.truncate(KINDS_NAMED);
    let is_no_training = |(phase, _): &(String, f64)| NOT_TRAINING.contains(&phase.as_str());
    let bound_leads = verdict.bound.as_ref().map_or(verdict.bare_ns.is_some(), is_no_training);
    let is_wrong = |finding: &&Finding| !bound_leads && finding.severity == Severity::Major;
    let (wrong, others): (Vec<&Finding>, Vec<&Finding>) = kinds.iter().partition(|finding| is_wrong(finding));
    let first = cause.into_iter().chain(of_waits);
    let mut parts: Vec<HeadlinePart> = first.chain(wrong).map(HeadlinePart::finding).collect();
    // What bounds the run has a line in the list: its own, or that of a finding which is not named beside it.
    let is_bound = |finding: &&Finding| match finding.kind {
        FindingKind::Bound => true,
        FindingKind::Stall => is_stall_of_bound(verdict, finding),
        FindingKind::DataBound | FindingKind::Gap => !is_worth_naming(verdict, finding),
        _ => false,
    };
    let listed = found.iter().filter(is_bound).count();
    parts.extend(verdict.bound_words().map(|text| HeadlinePart { text, findings: listed }));
    parts.extend(others.into_iter().map(HeadlinePart::finding));
    parts.extend((more > 0).then(|| HeadlinePart { text: format!("and {more} more findings"), findings: more }));
    let is_named = |kind: FindingKind| kinds.iter().any(|finding| finding.kind == kind);
    let shares = verdict.other_shares(is_named(FindingKind::DataBound), is_named(FindingKind::Gap));
    let spread = verdict.spread().filter(|_| !is_named(FindingKind::Spike));
    parts.extend(shares.into_iter().chain(spread).chain(verdict.without()).map(HeadlinePart::note));
    parts
}

/// Whether a finding costs time that the bound does not show already. Partial batches and kinds of steps cost none, but without
/// knowing of them the numbers are misread.
fn is_worth_naming(verdict: &Verdict, finding: &Finding) -> bool {
    let bound = |phase: &str| verdict.bound.as_ref().filter(|(text, _)| text == phase).map(|(_, share)| *share);
    match finding.kind {
        FindingKind::DataBound => match (bound(DATA_WAIT), finding.share) {
            (Some(shown), Some(share)) => share > shown + ABOUT_THE_SAME,
            _ => finding.severity > Severity::Note,
        },
        FindingKind::Gap => bound(GAP).is_none(),
        FindingKind::Stall if is_stall_of_bound(verdict, finding) => false,
        FindingKind::PartialBatch | FindingKind::StepKinds => true,
        // Where the waits for a CPU were not measured, what it costs is unknown, not little.
        FindingKind::Contention => finding.severity > Severity::Note || finding.share.is_none(),
        _ => finding.severity > Severity::Note,
    }
}

/// Whether ranks wait for each other or for transfers most of the time, and it is why: what needs most of that phase, or more.
fn causes_waits_for_ranks(verdict: &Verdict, finding: &Finding) -> bool {
    let is_wait = |(phase, _): &&(String, f64)| [ALL_REDUCE, RECEIVE, SEND].contains(&phase.as_str());
    let is_most = |(_, share): &(String, f64)| finding.share.is_some_and(|of_cause| of_cause >= MOSTLY * share);
    CAUSES_OF_WAITS.contains(&finding.kind) && verdict.bound.as_ref().filter(is_wait).is_some_and(is_most)
}

/// Whether it is the phase that bounds the run by another name.
fn is_stall_of_bound(verdict: &Verdict, finding: &Finding) -> bool {
    verdict.bound.as_ref().is_some_and(|(phase, share)| finding.is_stall_in(phase, *share))
}

/// A finding in the line: which one or how many, and the share of the time that it costs, or how much it is.
fn named(finding: &Finding) -> String {
    let share = finding.share.map(|share| format!(" ({})", percent(share))).unwrap_or_default();
    let rank = finding.fact(Number::Rank);
    match (finding.kind, rank) {
        (FindingKind::Spike, _) => counted(finding.count, "spike", "spikes") + &share,
        // A wait that is measured passes whatever runs; by preemptions it is only some steps'.
        (FindingKind::Contention, _) if finding.share.is_some() && finding.fact(Number::OfTime).is_some() => {
            format!("{}{}, in all phases)", finding.kind.title(), share.trim_end_matches(')'))
        }
        (FindingKind::PartialBatch, _) => counted(finding.count, "partial batch", "partial batches"),
        (FindingKind::StepKinds, _) => counted(finding.count, "kind of step", "kinds of step"),
        (FindingKind::Gap, _) => format!("gap{}", share.replace(['(', ')'], "")),
        (FindingKind::Straggler, Some(rank)) => format!("straggler: rank {rank}{share}"),
        (FindingKind::StarvedRank, Some(rank)) => format!("rank {rank} starves{share}"),
        (FindingKind::Stall, _) => stalled(finding) + &share,
        (FindingKind::IdlePhase, _) => waiting(finding) + &share,
        // Of one that has grown, what it became is known.
        (FindingKind::Divergence, _) if finding.fact(Number::To).is_none() => "loss is no number".to_owned(),
        (FindingKind::MemoryGrowth, _) => format!("memory grows{}", growth(finding)),
        (FindingKind::GpuThrottled, _) => format!("{}{}", finding.kind.title(), throttled(finding)),
        (kind, _) => kind.title().to_owned() + &share,
    }
}

fn stalled(finding: &Finding) -> String {
    finding.stalls_at().map_or_else(|| finding.kind.title().to_owned(), |event| format!("stalls at {event}"))
}

/// In which phase it waits.
fn waiting(finding: &Finding) -> String {
    let phase = finding.facts.iter().find(|fact| fact.name == Number::OfTime).and_then(|fact| fact.of.as_deref());
    phase.map_or_else(|| finding.kind.title().to_owned(), |phase| format!("waits in {phase}"))
}

fn growth(finding: &Finding) -> String {
    let rate = |number, per: &str| finding.fact(number).map(|rate| format!(" {} {per}", bytes(rate)));
    let rate = rate(Number::BytesPerStep, "a step").or_else(|| rate(Number::BytesPerHour, "an hour"));
    rate.unwrap_or_default()
}

fn throttled(finding: &Finding) -> String {
    finding.fact(Number::OfTime).map(|share| format!(" {} of the time", percent(share))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Confidence;
    use crate::findings::stated_numbers::StatedNumbers;

    fn verdict(phase: &str) -> Verdict {
        let (data_wait_share, gap_share, p99_over_p50) = (Some(0.06), Some(0.17), Some(2.0));
        let bound = Some((phase.to_owned(), 0.5));
        Verdict { is_settled: true, bound, data_wait_share, gap_share, p99_over_p50, left_out: 3, ..Verdict::default() }
    }

    fn finding(kind: FindingKind, share: Option<f64>, note: impl FnOnce(&mut StatedNumbers)) -> Finding {
        let finding = Finding::for_run(kind, Confidence::High, share, |facts| {
            note(facts);
            String::new()
        });
        Finding { severity: Severity::Major, ..finding }
    }

    fn texts(parts: &[HeadlinePart]) -> Vec<&str> {
        parts.iter().map(|part| part.text.as_str()).collect()
    }

    #[test]
    fn finding_leads_where_the_bound_is_no_problem() {
        let grows = finding(FindingKind::MemoryGrowth, None, |facts| {
            facts.bytes(Number::BytesPerStep, 2097152.0);
        });
        let found = [grows, finding(FindingKind::Spike, Some(0.07), |_| ())];
        let work = parts(&verdict("backward"), &found);
        let spread_is_named = ["data wait 6.0 %", "gap 17 %", "shares without the first 3 steps"];
        let first = ["memory grows 2.00 MiB a step", "1 spike (7.0 %)", "backward-bound (50 %)"];
        assert_eq!(texts(&work), [first, spread_is_named].concat());
        let small = Finding { severity: Severity::Minor, ..finding(FindingKind::Spike, Some(0.01), |_| ()) };
        assert_eq!(texts(&parts(&verdict("backward"), &[small]))[..2], ["backward-bound (50 %)", "1 spike (1.0 %)"]);
        let unmeasured = Finding { severity: Severity::Note, ..finding(FindingKind::Contention, None, |_| ()) };
        assert_eq!(texts(&parts(&verdict("forward"), &[unmeasured]))[..2], ["forward-bound (50 %)", "CPU contention"]);
        let wait = parts(&verdict(DATA_WAIT), &found);
        assert_eq!(texts(&wait)[..2], ["data-bound (50 %)", "memory grows 2.00 MiB a step"]);
    }

    #[test]
    fn cause_of_waits_for_ranks_comes_before_them() {
        let (reduces, waits) = (FindingKind::RepeatedReduce, FindingKind::CommunicationBound);
        let lines = |share| {
            let found = [finding(waits, Some(0.45), |_| ()), finding(reduces, Some(share), |_| ())];
            let verdict = Verdict { data_wait_share: None, gap_share: None, ..verdict(ALL_REDUCE) };
            parts(&verdict, &found)
        };
        let cause = ["all-reduce in each micro-batch (40 %)", "all-reduce-bound (50 %)", "communication-bound (45 %)"];
        assert_eq!(texts(&lines(0.4))[..3], cause);
        assert_eq!(texts(&lines(0.1))[0], "all-reduce-bound (50 %)", "it is the least of it");
    }

    #[test]
    fn which_rank_and_how_much_are_named_and_the_gap_once() {
        let rank = |facts: &mut StatedNumbers| {
            facts.count(Number::Rank, 1);
        };
        let throttled = finding(FindingKind::GpuThrottled, None, |facts| {
            facts.share(Number::OfTime, 0.6);
        });
        let found = [
            finding(FindingKind::Straggler, Some(0.7), rank),
            finding(FindingKind::StarvedRank, Some(0.2), rank),
            throttled,
            finding(FindingKind::Gap, Some(0.18), |_| ()),
        ];
        let named = ["straggler: rank 1 (70 %)", "rank 1 starves (20 %)", "GPU throttled 60 % of the time", "gap 18 %"];
        assert_eq!(texts(&parts(&verdict("forward"), &found))[..4], named);
        assert!(!texts(&parts(&verdict("forward"), &found)).contains(&"gap 17 %"), "two shares of the same gap");
        let summary = "\"gc\": 54 times".to_owned();
        let stall = Finding { summary, ..finding(FindingKind::Stall, Some(0.5), |_| ()) };
        let waits = finding(FindingKind::IdlePhase, Some(0.4), |facts| {
            facts.about("forward", |facts| facts.share(Number::OfTime, 0.6));
        });
        let first = ["stalls at gc (50 %)", "waits in forward (40 %)"];
        assert_eq!(texts(&parts(&verdict("forward"), &[stall, waits]))[..2], first);
    }

    #[test]
    fn line_is_bounded_without_repeats() {
        let others = FindingKind::ALL.iter().filter(|kind| **kind != FindingKind::Hang);
        let found: Vec<Finding> =
            others.flat_map(|kind| [*kind; 2]).map(|kind| finding(kind, Some(0.1), |_| ())).collect();
        let parts = parts(&verdict("backward"), &found);
        assert!(parts.len() <= 3 + KINDS_NAMED + 2, "{parts:?}");
        // All kinds except the hang.
        let more = FindingKind::ALL.len() - 1 - KINDS_NAMED;
        let more = HeadlinePart { text: format!("and {more} more findings"), findings: more };
        assert!(parts.contains(&more), "{parts:?}");
    }
}
