//! Hang: no progress, and who holds the run up.

use super::evidence::RankEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, Severity};
use crate::findings::number::Number;
use crate::findings::stated_numbers::StatedNumbers;
use crate::ranks::hang::{RankActivity, StuckRank};
use crate::ranks::watchdog;

/// What it finds in a run.
pub(super) fn check(evidence: &RankEvidence<'_>) -> CheckOutcome {
    let Some(hang) = watchdog::find_hang(evidence.ranks) else { return CheckOutcome::Nothing };
    let finding = Finding::for_run(FindingKind::Hang, Confidence::High, None, |facts| {
        facts.time(Number::Lasting, hang.for_ns as f64);
        if let Some(ns) = hang.usual_step_ns {
            facts.time(Number::Step, ns as f64);
        }
        hang.blocking.iter().for_each(|stuck| note(facts, stuck));
        hang.sentence()
    })
    .with_evidence_lines(|facts| {
        hang.waiting.iter().for_each(|stuck| note(facts, stuck));
        hang.waiting.iter().map(StuckRank::sentence)
    });
    let finding = Finding { severity: Severity::Major, ..finding };
    let first = hang.blocking.first();
    let advice = match first.map(|stuck| &stuck.activity) {
        Some(RankActivity::Data(_)) => "see what that rank's loader is doing: a lock, a full disk, a dead worker",
        Some(RankActivity::Together(_) | RankActivity::Neighbour(_)) => {
            "every rank must call the same collectives in the same order: look for a branch that only some ranks take"
        }
        Some(doing) if doing.is_absent() => {
            "stop the run: the other ranks would wait forever. Then find out why that rank left"
        }
        _ if first.is_some_and(|stuck| stuck.place.is_some()) => "see what that line waits for",
        _ => "look at that rank's stack, such as with gdb -p or py-spy dump",
    };
    finding.with_advice(advice).into()
}

/// How long a rank has been doing what it does.
fn note(facts: &mut StatedNumbers, stuck: &StuckRank) {
    facts.about(&format!("rank {}", stuck.rank), |facts| {
        stuck.for_ns.map(|ns| facts.time(Number::Lasting, ns as f64));
    });
}
