//! A rank that is usually slower than its peers: which one, in which phases, and by how much.
//!
//! Ranks of the same stage are compared, step by step, by their own work: what they wait for is the work of others. What makes
//! the rank slow is a [straggler's](super::straggler) or a [starved rank's](super::starved_rank) finding.

use gnntop_wire::phase::{ALL_REDUCE, LOADING, RECEIVE, SEND, TRANSFER};

use super::evidence::{RankEvidence, SIZES, Size};
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::hardware;
use crate::findings::number::Number;
use crate::findings::robust::median;
use crate::findings::stated_numbers::StatedNumbers;

/// A rank is slow in a step if it takes this many times as long as its peers...
const SLOW: f64 = 1.1;
/// ...and usually slow if it is in this share of the steps.
const AGAIN: f64 = 0.6;
/// A cost below this share of the time is not a finding.
const WORTH_REPORTING: f64 = 0.03;
/// Cores that other programs use at least, if they slow a rank, and the most of its core that they can take.
const OTHERS: f64 = 0.1;
const MOST_TAKEN: f64 = 0.9;
/// One phase, or the input, explains a rank that takes this share of its excess there...
const MOSTLY: f64 = 0.5;
/// ...unless the rest of its work is slower too, by more than this part of what that phase is.
const ALIKE: f64 = 1.0 / 3.0;

/// The findings about slow ranks that are `is_mine`.
pub(super) fn outcome(
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
    let (by_others, by_itself): (Vec<SlowRank>, Vec<SlowRank>) =
        slow.partition(|slow| slow.is_slowed_by_others(evidence));
    match by_others.first() {
        Some(slow) if by_itself.is_empty() => slow.too_few_cores(evidence),
        _ => by_itself.iter().map(|slow| finding(evidence, slow)).collect::<Vec<Finding>>().into(),
    }
}

/// A rank that is usually slow.
pub(super) struct SlowRank {
    /// Its index among all ranks.
    pub at: usize,
    pub peers: Vec<usize>,
    /// Share of the steps in which it is slow.
    steps: f64,
    /// Median of its own work in a step.
    pub own_ns: f64,
    /// Its peers' work.
    pub peers_ns: f64,
    /// How much longer it takes than its peers, over all steps.
    excess_ns: f64,
    /// The phases of its own work and the gap, the one in which it takes longest beyond its peers first.
    pub phases: Vec<SlowPhase>,
}

