//! A rank that is usually slower than its peers: a straggler, or one whose loader starves it.
//!
//! Ranks of the same stage are compared, step by step, by their own work: what they wait for is the work of others.

use gnntop_wire::TrackRole;
use gnntop_wire::phase::{ALL_REDUCE, DATA_WAIT, RECEIVE, SEND};

use super::evidence::{RankEvidence, batch_work};
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::number::Number;
use crate::findings::robust::median;
use crate::findings::stated_numbers::StatedNumbers;
use crate::store::GAP;

/// A rank is slow in a step if it takes this many times as long as its peers...
const SLOW: f64 = 1.1;
/// ...and usually slow if it is in this share of the steps.
const AGAIN: f64 = 0.6;
/// A cost below this share of the time is not a finding.
const WORTH_REPORTING: f64 = 0.03;
/// Batches that differ by more than this are not equal work.
const EQUAL_WORK: f64 = 0.05;

/// Looks for a rank that is slow at anything but waiting for data.
pub(super) fn check_straggler(evidence: &RankEvidence<'_>) -> CheckOutcome {
    outcome(evidence, |slow| !slow.is_starved(), straggler)
}

/// Looks for a rank that waits for data longer than its peers.
pub(super) fn check_starved_rank(evidence: &RankEvidence<'_>) -> CheckOutcome {
    outcome(evidence, SlowRank::is_starved, starved)
}

