//! Verdict and findings for the same steps, as a running session shows them: one line, and all that it is based on. Also what
//! can be asked about a session or a run, and which steps are looked at for the answer.

use std::fmt;
use std::ops::Range;

use super::bottleneck::Verdict;
use super::evidence::StepEvidence;
use super::finding::{Finding, FindingKind, Findings, Severity};
use super::ranks::rank_findings;
use super::{bound, checks, stacks};
use crate::figures::{counted, percent};
use crate::ranks::Run;
use crate::store::Store;

/// Kinds of findings that the line mentions.
const KINDS_NAMED: usize = 4;
/// Shares that differ by no more than this are taken for the same.
const ABOUT_THE_SAME: f64 = 0.01;
/// Kinds that make every phase longer.
const LENGTHENS_ALL: [FindingKind; 2] = [FindingKind::Contention, FindingKind::Interpreter];
/// The larger part of the time.
const MOSTLY: f64 = 0.5;
/// Newest steps that are looked at in a running session: enough for a p99, and some milliseconds of work.
const LIVE_STEPS: u64 = 8192;

/// Verdict and findings for a range of steps. Written out, it is one line: what bounds the run, then the most severe
/// findings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// What bounds the steps, and how even they are.
    pub verdict: Verdict,
    /// What was found in them, and what could not be looked for.
    pub findings: Findings,
    /// The ordinals of the steps looked at.
    pub ordinals: Range<u64>,
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
        findings.found.extend(bound::finding(&verdict, &findings.found, store.session().settings()));
        findings.sort();
        Self { verdict, findings, ordinals: first..end }
    }

    /// The same, with the findings over the ranks of the run.
    pub fn with_rank_findings(mut self, of_ranks: Findings) -> Self {
        self.findings = self.findings.merge(of_ranks);
        self
    }

    /// Number of steps looked at.
    pub fn steps(&self) -> u64 {
        self.ordinals.end.saturating_sub(self.ordinals.start)
    }

    /// The parts of the line: what bounds the run, the most severe findings, how even steps are. At least one.
    pub fn parts(&self) -> Vec<String> {
        // Nothing else matters while there is no progress.
        if let Some(hang) = self.findings.found.iter().find(|finding| finding.kind == FindingKind::Hang) {
            return vec![hang.summary.clone()];
        }
        if !self.verdict.is_settled {
            return self.verdict.unsettled();
        }
        let mut kinds: Vec<&Finding> = Vec::new();
        for finding in self.findings.found.iter().filter(|finding| self.is_worth_naming(finding)) {
            if !kinds.iter().any(|named| named.kind == finding.kind) {
                kinds.push(finding);
            }
        }
        // If the CPU or the interpreter is taken away most of the time, that leads: all phases are longer than the program makes them.
        let bound = self.verdict.bound.as_ref().map_or(0.0, |(_, share)| *share);
        let leads = |finding: &&Finding| {
            LENGTHENS_ALL.contains(&finding.kind) && finding.share.is_some_and(|share| share > bound.min(MOSTLY))
        };
        let cause = kinds.iter().position(leads).map(|at| kinds.remove(at));
        let mut parts: Vec<String> = cause.into_iter().map(named).collect();
        parts.extend(self.verdict.shares());
        parts.extend(self.verdict.without());
        parts.extend(kinds.iter().take(KINDS_NAMED).map(|finding| named(finding)));
        parts.extend((kinds.len() > KINDS_NAMED).then(|| format!("and {} more findings", kinds.len() - KINDS_NAMED)));
        parts.extend(self.verdict.spread());
        parts
    }

    /// Whether a finding costs time that the shares of data wait and gap do not show already. Partial batches and kinds
    /// of steps cost none, but without knowing of them the numbers are misread.
    fn is_worth_naming(&self, finding: &Finding) -> bool {
        match finding.kind {
            FindingKind::DataBound => {
                finding.share.is_none_or(|share| share > self.verdict.shown_data_wait() + ABOUT_THE_SAME)
            }
            FindingKind::Gap => !self.verdict.includes_gap(),
            FindingKind::PartialBatch | FindingKind::StepKinds => true,
            _ => finding.severity > Severity::Note,
        }
    }
}

/// A finding in the line: its count or subject, and the share of the time that it costs.
fn named(finding: &Finding) -> String {
    match (finding.kind, finding.share) {
        (FindingKind::Spike, Some(share)) => {
            format!("{} ({})", counted(finding.count, "spike", "spikes"), percent(share))
        }
        (FindingKind::Contention, Some(share)) => {
            format!("{} ({}, in all phases)", finding.kind.title(), percent(share))
        }
        (FindingKind::PartialBatch, _) => counted(finding.count, "partial batch", "partial batches"),
        (FindingKind::StepKinds, _) => counted(finding.count, "kind of step", "kinds of step"),
        (kind, Some(share)) => format!("{} ({})", kind.title(), percent(share)),
        (kind, None) => kind.title().to_owned(),
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parts().join("; "))
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
        assert!(text.contains("; 2 spikes ("), "{text}");
        assert!(text.contains("; 8 partial batches; "), "{text}");
        let count = |kind| judgement.findings.found.iter().find(|f| f.kind == kind).map(|f| f.count);
        assert_eq!((count(FindingKind::Spike), count(FindingKind::PartialBatch)), (Some(2), Some(8)));
        assert_eq!((judgement.ordinals.clone(), judgement.steps()), (0..200, 200));
    }

    #[test]
    fn judgement_line_is_bounded_without_repeats() {
        let mut judgement = judge(&TrainingRun { steps: 200, ..TrainingRun::default() });
        assert_eq!(judgement.verdict.shares().len(), 3, "bound, data wait, gap");
        let made_up = |kind| Finding::for_run(kind, super::super::Confidence::High, Some(0.1), |_| String::new());
        let others = FindingKind::ALL.iter().filter(|kind| **kind != FindingKind::Hang);
        judgement.findings.found = others.flat_map(|kind| [made_up(*kind), made_up(*kind)]).collect();
        let parts = judgement.parts();
        assert!(parts.len() <= 3 + KINDS_NAMED + 2, "{parts:?}");
        // All kinds except the hang, data wait and gap.
        let not_named = FindingKind::ALL.len() - 3 - KINDS_NAMED;
        assert!(parts.contains(&format!("and {not_named} more findings")), "{parts:?}");
        assert!(!parts.iter().any(|part| part.contains("waiting for data")), "{parts:?}");
        let hang = Finding { summary: "no progress for 4 s".to_owned(), ..made_up(FindingKind::Hang) };
        judgement.findings.found.push(hang);
        assert_eq!(judgement.parts(), ["no progress for 4 s"], "and nothing else");
    }

    #[test]
    fn judgement_of_few_steps_says_only_that() {
        let seven = judge(&TrainingRun { steps: 7, ..TrainingRun::default() }).to_string();
        assert!(seven.starts_with("7 steps; backward-bound (5") && seven.contains("; too few for findings"), "{seven}");
        assert_eq!(judge(&TrainingRun { steps: 0, ..TrainingRun::default() }).ordinals, 0..0);
    }
}
