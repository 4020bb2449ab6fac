//! A starved rank: one that usually takes longer than its peers to get its batches, whether it waits for them or makes them
//! itself.

use gnntop_wire::TrackRole;
use gnntop_wire::phase::{DATA_WAIT, TRANSFER};

use super::evidence::RankEvidence;
use super::slow_rank::{SlowPhase, SlowRank, outcome};
use crate::findings::finding::{CheckOutcome, Finding, FindingKind};
use crate::findings::number::Number;
use crate::findings::robust::median;

/// Batches that are larger by this explain that they take longer to make.
const LARGER: f64 = 1.05;

/// What it finds in a run.
pub(super) fn check(evidence: &RankEvidence<'_>) -> CheckOutcome {
    outcome(evidence, SlowRank::is_starved, finding)
}

fn finding(evidence: &RankEvidence<'_>, found: &SlowRank) -> Finding {
    let number = evidence.ranks.all()[found.at].place.rank;
    let (own_ns, peers_ns) = input_ns(evidence, found);
    let (first, in_step) = (found.phases.iter().find(|phase| phase.is_input), evidence.steps.len().max(1) as f64);
    let made_here = first.filter(|phase| phase.text != DATA_WAIT);
    let finding = found.finding(evidence, FindingKind::StarvedRank, |facts| {
        let of = made_here.map_or(DATA_WAIT, |phase| phase.text.as_str());
        facts.about(of, |facts| {
            let (own, others) = (facts.time(Number::Usual, own_ns), facts.time(Number::Otherwise, peers_ns));
            match made_here {
                None => format!(
                    "the loader starves rank {number}: it waits {own} a step for data, other ranks {others}, \
                        and all wait for it"
                ),
                Some(phase) => format!(
                    "rank {number} takes {own} a step to get its batches, other ranks {others}, and all wait for it: \
                        {} longer in {}",
                    facts.time(Number::More, phase.excess_ns / in_step),
                    phase.text
                ),
            }
        })
    });
    with_advice(evidence, found, made_here, finding)
}

/// What the rank usually takes in a step to get its batch, and what its peers do.
fn input_ns(evidence: &RankEvidence<'_>, found: &SlowRank) -> (f64, f64) {
    let input = || found.phases.iter().filter(|phase| phase.is_input);
    let usual = |at: usize| {
        let of_row = |row: &_| Some(input().map(|phase| evidence.phase_ns(at, row, &phase.text)).sum::<f64>());
        evidence.median(at, of_row).unwrap_or(0.0)
    };
    let theirs = median(&mut found.peers.iter().map(|at| usual(*at)).collect::<Vec<f64>>());
    (usual(found.at), theirs.unwrap_or(0.0))
}

fn with_advice(
    evidence: &RankEvidence<'_>,
    found: &SlowRank,
    made_here: Option<&SlowPhase>,
    finding: Finding,
) -> Finding {
    let all = evidence.ranks.all();
    let loaders = |at: usize| all[at].store.tracks().iter().filter(|track| track.role == TrackRole::Loader).count();
    let usual = found.peers.iter().map(|at| loaders(*at)).max().unwrap_or(0);
    let own = loaders(found.at);
    if own < usual {
        return finding
            .with_evidence_from(|facts| {
                let own = facts.count(Number::Loaders, own as u64);
                format!("it has {own} loader threads, other ranks up to {usual}")
            })
            .with_advice("give its loader as many threads as on other ranks");
    }
    if let Some((word, ratio)) = found.batch_ratio(evidence).filter(|(_, ratio)| *ratio >= LARGER) {
        return finding
            .with_evidence_from(|facts| {
                let ratio = facts.number(Number::BatchRatio, ratio);
                format!("its batches have {ratio:.2} x the {word} of other ranks'")
            })
            .with_advice(format!("give every rank batches of about as many {word}"));
    }
    finding.with_advice(match made_here.map(|phase| phase.text.as_str()) {
        Some(TRANSFER) => {
            "see that rank's way to its GPU: the link, the NUMA node of its process, and pinned memory".to_owned()
        }
        Some(text) => {
            format!("see where {text} on that rank reads from: its share of the data, its disk, its memory's NUMA node")
        }
        None => "see where that rank reads from: its share of the data, its disk, its loader's cores".to_owned(),
    })
}
