//! A straggler: a rank that is usually slow at anything but getting its batches.

use gnntop_wire::phase::VALIDATION;

use super::evidence::RankEvidence;
use super::slow_rank::{SlowRank, outcome};
use crate::findings::finding::{CheckOutcome, Finding, FindingKind};
use crate::findings::number::Number;
use crate::store::GAP;

/// Batches that differ by more than this are not equal work.
const EQUAL_WORK: f64 = 0.05;

/// What it finds in a run.
pub(super) fn check(evidence: &RankEvidence<'_>) -> CheckOutcome {
    outcome(evidence, |slow| !slow.is_starved(), finding)
}

fn finding(evidence: &RankEvidence<'_>, found: &SlowRank) -> Finding {
    let number = evidence.ranks.all()[found.at].place.rank;
    let in_step = evidence.steps.len().max(1) as f64;
    let finding = found.finding(evidence, FindingKind::Straggler, |facts| {
        let ratio = facts.number(Number::Ratio, found.own_ns / found.peers_ns.max(1.0));
        let longer = found.phases.first().map(|phase| {
            let more = facts.about(&phase.text, |facts| facts.time(Number::More, phase.excess_ns / in_step));
            match phase.text.as_str() {
                GAP => format!(", {more} longer outside every phase"),
                text => format!(", {more} longer in {text}"),
            }
        });
        let longer = longer.unwrap_or_default();
        format!("rank {number} is a straggler: its own work takes {ratio:.2} x as long as its peers'{longer}")
    });
    let size = found.batch_ratio(evidence);
    match size.filter(|(_, ratio)| *ratio > 1.0 + EQUAL_WORK) {
        Some((word, ratio)) => finding
            .with_evidence_from(|facts| {
                let ratio = facts.number(Number::BatchRatio, ratio);
                format!("its batches have {ratio:.2} x the {word} of other ranks'")
            })
            .with_advice("give every rank batches of equal work: shard by edges, not by nodes or files"),
        None => finding
            .with_evidence_lines(|_| size.map(|_| "its batches are as large as on other ranks".to_owned()))
            .with_advice(advice(evidence, found)),
    }
}

/// What to try where its batches are no larger: about the phase that explains it, else about its machine.
fn advice(evidence: &RankEvidence<'_>, found: &SlowRank) -> String {
    let rank = &evidence.ranks.all()[found.at];
    let number = rank.place.rank;
    let Some(phase) = found.explained_by() else {
        let host = rank.store.session().info().map(|info| info.host.as_str()).unwrap_or_default();
        let place = match rank.place.device.as_str() {
            "" => host.to_owned(),
            device => format!("{device} on {host}"),
        };
        return format!("see what else runs on {place}");
    };
    match phase.text.as_str() {
        GAP if evidence.is_gap_between_steps(found.at) => {
            format!("see what rank {number} does between its steps that others do not: logging, checkpoints, printing")
        }
        GAP => format!(
            "see what rank {number} does in its steps, outside every phase, that others do not: transforms of a batch, logging, \
                checks; a phase around it would name it"
        ),
        VALIDATION | "checkpoint" => format!("let all ranks share the {}, or do it less often", phase.text),
        text => format!(
            "see what rank {number} does in {text} that others do not: the rest of its step is as fast as theirs"
        ),
    }
}
