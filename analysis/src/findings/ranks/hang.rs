//! Hang: no progress, and who holds the run up.

use super::check::Check;
use super::evidence::SideBySide;
use crate::findings::finding::{Confidence, Finding, Kind, Outcome, Severity};
use crate::ranks::hang::Doing;
use crate::ranks::watchdog;

/// The check.
pub(super) struct Hangs;

impl Check for Hangs {
    fn kind(&self) -> Kind {
        Kind::Hang
    }

    fn look(&self, evidence: &SideBySide<'_>) -> Outcome {
        let Some(hang) = watchdog::look(evidence.ranks) else { return Outcome::Nothing };
        let finding = Finding::of_run(Kind::Hang, Confidence::High, None, hang.sentence());
        let mut finding = Finding { severity: Severity::Major, ..finding };
        for stuck in &hang.waiting {
            finding = finding.because(stuck.sentence());
        }
        let first = hang.holding.first();
        let advice = match first.map(|stuck| &stuck.doing) {
            Some(Doing::Data(_)) => "see what that rank's loader is doing: a lock, a full disk, a dead worker",
            Some(Doing::Together(_) | Doing::Neighbour(_)) => {
                "every rank must call the same collectives in the same order: look for a branch that only some ranks take"
            }
            Some(doing) if doing.is_absent() => {
                "stop the run: the other ranks would wait forever. Then find out why that rank left"
            }
            _ if first.is_some_and(|stuck| stuck.place.is_some()) => "see what that line waits for",
            _ => "look at that rank's stack, such as with gdb -p or py-spy dump",
        };
        finding.advise(advice).into()
    }
}
