//! Steps that findings point to, with their phases.

use super::phases::PhaseLine;
use crate::report::document::{Block, StepNote};
use crate::report::pictures::shares;
use gnntop_analysis::figures::duration;
use gnntop_analysis::findings::{Finding, FindingKind, Findings};
use gnntop_analysis::store::Store;

/// Steps that a finding points to, its longest places first.
const OF_A_FINDING: usize = 3;
/// Steps in all.
const MOST: usize = 24;
/// Rows that are searched for a place's longest step.
const SEARCHED: u64 = 4096;

/// A step that a finding points to.
#[derive(Clone, Debug, PartialEq)]
pub struct FindingStep {
    /// Its row in the step table.
    pub ordinal: u64,
    /// Its number, as the program counts.
    pub step: u64,
    /// From the end of the step before to its own end.
    pub period_ns: u64,
    /// Its phases in the report's order, with the gap.
    pub parts_ns: Vec<u64>,
    /// What was found there, with its kind.
    pub found: Vec<(FindingKind, String)>,
}

/// The steps that findings point to, those of the weightiest finding first.
pub(in crate::report) fn finding_steps(store: &Store, findings: &Findings) -> Vec<FindingStep> {
    let mut all: Vec<FindingStep> = Vec::new();
    for finding in &findings.found {
        for (ordinal, sentence) in places(store, finding) {
            let found = (finding.kind, sentence);
            match all.iter().position(|step| step.ordinal == ordinal) {
                Some(at) => all[at].found.push(found),
                None if all.len() < MOST => all.extend(step(store, ordinal, found)),
                None => (),
            }
        }
    }
    all
}

/// The longest step of each of a finding's longest places, with what happened there.
fn places(store: &Store, finding: &Finding) -> Vec<(u64, String)> {
    let longest = finding.longest_places().into_iter().take(OF_A_FINDING);
    let worst = |ordinals: &std::ops::Range<u64>| {
        let searched = ordinals.start..ordinals.end.min(ordinals.start.saturating_add(SEARCHED));
        let row = store.steps().rows(searched).max_by_key(|row| row.period_ns());
        row.map(|row| row.ordinal())
    };
    longest.filter_map(|place| Some((worst(&place.ordinals)?, place.sentence.clone()))).collect()
}

fn step(store: &Store, ordinal: u64, found: (FindingKind, String)) -> Option<FindingStep> {
    let row = store.steps().row(ordinal)?;
    Some(FindingStep {
        ordinal,
        step: row.step().0,
        period_ns: row.period_ns(),
        parts_ns: store.phases().iter().map(|phase| row.phase_ns(phase.slot)).collect(),
        found: vec![found],
    })
}

/// Where a document has the step. `run` distinguishes the anchors of several recordings.
pub(super) fn anchor(run: &str, step: &FindingStep) -> String {
    format!("{run}step-{}", step.ordinal)
}

/// The steps; nothing if there are none. `parts` are the names of their parts, `lines` have the median period.
pub(in crate::report) fn blocks(noted: &[FindingStep], parts: &[String], lines: &[PhaseLine], run: &str) -> Vec<Block> {
    let period = lines.iter().find(|line| line.name == "period");
    let median = period.and_then(|line| line.durations.percentiles.0.iter().find(|(p, _)| *p == 50.0)?.1);
    let note = |step: &FindingStep| StepNote {
        anchor: anchor(run, step),
        title: format!("Step {}", step.step),
        time: match median.filter(|median| *median > 0) {
            Some(median) => {
                format!("{}, {:.1} x the median", duration(step.period_ns), step.period_ns as f64 / median as f64)
            }
            None => duration(step.period_ns),
        },
        picture: shares::step_shares(parts, &step.parts_ns, 1.0),
        sentences: step.found.iter().map(|(kind, text)| format!("{}: {text}", kind.title())).collect(),
    };
    if noted.is_empty() {
        return Vec::new();
    }
    vec![Block::heading("Steps to look at"), Block::Steps(noted.iter().map(note).collect())]
}
