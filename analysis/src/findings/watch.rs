//! Findings of a running session, updated again and again at a bounded cost. One that was certain does not vanish without
//! notice.

use std::time::{Duration, Instant};

use super::finding::{Confidence, EndedFinding, Finding, FindingKind, Findings, Severity};
use super::judgement::{Judgement, judge_run};
use crate::ranks::Run;

/// The pause between two looks is this many times as long as the last look took: at most 1 % of a core.
const REST: u32 = 99;
/// More frequent looks are of no use.
const SHORTEST_REST: Duration = Duration::from_millis(250);
/// The same while no step ends: new sensor readings alone rarely change the findings about earlier steps.
const REST_WITHOUT_STEP: u32 = 299;
/// Even then there is another look after this time.
const LONGEST_REST_WITHOUT_STEP: Duration = Duration::from_secs(2);
/// Past findings that are still listed.
const MAX_LISTED: usize = 8;

/// Keeps the findings of a run at most some seconds old, for at most 1 % of a core.
#[derive(Debug, Default)]
pub struct Watch {
    /// The run's, when it was looked at.
    revision: Option<(Option<u32>, u64)>,
    /// How many of its steps had ended by then.
    steps: u64,
    next: Option<Instant>,
    /// The same while no step ends.
    next_without_step: Option<Instant>,
    history: FindingHistory,
}

impl Watch {
    /// One that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks at the newest 8,192 steps again if there is anything new and it is time.
    pub fn update(&mut self, run: &Run) -> Option<Judgement> {
        let begin = Instant::now();
        // A hang shows precisely because no step ends.
        let is_of_old_steps = self.steps == run.store().steps().total() && !run.is_parallel();
        let next = if is_of_old_steps { self.next_without_step } else { self.next };
        if self.revision == Some(run.revision()) || next.is_some_and(|next| begin < next) {
            return None;
        }
        let judgement = self.judge(run);
        let (end, took) = (Instant::now(), begin.elapsed());
        let rest = (took * REST).max(SHORTEST_REST);
        let longer = (took * REST_WITHOUT_STEP).min(LONGEST_REST_WITHOUT_STEP);
        (self.next, self.next_without_step) = (Some(end + rest), Some(end + rest.max(longer)));
        Some(judgement)
    }

    /// Looks at once, whatever it costs: after a jump in a recording the earlier findings are not the past.
    pub fn check_now(&mut self, run: &Run) -> Judgement {
        self.history = FindingHistory::default();
        self.judge(run)
    }

    fn judge(&mut self, run: &Run) -> Judgement {
        self.revision = Some(run.revision());
        self.steps = run.store().steps().total();
        let mut judgement = judge_run(run);
        let newest = run.store().steps().last().map_or(0, |row| row.step().0);
        self.history.follow(&mut judgement.findings, newest);
        judgement
    }
}

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
        // A hang is over with the next step: where none came, the program has ended instead.
        let is_over = |was: &EndedFinding| {
            !is_there(was) && (was.finding.kind != FindingKind::Hang || was.last_step != newest_step)
        };
        for was in self.certain.drain(..).filter(is_over) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_fixtures::{MS, TrainingRun, each_item};

    #[test]
    fn certain_finding_is_reported_as_over() {
        let mut run = Run::default();
        let mut watch = Watch::new();
        let spiky = TrainingRun { spikes: vec![(40, "forward", 100 * MS)], ends: false, ..TrainingRun::default() };
        each_item(&spiky.bytes(), |item| run.apply(item));
        let kind_of = |judgement: &Judgement| judgement.findings.found.iter().any(|f| f.kind == FindingKind::Spike);
        assert!(kind_of(&watch.update(&run).unwrap()));
        run = Run::default();
        each_item(&TrainingRun { steps: 120, ..TrainingRun::default() }.bytes(), |item| run.apply(item));
        watch.next = None;
        let later = watch.update(&run).unwrap();
        assert!(!kind_of(&later));
        let [over] = later.findings.over.as_slice() else { panic!("{:?}", later.findings.over) };
        assert_eq!((over.finding.kind, over.last_step), (FindingKind::Spike, 100));
        assert!(over.finding.summary.starts_with("step 40 took"), "{}", over.finding.summary);
        assert_eq!(watch.check_now(&run).findings.over, [], "after a jump there is no past");
    }

    #[test]
    fn hang_after_which_no_step_came_is_not_over() {
        let hang =
            || Finding::for_run(FindingKind::Hang, Confidence::High, Some(1.0), |_| "no step for 7 s".to_owned());
        let over_at = |step| {
            let mut history = FindingHistory::default();
            history.follow(&mut Findings { found: vec![hang()], ..Findings::default() }, 200);
            let mut later = Findings::default();
            history.follow(&mut later, step);
            later.over.len()
        };
        assert_eq!((over_at(200), over_at(201)), (0, 1), "it ended, or went on");
    }

    #[test]
    fn watch_checks_on_new_steps_and_pauses() {
        let mut run = Run::default();
        let mut watch = Watch::new();
        assert!(watch.update(&run).is_some(), "at first");
        assert!(watch.update(&run).is_none(), "nothing new");
        each_item(&TrainingRun::default().bytes(), |item| run.apply(item));
        watch.next = Some(Instant::now() + Duration::from_secs(3600));
        assert!(watch.update(&run).is_none(), "it rests");
        assert_eq!(watch.check_now(&run), judge_run(&run), "but not after a jump");
        watch.next = None;
        assert!(watch.update(&run).is_none(), "that was all there is");
    }

    #[test]
    fn watch_pauses_longer_without_new_step() {
        let mut run = Run::default();
        let mut watch = Watch::new();
        let steps = |steps| TrainingRun { steps, ends: false, ..TrainingRun::default() }.bytes();
        each_item(&steps(20), |item| run.apply(item));
        assert!(watch.update(&run).is_some());
        assert!(watch.next <= watch.next_without_step);
        let hour = Instant::now() + Duration::from_secs(3600);
        (watch.next, watch.next_without_step) = (None, Some(hour));
        each_item(&steps(20)[..100], |item| run.apply(item));
        assert!(watch.update(&run).is_none(), "nothing but what came beside the steps");
        run = Run::default();
        each_item(&steps(220), |item| run.apply(item));
        assert!(watch.update(&run).is_some(), "steps have ended");
    }
}