fn outcome(
    evidence: &RankEvidence<'_>,
    is_mine: fn(&SlowRank) -> bool,
    finding: fn(&RankEvidence<'_>, &SlowRank) -> Finding,
) -> CheckOutcome {
    let peers = evidence.peers();
    if peers.is_empty() {
        return CheckOutcome::NotEnough("no two ranks do the same work".to_owned());
    }
    if !evidence.has_steps() {
        return evidence.too_few_steps();
    }
    let slow = peers.iter().filter_map(|peers| SlowRank::find(evidence, peers)).filter(is_mine);
    slow.map(|slow| finding(evidence, &slow)).collect::<Vec<Finding>>().into()
}

/// A rank that is usually slow.
struct SlowRank {
    /// Its index among all ranks.
    at: usize,
    peers: Vec<usize>,
    /// Share of the steps in which it is slow.
    steps: f64,
    /// Median of its own work in a step.
    own_ns: f64,
    /// Its peers' work.
    peers_ns: f64,
    /// How much longer it takes than its peers, over all steps.
    excess_ns: f64,
    /// The phase in which it takes longer, and that phase's share of the excess.
    phase: (String, f64),
}

impl SlowRank {
    /// The slowest of these ranks, if it usually is.
    fn find(evidence: &RankEvidence<'_>, peers: &[usize]) -> Option<Self> {
        let all = peers.iter().filter_map(|at| Self::check_rank(evidence, *at, peers));
        let slowest = all.max_by(|a, b| a.excess_ns.total_cmp(&b.excess_ns))?;
        (evidence.share(slowest.excess_ns) >= WORTH_REPORTING).then_some(slowest)
    }

    fn check_rank(evidence: &RankEvidence<'_>, at: usize, peers: &[usize]) -> Option<Self> {
        let others: Vec<usize> = peers.iter().copied().filter(|peer| *peer != at).collect();
        let (mut own, mut theirs, mut slow, mut excess_ns) = (Vec::new(), Vec::new(), 0usize, 0.0f64);
        for common in &evidence.steps {
            let row = common.rows[at].as_ref()?;
            let own_ns = evidence.own_ns(at, row);
            let of_other = |other: &usize| Some(evidence.own_ns(*other, common.rows[*other].as_ref()?));
            let others_ns = median(&mut others.iter().filter_map(of_other).collect::<Vec<f64>>())?;
            slow += usize::from(own_ns > SLOW * others_ns);
            excess_ns += own_ns - others_ns;
            own.push(own_ns);
            theirs.push(others_ns);
        }
        let steps = slow as f64 / evidence.steps.len().max(1) as f64;
        if steps < AGAIN {
            return None;
        }
        let phase = slow_phase(evidence, at, &others);
        let (own_ns, peers_ns) = (median(&mut own)?, median(&mut theirs)?);
        Some(Self { at, peers: others, steps, own_ns, peers_ns, excess_ns, phase })
    }

    fn is_starved(&self) -> bool {
        self.phase.0 == DATA_WAIT && self.phase.1 >= 0.5 * self.excess_ns
    }
}

/// The phase, or the gap, in which a rank's excess is largest, and the excess over all steps.
fn slow_phase(evidence: &RankEvidence<'_>, at: usize, others: &[usize]) -> (String, f64) {
    let rank = &evidence.ranks.all()[at];
    let names = rank.store.phases().iter().map(|phase| phase.text.as_str());
    let own = names.filter(|name| ![ALL_REDUCE, RECEIVE, SEND].contains(name));
    let excess_ns = |name: &str| {
        let in_step = evidence.steps.iter().filter_map(|common| {
            let of = |at: usize| Some(evidence.phase_ns(at, common.rows[at].as_ref()?, name));
            let theirs = median(&mut others.iter().filter_map(|other| of(*other)).collect::<Vec<f64>>())?;
            Some(of(at)? - theirs)
        });
        in_step.sum::<f64>()
    };
    let all = own.map(|name| (name.to_owned(), excess_ns(name)));
    all.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((GAP.to_owned(), 0.0))
}

/// The first evidence of both kinds.
fn slow_finding(
    evidence: &RankEvidence<'_>,
    slow: &SlowRank,
    kind: FindingKind,
    summary: impl FnOnce(&mut StatedNumbers) -> String,
) -> Finding {
    let rank = evidence.ranks.all()[slow.at].place.rank;
    let share = evidence.share(slow.excess_ns);
    let finding = Finding::for_run(kind, Confidence::High, Some(share), |facts| {
        facts.count(Number::Rank, rank.into());
        summary(facts)
    });
    finding
        .with_evidence_from(|facts| {
            let often = facts.share(Number::OftenSlow, slow.steps);
            let steps = facts.count(Number::OfSteps, evidence.steps.len() as u64);
            let (own, others) = (facts.time(Number::Usual, slow.own_ns), facts.time(Number::Otherwise, slow.peers_ns));
            format!("rank {rank} is slow in {often} of {steps} steps: median own work {own}; other ranks {others}")
        })
        .with_evidence_lines(|facts| {
            let wait = facts.time(Number::OthersWait, others_wait_ns(evidence, slow)?);
            Some(format!("other ranks are in all-reduce {wait} longer than rank {rank}"))
        })
}

/// How much longer the peers are in the all-reduce, median over the steps; `None` if they are not.
fn others_wait_ns(evidence: &RankEvidence<'_>, slow: &SlowRank) -> Option<f64> {
    let in_all_reduce = |at: usize| evidence.median(at, |row| Some(evidence.phase_ns(at, row, ALL_REDUCE)));
    let theirs = median(&mut slow.peers.iter().filter_map(|at| in_all_reduce(*at)).collect::<Vec<f64>>())?;
    Some(theirs - in_all_reduce(slow.at)?).filter(|ns| *ns >= 1.0)
}

fn straggler(evidence: &RankEvidence<'_>, found: &SlowRank) -> Finding {
    let rank = &evidence.ranks.all()[found.at];
    let number = rank.place.rank;
    let (phase, in_phase) = (&found.phase.0, evidence.steps.len().max(1) as f64);
    let finding = slow_finding(evidence, found, FindingKind::Straggler, |facts| {
        let ratio = facts.number(Number::Ratio, found.own_ns / found.peers_ns.max(1.0));
        let more = facts.about(phase, |facts| facts.time(Number::More, found.phase.1 / in_phase));
        format!(
            "rank {number} is a straggler: its steps take {ratio:.2} x as long as its peers', {more} longer in {phase}"
        )
    });
    let work = |at: usize| evidence.median(at, |row| Some(batch_work(row)? as f64));
    let theirs = median(&mut found.peers.iter().filter_map(|at| work(*at)).collect::<Vec<f64>>());
    let host = rank.store.session().info().map(|info| info.host.as_str()).unwrap_or_default();
    let place = match rank.place.device.as_str() {
        "" => host.to_owned(),
        device => format!("{device} on {host}"),
    };
    match work(found.at).zip(theirs.filter(|work| *work > 0.0)).map(|(own, theirs)| own / theirs) {
        Some(ratio) if ratio > 1.0 + EQUAL_WORK => finding
            .with_evidence_from(|facts| {
                let ratio = facts.number(Number::BatchRatio, ratio);
                format!("its batches are {ratio:.2} x as large as on other ranks")
            })
            .with_advice("give every rank batches of equal work: shard by edges, not by nodes or files"),
        Some(_) => finding
            .with_evidence("its batches are as large as on other ranks")
            .with_advice(format!("see what else runs on {place}")),
        None => finding.with_advice(format!("see what else runs on {place}")),
    }
}

fn starved(evidence: &RankEvidence<'_>, found: &SlowRank) -> Finding {
    let all = evidence.ranks.all();
    let number = all[found.at].place.rank;
    let waits = |at: usize| evidence.median(at, |row| Some(evidence.phase_ns(at, row, DATA_WAIT))).unwrap_or(0.0);
    let theirs = median(&mut found.peers.iter().map(|at| waits(*at)).collect::<Vec<f64>>()).unwrap_or(0.0);
    let finding = slow_finding(evidence, found, FindingKind::StarvedRank, |facts| {
        facts.about(DATA_WAIT, |facts| {
            let (own, others) = (facts.time(Number::Usual, waits(found.at)), facts.time(Number::Otherwise, theirs));
            format!(
                "the loader starves rank {number}: it waits {own} a step for data, other ranks {others}, \
                    and all wait for it"
            )
        })
    });
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
    finding.with_advice("see where that rank reads from: its share of the data, its disk, its loader's cores")
}
