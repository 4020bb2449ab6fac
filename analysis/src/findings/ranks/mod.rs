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
mod slow_rank;
mod stages;
mod work;

use super::finding::{CheckOutcome, Findings, NotEnough};
use crate::ranks::Ranks;
use evidence::{RankCheck, RankEvidence};

/// All checks over the ranks of a run.
static ALL: [&dyn RankCheck; 8] = [
    &hang::Hangs,
    &slow_rank::Straggler,
    &late_rank::LateRank,
    &slow_rank::StarvedRank,
    &stages::UnequalStages,
    &work::WorkNotConserved,
    &communication::CommunicationBound,
    &oversubscription::Oversubscribed,
];

/// All findings over the ranks of a run, the most severe first; none if there are no ranks.
pub fn rank_findings(ranks: &Ranks<'_>) -> Findings {
    let mut findings = Findings::default();
    if ranks.all().is_empty() {
        return findings;
    }
    let evidence = RankEvidence::new(ranks);
    for check in ALL {
        match check.check(&evidence) {
            CheckOutcome::Found(found) => findings.found.extend(found),
            CheckOutcome::Nothing => (),
            CheckOutcome::NotEnough(reason) => findings.not_enough.push(NotEnough { kind: check.kind(), reason }),
        }
    }
    findings.sort();
    findings
}

#[cfg(test)]
mod tests;
