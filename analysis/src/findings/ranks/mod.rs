//! Findings over the ranks of a run, which one rank's times cannot show.
//!
//! ```text
//! Ranks ─▶ Side by side (evidence.rs: the steps that all ranks have) ─▶ one file a kind ─▶ Findings
//! ```

mod check;
mod communication;
mod evidence;
mod hang;
mod late_rank;
mod oversubscription;
mod slow_rank;
mod stages;
mod work;

use super::finding::{Findings, NotEnough, Outcome};
use crate::ranks::Ranks;
use check::Check;
use evidence::SideBySide;

/// All checks over the ranks of a run.
static ALL: [&dyn Check; 8] = [
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
pub fn of_ranks(ranks: &Ranks<'_>) -> Findings {
    let mut findings = Findings::default();
    if ranks.all().is_empty() {
        return findings;
    }
    let evidence = SideBySide::of(ranks);
    for check in ALL {
        match check.look(&evidence) {
            Outcome::Found(found) => findings.found.extend(found),
            Outcome::Nothing => (),
            Outcome::NotEnough(reason) => findings.not_enough.push(NotEnough { kind: check.kind(), reason }),
        }
    }
    findings.sort();
    findings
}

#[cfg(test)]
mod tests;
