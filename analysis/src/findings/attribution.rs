//! Counts no time twice: time that two findings claim goes to the cause, and the symptom keeps the rest.
//!
//! ```text
//!            step 41                 step 42
//!  forward   ████████ spike takes 40 ms   ████
//!  data wait ██ data-bound takes this row █████
//! ```
//!
//! Each finding states the time it is about as a [`Claim`]. Claims are served in the order of [`CAUSES_FIRST`], and
//! each gets what the earlier ones have left.

use super::claim::{Claim, StepCost};
use super::evidence::StepEvidence;
use super::finding::{Finding, FindingKind, REPEATS, Severity};
use super::number::Number;
use crate::store::PhaseSlot;

/// The kinds that claim time, causes before what they cause.
const CAUSES_FIRST: [FindingKind; 17] = [
    FindingKind::Contention,
    FindingKind::Recompilation,
    FindingKind::PageFaults,
    FindingKind::Denormals,
    FindingKind::Stall,
    FindingKind::AfterCheckpoint,
    FindingKind::GpuAllocator,
    FindingKind::TinyBatch,
    FindingKind::DataBound,
    FindingKind::Validation,
    FindingKind::IdlePhase,
    FindingKind::Gap,
    FindingKind::Spike,
    FindingKind::AllocationChurn,
    FindingKind::Drift,
    FindingKind::SlowerSince,
    FindingKind::SlowRhythm,
];
/// A smaller share of the time is not reported.
const WORTH_REPORTING: f64 = 0.005;

/// Gives each finding the share of the time that no earlier finding has claimed.
pub(super) fn attribute(found: &mut [Finding], evidence: &StepEvidence<'_>) {
    let mut claims: Vec<(usize, Claim)> =
        found.iter_mut().enumerate().filter_map(|(at, finding)| Some((at, finding.claim.take()?))).collect();
    if claims.len() < 2 {
        return;
    }
    claims.sort_by_key(|(at, claim)| rank(found[*at].kind, claim));
    let mut ledger = Ledger::new(evidence);
    for (nth, (at, claim)) in claims.iter().enumerate() {
        let (left_ns, owners) = ledger.claim(claim, nth, evidence);
        let causes = claims[..nth].iter().enumerate().filter(|(cause, _)| owners & bit(*cause) != 0);
        let mut causes: Vec<&str> = causes.map(|(_, (cause, _))| found[*cause].kind.title()).collect();
        causes.dedup();
        let causes = causes.join(", ");
        keep_share(&mut found[*at], evidence.share(left_ns), &causes, matches!(claim, Claim::Phases(_)));
    }
}

/// Whose turn it is to claim.
fn rank(kind: FindingKind, claim: &Claim) -> usize {
    let kind = match (kind, claim) {
        // Where the waits for a CPU were not measured, steps that are preempted are longer for all that is counted in them, too.
        (FindingKind::Contention, Claim::Steps(_)) => FindingKind::AfterCheckpoint,
        // One that is no phase has waits and gaps in it.
        (FindingKind::Validation, Claim::Steps(_)) => FindingKind::AfterCheckpoint,
        _ => kind,
    };
    CAUSES_FIRST.iter().position(|first| *first == kind).unwrap_or(CAUSES_FIRST.len())
}

/// Leaves a finding this share of the time if it has claimed more. A whole phase keeps its share, which is that of the
/// tables and of the verdict; its evidence says how much of it is counted elsewhere.
fn keep_share(finding: &mut Finding, left: f64, causes: &str, is_phase: bool) {
    let Some(told) = finding.share else { return };
    if told - left < WORTH_REPORTING || causes.is_empty() {
        return;
    }
    let is_repeated = left < REPEATS * told;
    if is_repeated || !is_phase {
        finding.share = Some(left);
    }
    if finding.severity > Severity::Note {
        finding.severity = if is_repeated { Severity::Note } else { finding.severity.min(Severity::from_share(left)) };
    }
    if is_repeated {
        // What helps against its causes helps against it.
        finding.advice = vec![format!("see to {causes} first")];
    }
    finding.add_evidence(|facts| {
        let share = facts.share(Number::CountedElsewhere, told - left);
        let how_much = match (is_repeated, is_phase) {
            (true, _) => "all of it".to_owned(),
            (_, true) => format!("of this, {share} of the time"),
            _ => share.to_string(),
        };
        [format!("{how_much} is already counted under {causes}")]
    });
}

