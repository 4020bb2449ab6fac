//! Uneven batches: in each step another rank has the largest batch and is the slowest, and all others wait for it.

use super::evidence::{RankEvidence, SIZES, Size};
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind};
use crate::findings::number::Number;
use crate::findings::robust::correlation;
use gnntop_wire::Reported;

/// Balanced batches must save this share of the time.
const WORTH_REPORTING: f64 = 0.05;
/// The slowest rank has the largest batch in this share of the steps...
const AGREES: f64 = 0.6;
/// ...and what a rank takes beyond the others' mean follows from its batch.
const FOLLOWS: f64 = 0.5;
/// A rank that is the slowest this often is one by itself: a straggler.
const ALWAYS: f64 = 0.75;
/// Batches differ from their mean by this much at least.
const DIFFER: f64 = 0.01;

/// What it finds in a run.
pub(super) fn check(evidence: &RankEvidence<'_>) -> CheckOutcome {
    let peers = evidence.peers();
    if peers.is_empty() {
        return CheckOutcome::NotEnough("no two ranks do the same work".to_owned());
    }
    if !evidence.has_steps() {
        return evidence.too_few_steps();
    }
    let all = SIZES
        .iter()
        .flat_map(|size| peers.iter().filter_map(move |peers| Some((size.0, Uneven::find(evidence, peers, size)?))));
    let best = all.max_by(|a, b| a.1.correlation.total_cmp(&b.1.correlation));
    best.filter(|(_, uneven)| uneven.is_cause(evidence))
        .map_or(CheckOutcome::Nothing, |(word, uneven)| finding(evidence, word, &uneven).into())
}

/// How ranks that do the same work differ in their batches.
struct Uneven {
    /// Correlation of what a rank takes beyond the mean with what its batch has beyond it.
    correlation: f64,
    /// Share of the steps in which the slowest rank has the largest batch.
    agrees: f64,
    /// Share of the steps in which the same rank is the slowest.
    most_often: f64,
    /// The largest batch as a multiple of the mean, on average.
    largest: f64,
    /// What batches of equal size would save, over all steps.
    saves_ns: f64,
}

impl Uneven {
    /// By this size; `None` if it is not known, or always the same.
    fn find(evidence: &RankEvidence<'_>, peers: &[usize], (_, size): &Size) -> Option<Self> {
        let mut beyond: Vec<Vec<(f64, f64)>> = Vec::new();
        let (mut agrees, mut slowest, mut largest) = (0, vec![0_usize; peers.len()], 0.0);
        for common in &evidence.steps {
            let of = |at: &usize| {
                let row = common.rows[*at].as_ref()?;
                Some((size(evidence.ranks.all()[*at].store, row)? as f64, evidence.own_ns(*at, row)))
            };
            let ranks: Vec<(f64, f64)> = peers.iter().map(of).collect::<Option<_>>()?;
            let mean = |number: fn(&(f64, f64)) -> f64| ranks.iter().map(number).sum::<f64>() / ranks.len() as f64;
            let (size, ns) = (mean(|rank| rank.0), mean(|rank| rank.1));
            let by_size = (0..ranks.len()).max_by(|a, b| ranks[*a].0.total_cmp(&ranks[*b].0))?;
            let by_time = (0..ranks.len()).max_by(|a, b| ranks[*a].1.total_cmp(&ranks[*b].1))?;
            agrees += usize::from(by_size == by_time);
            slowest[by_time] += 1;
            largest += ranks[by_size].0 / size.max(1.0);
            beyond.push(ranks.into_iter().map(|rank| (rank.0 - size, rank.1 - ns)).collect());
        }
        let steps = beyond.len().max(1) as f64;
        let pairs: Vec<(f64, f64)> = beyond.iter().flatten().copied().collect();
        let slope = pairs.iter().map(|(x, y)| x * y).sum::<f64>() / pairs.iter().map(|(x, _)| x * x).sum::<f64>();
        let saves = |ranks: &Vec<(f64, f64)>| {
            let by_size = ranks.iter().map(|(size, _)| size * slope).fold(0.0, f64::max);
            by_size.min(ranks.iter().map(|(_, ns)| *ns).fold(0.0, f64::max))
        };
        Some(Self {
            correlation: correlation(&pairs)?,
            agrees: agrees as f64 / steps,
            most_often: slowest.into_iter().max()? as f64 / steps,
            largest: largest / steps,
            saves_ns: beyond.iter().map(saves).sum(),
        })
        .filter(|found| found.largest >= 1.0 + DIFFER && found.saves_ns.is_finite())
    }

