//! Findings over the ranks of a run, which one rank's times cannot show.
//!
//! ```text
//! Ranks ─▶ Side by side (evidence.rs: the steps that all ranks have) ─▶ one file a kind ─▶ Findings
//! ```

mod communication;
mod evidence;
mod hang;
mod late_rank;
mod oversubscription;
mod reduce_lines;
mod repeated_reduce;
mod slow_rank;
mod stages;
mod starved_rank;
mod straggler;
mod uneven_work;
mod work;

use super::finding::{CheckOutcome, Finding, FindingKind, Findings, Severity};
use super::number::Number;
use crate::ranks::Ranks;
use evidence::RankEvidence;

/// Finds one kind of finding over ranks.
type RankCheck = fn(&RankEvidence<'_>) -> CheckOutcome;

/// All checks over the ranks of a run, with what each looks for.
static ALL: [(FindingKind, RankCheck); 10] = [
    (FindingKind::Hang, hang::check),
    (FindingKind::Straggler, straggler::check),
    (FindingKind::Straggler, late_rank::check),
    (FindingKind::StarvedRank, starved_rank::check),
    (FindingKind::UnevenWork, uneven_work::check),
    (FindingKind::Imbalance, stages::check),
    (FindingKind::WorkNotConserved, work::check),
    (FindingKind::CommunicationBound, communication::check),
    (FindingKind::RepeatedReduce, repeated_reduce::check),
    (FindingKind::Oversubscribed, oversubscription::check),
];

/// All findings over the ranks of a run, the most severe first; none if there are no ranks.
pub fn rank_findings(ranks: &Ranks<'_>) -> Findings {
    let mut findings = Findings::default();
    if ranks.all().is_empty() {
        return findings;
    }
    let evidence = RankEvidence::new(ranks);
    ALL.iter().for_each(|(kind, check)| findings.add(*kind, check(&evidence)));
    count_needless_reduces_once(&mut findings.found);
    findings.sort();
    findings
}

/// All-reduces that need not be are a cause of communication, which keeps the rest of the time.
fn count_needless_reduces_once(found: &mut [Finding]) {
    let cause = found.iter().find(|finding| finding.kind == FindingKind::RepeatedReduce);
    let Some((needless, title)) = cause.and_then(|it| Some((it.share?, it.kind.title()))) else { return };
    // What stages of a pipeline hand over is no all-reduce.
    let is_reduce = |it: &&mut Finding| it.kind == FindingKind::CommunicationBound && it.fact(Number::Copies).is_some();
    for finding in found.iter_mut().filter(is_reduce) {
        let all = finding.share.unwrap_or(0.0);
        let counted = needless.min(all);
        finding.share = Some(all - counted);
        if all - counted < communication::WORTH_REPORTING {
            finding.severity = Severity::Note;
            finding.advice = vec![format!("see to {title} first")];
        }
        finding.add_evidence(|facts| {
            let share = facts.share(Number::CountedElsewhere, counted);
            [format!("of this, {share} of the time is already counted under {title}")]
        });
    }
}

#[cfg(test)]
mod tests;
