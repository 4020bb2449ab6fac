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
mod repeated_reduce;
mod slow_rank;
mod stages;
mod starved_rank;
mod straggler;
mod uneven_work;
mod work;

use super::finding::{CheckOutcome, FindingKind, Findings};
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
    findings.sort();
    findings
}

#[cfg(test)]
mod tests;