/// What a slow rank does in one phase, or in the gap.
pub(super) struct SlowPhase {
    pub text: String,
    /// How much longer it takes there than its peers, over all steps.
    pub excess_ns: f64,
    /// What its peers take there, over all steps.
    peers_ns: f64,
    /// Whether it gets its batches there.
    pub is_input: bool,
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
        let phases = slow_phases(evidence, at, &others);
        let (own_ns, peers_ns) = (median(&mut own)?, median(&mut theirs)?);
        Some(Self { at, peers: others, steps, own_ns, peers_ns, excess_ns, phases })
    }

    /// Whether it mostly takes longer to get its batches.
    pub(super) fn is_starved(&self) -> bool {
        let input = self.phases.iter().filter(|phase| phase.is_input);
        input.map(|phase| phase.excess_ns).sum::<f64>() >= MOSTLY * self.excess_ns
    }

    /// The phase that explains it, where the rest of its work is hardly slower: what slows a whole machine slows all of it.
    pub(super) fn explained_by(&self) -> Option<&SlowPhase> {
        let first = self.phases.first().filter(|phase| phase.excess_ns >= MOSTLY * self.excess_ns)?;
        let others_ns: f64 = self.phases.iter().skip(1).map(|phase| phase.peers_ns).sum();
        let slower = first.excess_ns / first.peers_ns.max(1.0);
        let others_slower = (self.excess_ns - first.excess_ns) / others_ns.max(1.0);
        (others_slower <= ALIKE * slower).then_some(first)
    }

    /// Whether other programs can be what slows it: the machine's cores are all in use, they have some, and all of the rank's work
    /// is slower, by no more than if these were taken from the core that it is on.
    fn is_slowed_by_others(&self, evidence: &RankEvidence<'_>) -> bool {
        let ratio = self.own_ns / self.peers_ns.max(1.0);
        let slowed = |others: f64| others >= OTHERS && ratio <= 1.0 / (1.0 - others.min(MOST_TAKEN));
        self.explained_by().is_none() && evidence.cores_of_others(self.at).is_some_and(slowed)
    }

    fn too_few_cores(&self, evidence: &RankEvidence<'_>) -> CheckOutcome {
        let (rank, ratio) = (evidence.ranks.all()[self.at].place.rank, self.own_ns / self.peers_ns.max(1.0));
        let others = evidence.cores_of_others(self.at).unwrap_or(0.0);
        CheckOutcome::NotEnough(format!(
            "rank {rank} takes {ratio:.2} x as long as its peers, which other programs can cause: no core is free, and they use {others:.2}"
        ))
    }

    /// How many times as large its batches are as other ranks', by what differs most, with its word; `None` if unknown.
    pub(super) fn batch_ratio(&self, evidence: &RankEvidence<'_>) -> Option<(&'static str, f64)> {
        let ratio = |(word, size): &Size| {
            let store = |at: usize| evidence.ranks.all()[at].store;
            let usual = |at: usize| evidence.median(at, |row| Some(size(store(at), row)? as f64));
            let theirs = median(&mut self.peers.iter().filter_map(|at| usual(*at)).collect::<Vec<f64>>());
            Some((*word, usual(self.at)? / theirs.filter(|size| *size > 0.0)?))
        };
        SIZES.iter().filter_map(ratio).max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// What all findings about it begin with.
    pub(super) fn finding(
        &self,
        evidence: &RankEvidence<'_>,
        kind: FindingKind,
        summary: impl FnOnce(&mut StatedNumbers) -> String,
    ) -> Finding {
        let rank = evidence.ranks.all()[self.at].place.rank;
        let share = evidence.share(self.excess_ns);
        let finding = Finding::for_run(kind, Confidence::High, Some(share), |facts| {
            facts.count(Number::Rank, rank.into());
            summary(facts)
        });
        finding
            .with_evidence_from(|facts| {
                let often = facts.share(Number::OftenSlow, self.steps);
                let steps = facts.count(Number::OfSteps, evidence.steps.len() as u64);
                let (own, others) =
                    (facts.time(Number::Usual, self.own_ns), facts.time(Number::Otherwise, self.peers_ns));
                format!("rank {rank} is slow in {often} of {steps} steps: work without communication: {own}, the median; other ranks {others}")
            })
            .with_evidence_lines(|facts| {
                let wait = facts.time(Number::OthersWait, self.others_wait_ns(evidence)?);
                Some(format!("other ranks are in all-reduce {wait} longer than rank {rank}"))
            })
    }

    /// How much longer the peers are in the all-reduce, median over the steps; `None` if they are not.
    fn others_wait_ns(&self, evidence: &RankEvidence<'_>) -> Option<f64> {
        let in_all_reduce = |at: usize| evidence.median(at, |row| Some(evidence.phase_ns(at, row, ALL_REDUCE)));
        let theirs = median(&mut self.peers.iter().filter_map(|at| in_all_reduce(*at)).collect::<Vec<f64>>())?;
        Some(theirs - in_all_reduce(self.at)?).filter(|ns| *ns >= 1.0)
    }
}

/// What a rank takes longer for than others, the most first.
fn slow_phases(evidence: &RankEvidence<'_>, at: usize, others: &[usize]) -> Vec<SlowPhase> {
    let store = evidence.ranks.all()[at].store;
    let copies_wait = evidence.span_ns(at).is_some_and(|span| hardware::copies_wait_for_device(store, &span));
    let names = store.phases().iter().map(|phase| phase.text.as_str());
    let own = names.filter(|name| ![ALL_REDUCE, RECEIVE, SEND].contains(name));
    let phase = |text: &str| {
        let in_step = evidence.steps.iter().filter_map(|common| {
            let of = |at: usize| Some(evidence.phase_ns(at, common.rows[at].as_ref()?, text));
            let theirs = median(&mut others.iter().filter_map(|other| of(*other)).collect::<Vec<f64>>())?;
            Some((of(at)? - theirs, theirs))
        });
        let (excess_ns, peers_ns) = in_step.fold((0.0, 0.0), |sum, step| (sum.0 + step.0, sum.1 + step.1));
        let is_input = LOADING.contains(&text) || text == TRANSFER && !copies_wait;
        SlowPhase { text: text.to_owned(), excess_ns, peers_ns, is_input }
    };
    let mut phases: Vec<SlowPhase> = own.map(phase).collect();
    phases.sort_by(|a, b| b.excess_ns.total_cmp(&a.excess_ns));
    phases
}