    fn is_cause(&self, evidence: &RankEvidence<'_>) -> bool {
        self.correlation >= FOLLOWS
            && self.agrees >= AGREES
            && self.most_often < ALWAYS
            && evidence.share(self.saves_ns) >= WORTH_REPORTING
    }
}

fn finding(evidence: &RankEvidence<'_>, word: &str, uneven: &Uneven) -> Finding {
    let share = evidence.share(uneven.saves_ns);
    Finding::for_run(FindingKind::UnevenWork, Confidence::High, Some(share), |facts| {
        let (often, share) = (facts.share(Number::OftenLast, uneven.agrees), facts.share(Number::OfTime, share));
        format!(
            "the rank with the most {word} is the slowest in {often} of the steps, and others wait: \
                even batches would save {share} of the time"
        )
    })
    .with_evidence_from(|facts| {
        let ratio = facts.number(Number::BatchRatio, uneven.largest);
        let padded = if word == Reported::Tokens.text() { ", with those that fill up the shorter texts" } else { "" };
        format!("the largest batch of a step has {ratio:.2} x its ranks' mean of {word}{padded}")
    })
    .with_evidence_from(|facts| {
        let r = facts.number(Number::Correlation, uneven.correlation);
        let steps = facts.count(Number::OfSteps, evidence.steps.len() as u64);
        format!("a rank's own work grows with its {word} (r = {r:.2} over {steps} steps); which rank is slow changes")
    })
    .with_advice(format!(
        "give the ranks of a step batches of about as many {word}: sort by size before batching, or fill batches by {word}"
    ))
}

#[cfg(test)]
mod tests {
    use gnntop_fixtures::MS;
    use gnntop_fixtures::uneven::{RankStepPlan, UnevenRun, noisy};

    use super::*;
    use crate::findings::ranks::rank_findings;
    use crate::ranks::fixture::run;

    fn found(work: fn(u32, u64) -> RankStepPlan) -> Vec<Finding> {
        let planned = UnevenRun { work, training_set: None, ..UnevenRun::default() };
        rank_findings(&run(&planned.sessions()).ranks()).found
    }

    /// A backward pass of 20 ms for 512 seeds.
    fn sized(seeds: u64) -> RankStepPlan {
        RankStepPlan { seeds, ..RankStepPlan::with_phase("backward", seeds * 20 * MS / 512) }
    }

    #[test]
    fn uneven_batches_of_changing_ranks_are_found() {
        let found = found(|rank, step| sized(noisy(500, 0.4, u64::from(rank) * 1009 + step * 7919)));
        let [it] = &found[..] else { panic!("{found:#?}") };
        assert_eq!(it.kind, FindingKind::UnevenWork);
        assert!(it.summary.starts_with("the rank with the most seeds is the slowest in "), "{it:#?}");
        assert!((0.05..0.2).contains(&it.share.unwrap()) && it.fact(Number::Correlation) > Some(0.9), "{it:#?}");
    }

    #[test]
    fn texts_are_uneven_by_their_tokens() {
        let work: fn(u32, u64) -> RankStepPlan = |rank, step| {
            let tokens = noisy(4000, 0.4, u64::from(rank) * 1009 + step * 7919);
            RankStepPlan { tokens: Some(tokens), ..RankStepPlan::with_phase("backward", tokens * 20 * MS / 4000) }
        };
        let found = found(work);
        let [it] = &found[..] else { panic!("{found:#?}") };
        assert_eq!(it.kind, FindingKind::UnevenWork);
        assert!(it.summary.starts_with("the rank with the most tokens is the slowest in "), "{it:#?}");
        assert!(it.evidence[0].contains("tokens, with those that fill"), "{it:#?}");
    }

    #[test]
    fn ranks_that_are_slow_by_themselves_and_small_differences_are_none() {
        let is_found = |work| found(work).iter().any(|finding| finding.kind == FindingKind::UnevenWork);
        assert!(!is_found(|rank, step| sized(512 + (u64::from(rank) + step) % 4 * 8)), "too little");
        assert!(!is_found(|rank, _| sized(if rank == 1 { 800 } else { 500 })), "a straggler");
        let unrelated: fn(u32, u64) -> RankStepPlan = |rank, step| RankStepPlan {
            seeds: noisy(500, 0.4, u64::from(rank) * 1009 + step * 7919),
            ..RankStepPlan::with_phase("backward", if u64::from(rank) == step % 4 { 40 * MS } else { 20 * MS })
        };
        assert!(!is_found(unrelated), "slow for another reason");
    }
}
