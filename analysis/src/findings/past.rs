//! What was certain a while ago, so that a finding does not vanish without notice.

use super::finding::{Confidence, EndedFinding, Finding, Findings, Severity};

/// Past findings that are still listed.
const MAX_LISTED: usize = 8;

/// What was certain at the last look, and at earlier ones since the session has been watched.
#[derive(Debug, Default)]
pub(super) struct FindingHistory {
    certain: Vec<EndedFinding>,
    over: Vec<EndedFinding>,
}

impl FindingHistory {
    /// Adds to the findings those that were certain before and are gone. `newest_step` is the newest step looked at.
    pub(super) fn follow(&mut self, findings: &mut Findings, newest_step: u64) {
        let is_there = |over: &EndedFinding| findings.found.iter().any(|finding| finding.kind == over.finding.kind);
        self.over.retain(|over| !is_there(over));
        for was in self.certain.drain(..).filter(|was| !is_there(was)) {
            if !self.over.iter().any(|over| over.finding.kind == was.finding.kind) {
                self.over.insert(0, was);
            }
        }
        self.over.truncate(MAX_LISTED);
        let is_certain =
            |finding: &&Finding| finding.confidence == Confidence::High && finding.severity > Severity::Note;
        let certain = findings.found.iter().filter(is_certain);
        self.certain =
            certain.map(|finding| EndedFinding { finding: without_places(finding), last_step: newest_step }).collect();
        findings.over.clone_from(&self.over);
    }
}

fn without_places(finding: &Finding) -> Finding {
    let Finding { kind, severity, confidence, share, count, ref facts, .. } = *finding;
    let (summary, evidence, advice) = (finding.summary.clone(), finding.evidence.clone(), finding.advice.clone());
    Finding {
        count,
        severity,
        facts: facts.clone(),
        evidence,
        advice,
        ..Finding::for_run(kind, confidence, share, |_| summary)
    }
}