/// The time of all rows that is not claimed yet.
struct Ledger {
    /// For each row: the time left of each phase, by its slot, and of the gap, which comes last.
    left_ns: Vec<f32>,
    slots: Vec<PhaseSlot>,
    /// For each row: which claims have taken time of it, a bit each.
    owners: Vec<u32>,
    /// What is left (0 to 1) of every time after the claims on a share of every step.
    left_of_all: f64,
}

impl Ledger {
    fn new(evidence: &StepEvidence<'_>) -> Self {
        let mut slots: Vec<PhaseSlot> = evidence.store.phases().iter().map(|phase| phase.slot).collect();
        slots.sort_unstable();
        let left_ns =
            evidence.timed.iter().flat_map(|row| slots.iter().map(|slot| row.phase_ns(*slot) as f32)).collect();
        Self { left_ns, slots, owners: vec![0; evidence.rows.len()], left_of_all: 1.0 }
    }

    /// Takes what is left of a claim: how much that is, and which earlier claims have taken time of the same steps.
    fn claim(&mut self, claim: &Claim, nth: usize, evidence: &StepEvidence<'_>) -> (f64, u32) {
        let mut owners = 0;
        let mut taken_ns = 0.0;
        let rows = self.owners.len();
        match claim {
            Claim::Phases(slots) => {
                let is_claimed: Vec<bool> = self.slots.iter().map(|known| slots.contains(known)).collect();
                for row in 0..rows {
                    for place in (0..is_claimed.len()).filter(|place| is_claimed[*place]) {
                        taken_ns += f64::from(std::mem::take(&mut self.left_ns[row * is_claimed.len() + place]));
                    }
                    owners |= self.mark_claimed(row, nth);
                }
            }
            Claim::Everywhere(share) => {
                let share = share.clamp(0.0, 1.0);
                for left in &mut self.left_ns {
                    taken_ns += f64::from(*left) * share;
                    *left *= (1.0 - share) as f32;
                }
                self.left_of_all *= 1.0 - share;
                owners = (0..rows).fold(0, |owners, row| owners | self.mark_claimed(row, nth));
            }
            Claim::Steps(costs) => {
                for cost in costs {
                    taken_ns += self.claim_step(cost, evidence.between_ns[cost.row]);
                    owners |= self.mark_claimed(cost.row, nth);
                }
            }
        }
        (taken_ns, owners)
    }

    /// Time lost between steps comes from the gap, time lost inside from the phases, the largest first. If that is too
    /// little, the other side gives the rest. What the step takes without it is no part of what it takes beyond that.
    fn claim_step(&mut self, cost: &StepCost, between_ns: f64) -> f64 {
        let row = &mut self.left_ns[cost.row * self.slots.len()..(cost.row + 1) * self.slots.len()];
        let gap = row.len() - 1;
        let mut order: Vec<usize> = (0..gap).collect();
        order.sort_by(|a, b| row[*b].total_cmp(&row[*a]));
        order.insert(if cost.is_inside { gap } else { 0 }, gap);
        let mut cost_ns = cost.ns.max(0.0) * self.left_of_all;
        if let Some(without_ns) = cost.without_ns.filter(|_| cost.is_inside) {
            let phases_ns: f64 = row[..gap].iter().map(|left| f64::from(*left)).sum();
            let inside_ns = phases_ns + (f64::from(row[gap]) - self.left_of_all * between_ns).max(0.0);
            cost_ns = cost_ns.min((inside_ns - self.left_of_all * without_ns).max(0.0));
        }
        let mut wanted = cost_ns;
        for place in order {
            let taken = wanted.min(f64::from(row[place]));
            row[place] -= taken as f32;
            wanted -= taken;
        }
        cost_ns - wanted
    }

    /// Notes that a claim takes time of a row, and returns the earlier claims on that row.
    fn mark_claimed(&mut self, row: usize, nth: usize) -> u32 {
        let before = self.owners[row];
        self.owners[row] |= bit(nth);
        before
    }
}

/// The bit of a claim; none beyond the first 32, which are never named as causes.
fn bit(nth: usize) -> u32 {
    u32::try_from(nth).ok().and_then(|nth| 1_u32.checked_shl(nth)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::bit;

    #[test]
    fn bit_beyond_32_claims_is_zero() {
        assert_eq!([0, 31, 32, 40, usize::MAX].map(bit), [1, 1 << 31, 0, 0, 0]);
    }
}
