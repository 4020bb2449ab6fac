//! Verdict and findings for the same steps, as a running session shows them: one line, and all that it is based on. Also what
//! can be asked about a session or a run, and which steps are looked at for the answer.

use std::fmt;
use std::ops::Range;

use super::bottleneck::Verdict;
use super::evidence::StepEvidence;
use super::finding::{FindingKind, Findings};
use super::headline::{self, HeadlinePart};
use super::ranks::rank_findings;
use super::{bound, checks, stacks};
use crate::figures::duration;
use crate::ranks::Run;
use crate::store::Store;

/// Newest steps that are looked at in a running session: enough for a p99, and some milliseconds of work.
const LIVE_STEPS: u64 = 8192;

/// Verdict and findings for a range of steps. Written out, it is one line: what is wrong, and what bounds the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// What bounds the steps, and how even they are.
    pub verdict: Verdict,
    /// What was found in them, and what could not be looked for.
    pub findings: Findings,
    /// The ordinals of the steps looked at.
    pub ordinals: Range<u64>,
    /// For how long the program went on after the last of them, in nanoseconds, if it has ended by itself and that was long.
    pub after_last_ns: Option<u64>,
}

impl Judgement {
    /// For the kept steps with these ordinals. Takes some milliseconds for 10,000.
    pub fn for_steps(store: &Store, ordinals: Range<u64>) -> Self {
        let evidence = StepEvidence::new(store, ordinals);
        let rows = || evidence.warm_up.iter().chain(&evidence.rows);
        let first = rows().next().map_or(0, |row| row.ordinal());
        let end = rows().next_back().map_or(0, |row| row.ordinal() + 1);
        let verdict = Verdict::from_evidence(&evidence);
        let mut findings = stacks::locate(checks::findings(&evidence), store);
        findings.found.extend(bound::finding(&verdict, &findings, store));
        findings.sort();
        let after_last_ns = store.after_last_step_ns().filter(|_| end == store.steps().total());
        Self { verdict, findings, ordinals: first..end, after_last_ns }
    }

    /// The same, with the findings over the ranks of the run.
    pub fn with_rank_findings(mut self, of_ranks: Findings) -> Self {
        self.findings = self.findings.merge(of_ranks);
        let found = &mut self.findings.found;
        if found.iter().any(|finding| finding.kind == FindingKind::Hang) {
            // Its share is one of the steps before, and most of the time may have passed since.
            found.retain(|finding| finding.kind != FindingKind::Bound);
        }
        self
    }

    /// Number of steps looked at.
    pub fn steps(&self) -> u64 {
        self.ordinals.end.saturating_sub(self.ordinals.start)
    }

    /// The parts of the line, the most important first. At least one.
    pub fn parts(&self) -> Vec<HeadlinePart> {
        // Nothing else matters while there is no progress.
        if let Some(hang) = self.findings.found.iter().find(|finding| finding.kind == FindingKind::Hang) {
            return vec![HeadlinePart { text: hang.summary.clone(), findings: 1 }];
        }
        let mut parts = match self.verdict.is_settled {
            true => headline::parts(&self.verdict, &self.findings.found),
            false => self.verdict.unsettled().into_iter().map(HeadlinePart::note).collect(),
        };
        // No finding, as a program may do anything after its training, and yet a part of the run that the shares leave out.
        let after = self.after_last_ns.map(|ns| HeadlinePart::note(format!("after the last step: {}", duration(ns))));
        let at = parts.len().min(1);
        parts.splice(at..at, after);
        parts
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parts().into_iter().map(|part| part.text).collect::<Vec<String>>().join("; "))
    }
}

/// Verdict and findings for the newest 8,192 steps.
pub fn judge_newest(store: &Store) -> Judgement {
    let end = store.steps().total();
    Judgement::for_steps(store, end.saturating_sub(LIVE_STEPS)..end)
}

/// Verdict and findings for a run now: for the newest steps of the selected rank, and for all ranks.
pub fn judge_run(run: &Run) -> Judgement {
    judge_newest(run.store()).with_rank_findings(rank_findings(&run.ranks()))
}

/// All findings for the steps that the store keeps.
pub fn all_findings(store: &Store) -> Findings {
    findings_in(store, 0..u64::MAX)
}

/// All findings for the kept steps with these ordinals. Signals, counters and marks are looked at over the time of
/// these steps.
pub fn findings_in(store: &Store, ordinals: Range<u64>) -> Findings {
    checks::findings(&StepEvidence::new(store, ordinals))
}

/// The session in one line, from its newest 8,192 steps: what bounds it, what was found, how even its steps are.
pub fn verdict(store: &Store) -> String {
    judge_newest(store).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::finding::{Confidence, Finding};
    use super::*;
    use gnntop_fixtures::{MS, TrainingRun, each_item};

    fn judge(run: &TrainingRun) -> Judgement {
        let mut store = Store::new();
        each_item(&run.bytes(), |item| store.apply(item));
        super::super::judge_newest(&store)
    }

    #[test]
    fn judgement_line_names_listed_findings() {
        let spikes = vec![(30, "backward", 84 * MS), (60, "data wait", 30 * MS), (2, "forward", 900 * MS)];
        let run = TrainingRun { steps: 200, spikes, ..TrainingRun::default() };
        let judgement = judge(&run);
        let text = judgement.to_string();
        assert!(text.starts_with("backward-bound (") && text.contains("; 2 spikes ("), "{text}");
        assert!(text.contains("; 8 partial batches"), "{text}");
        let count = |kind| judgement.findings.found.iter().find(|f| f.kind == kind).map(|f| f.count);
        assert_eq!((count(FindingKind::Spike), count(FindingKind::PartialBatch)), (Some(2), Some(8)));
        assert_eq!((judgement.ordinals.clone(), judgement.steps()), (0..200, 200));
    }

    #[test]
    fn hang_says_all_and_no_phase_takes_most_of_the_time() {
        let kinds =
            |judgement: &Judgement| judgement.findings.found.iter().map(|finding| finding.kind).collect::<Vec<_>>();
        let run = TrainingRun { steps: 200, epoch_steps: 1000, has_hardware: false, ..TrainingRun::default() };
        let judgement = judge(&run);
        assert!(kinds(&judgement).contains(&FindingKind::Bound), "{:?}", judgement.findings.found);
        let hang = Finding::for_run(FindingKind::Hang, Confidence::High, None, |_| "no step for 4 s".to_owned());
        let hung = judgement.with_rank_findings(Findings { found: vec![hang], ..Findings::default() });
        assert_eq!(hung.to_string(), "no step for 4 s");
        assert!(!kinds(&hung).contains(&FindingKind::Bound), "a share of the steps before it");
    }

    #[test]
    fn judgement_of_few_steps_says_only_that() {
        let seven = judge(&TrainingRun { steps: 7, ..TrainingRun::default() }).to_string();
        assert!(seven.starts_with("7 steps; backward-bound (5") && seven.contains("; too few for findings"), "{seven}");
        assert_eq!(judge(&TrainingRun { steps: 0, ..TrainingRun::default() }).ordinals, 0..0);
    }
}
