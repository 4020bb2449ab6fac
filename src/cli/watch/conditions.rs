//! What `gnntop watch` reports, and whether it is so now.

use std::time::Duration;

use super::super::exit::UsageError;
use crate::report::{Bound, Rule, Ruling};
use gnntop_analysis::catalogue::Catalogue;
use gnntop_analysis::findings::{Confidence, Finding, FindingKind, Judgement, Severity};
use gnntop_analysis::ranks::Run;
use gnntop_analysis::store::{SessionState, StepRow};

/// Something to report.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    /// The program died.
    Death,
    /// The program ended, however.
    End,
    /// Any finding that is certain and major.
    Finding,
    /// A finding of this kind, unless it is a note.
    FindingOfKind(FindingKind),
    /// A figure is beyond a limit.
    Figure {
        /// As it was typed.
        text: String,
        /// What would be satisfied otherwise.
        rule: Rule,
    },
}

/// What a condition has found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cause {
    /// The same for the same cause at another look.
    pub(super) id: String,
    /// In words.
    pub(super) text: String,
    /// How a finding proves it.
    pub(super) evidence: Vec<String>,
    /// What to try.
    pub(super) advice: Vec<String>,
}

/// One look at one cause.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Seen {
    /// It is there.
    Holds(Cause),
    /// It is not.
    Gone(String),
    /// Nothing can be said.
    Unknown,
}

impl Seen {
    /// The cause that holds, if one does.
    pub(super) fn holding(&self) -> Option<&str> {
        if let Self::Holds(cause) = self { Some(&cause.id) } else { None }
    }
}

impl Cause {
    /// A cause that is all words.
    pub(super) fn new(id: &str, text: &str) -> Self {
        Self { id: id.to_owned(), text: text.to_owned(), evidence: Vec::new(), advice: Vec::new() }
    }

    fn from_finding(finding: &Finding) -> Self {
        let (evidence, advice) = (finding.evidence.clone(), finding.advice.clone());
        Self { evidence, advice, ..Self::new(finding.kind.id(), &finding.summary) }
    }
}

/// What is reported where nothing else is asked for.
pub(super) fn usual() -> Vec<Condition> {
    vec![Condition::Death, Condition::FindingOfKind(FindingKind::Hang), Condition::Finding]
}

impl Condition {
    /// Reads one from the command line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text.trim() {
            "death" => Ok(Self::Death),
            "end" => Ok(Self::End),
            "hang" => Ok(Self::FindingOfKind(FindingKind::Hang)),
            "finding" => Ok(Self::Finding),
            text => match (text.strip_prefix("finding="), text.split_once(['>', '<'])) {
                (Some(kind), _) => parse_kind(kind).map(Self::FindingOfKind),
                (None, Some((figure, limit))) => {
                    let bound = if text.contains('>') { Bound::Max } else { Bound::Min };
                    let rule = Rule::parse(&format!("{}={}", figure.trim(), limit.trim_start_matches('=')), bound)?;
                    Ok(Self::Figure { text: text.to_owned(), rule })
                }
                (None, None) => {
                    Err("give death, end, hang, finding, finding=KIND, or a figure such as 'gap.share>10%'".to_owned())
                }
            },
        }
    }

    /// Whether it is so now. Findings are known only at some looks; `judgement` has them then.
    ///
    /// # Errors
    /// If the run has no figure of this name, and cannot have it.
    pub(super) fn check(
        &mut self,
        run: &Run,
        judgement: Option<&Judgement>,
        over: Duration,
    ) -> anyhow::Result<Vec<Seen>> {
        Ok(match self {
            Self::Death | Self::End => Vec::new(),
            Self::Finding => judgement.map(certain_and_major).unwrap_or_default(),
            Self::FindingOfKind(kind) => judgement.map(|judgement| of_kind(judgement, *kind)).into_iter().collect(),
            Self::Figure { text, rule } => vec![check_figure(text, rule, run, over)?],
        })
    }

    /// Whether the end of the run, described by `how`, is what it waits for.
    pub(super) fn check_end(&self, run: &Run, how: &str) -> Option<Cause> {
        let session = run.store().session();
        let died = session.death_text().or((*session.state() == SessionState::Gone).then_some(how));
        match self {
            Self::Death => died.map(|text| Cause::new("death", text)),
            Self::End => Some(died.map_or_else(|| Cause::new("end", how), |text| Cause::new("death", text))),
            _ => None,
        }
    }
}

fn parse_kind(text: &str) -> Result<FindingKind, String> {
    let known = FindingKind::ALL.iter().copied().find(|kind| kind.id() == text);
    known.ok_or_else(|| {
        let kinds: Vec<&str> = FindingKind::ALL.iter().map(|kind| kind.id()).collect();
        format!("there is no kind {text}; the kinds are {}", kinds.join(", "))
    })
}

/// Every kind, so that those that are gone can be reported again.
fn certain_and_major(judgement: &Judgement) -> Vec<Seen> {
    let is_meant = |finding: &&Finding| finding.confidence == Confidence::High && finding.severity == Severity::Major;
    let found =
        |kind: FindingKind| judgement.findings.found.iter().filter(is_meant).find(|finding| finding.kind == kind);
    let kinds = FindingKind::ALL.iter().filter(|kind| **kind != FindingKind::Hang);
    kinds.map(|kind| seen(*kind, found(*kind))).collect()
}

fn of_kind(judgement: &Judgement, kind: FindingKind) -> Seen {
    let is_meant = |finding: &&Finding| finding.kind == kind && finding.severity > Severity::Note;
    seen(kind, judgement.findings.found.iter().find(is_meant))
}

fn seen(kind: FindingKind, finding: Option<&Finding>) -> Seen {
    finding.map_or_else(|| Seen::Gone(kind.id().to_owned()), |finding| Seen::Holds(Cause::from_finding(finding)))
}

fn check_figure(text: &str, rule: &mut Rule, run: &Run, over: Duration) -> anyhow::Result<Seen> {
    let store = run.store();
    if store.steps().total() == 0 {
        return Ok(Seen::Unknown);
    }
    let since_ns = store.now_ns().saturating_sub(u64::try_from(over.as_nanos()).unwrap_or(u64::MAX));
    let mut rows: Vec<StepRow<'_>> = store.steps().all().rev().take_while(|row| row.end_ns() >= since_ns).collect();
    rows.reverse();
    let catalogue = Catalogue::with_run(run).with_steps(rows);
    *rule = rule.clone().resolved(&catalogue).map_err(|error| UsageError::with_message(format!("{text}: {error}")))?;
    let Ok(measured) = catalogue.get(&rule.figure) else { return Ok(Seen::Unknown) };
    Ok(match rule.ruling(&measured) {
        Ruling::NotEnough => Seen::Unknown,
        Ruling::Kept => Seen::Gone(text.to_owned()),
        Ruling::Broken => {
            let value = measured.unit.format(measured.value);
            Seen::Holds(Cause::new(text, &format!("{} is {value}: {text} (of {})", rule.figure, measured.population)))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_fixtures::{MS, TrainingRun, each_item};

    fn run(training: &TrainingRun) -> Run {
        let mut run = Run::default();
        each_item(&training.bytes(), |item| run.apply(item));
        run
    }

    fn check(text: &str, run: &Run, over: Duration) -> Seen {
        Condition::parse(text).unwrap().check(run, None, over).unwrap().remove(0)
    }

    #[test]
    fn conditions_are_parsed_and_mistakes_explained() {
        let parsed = |text| Condition::parse(text).unwrap();
        assert_eq!(parsed("hang"), Condition::FindingOfKind(FindingKind::Hang));
        assert_eq!(parsed("finding=straggler"), Condition::FindingOfKind(FindingKind::Straggler));
        assert!(matches!(parsed("gap.share > 10%"), Condition::Figure { rule, .. } if rule.bound == Bound::Max));
        assert!(matches!(parsed("steps.per_s<=5"), Condition::Figure { rule, .. } if rule.bound == Bound::Min));
        let mistake = |text| Condition::parse(text).unwrap_err();
        assert!(mistake("deth").starts_with("give death, end"), "{}", mistake("deth"));
        assert!(mistake("finding=gx").contains("the kinds are"), "{}", mistake("finding=gx"));
        assert!(mistake("gap.share>much").contains("5%"), "{}", mistake("gap.share>much"));
    }

    #[test]
    fn figures_are_of_the_last_steps_alone() {
        let slow_at_first = (0..20).map(|step| (step, "backward", 300 * MS)).collect();
        let run = run(&TrainingRun { spikes: slow_at_first, ends: false, ..TrainingRun::default() });
        let all = check("period.mean>60ms", &run, Duration::from_secs(3600));
        assert!(matches!(&all, Seen::Holds(cause) if cause.text.contains("period.mean is ")), "{all:?}");
        let last = check("period.mean>60ms", &run, Duration::from_secs(1));
        assert_eq!(last, Seen::Gone("period.mean>60ms".to_owned()));
        assert_eq!(check("period.mean<1s", &run, Duration::from_millis(40)), Seen::Unknown, "too few steps");
    }

    #[test]
    fn unknown_figure_is_a_mistake() {
        let run = run(&TrainingRun::default());
        let error = Condition::parse("span.nothing.p50>1s").unwrap().check(&run, None, Duration::from_secs(60));
        assert!(error.is_err_and(|error| error.to_string().contains("nothing")));
    }

    #[test]
    fn findings_are_causes_and_gone_where_they_are_not() {
        let run = run(&TrainingRun { spikes: vec![(50, "backward", 3_000 * MS)], ..TrainingRun::default() });
        let judgement = gnntop_analysis::findings::judge_run(&run);
        let found = &judgement.findings.found;
        let seen = Condition::Finding.check(&run, Some(&judgement), Duration::ZERO).unwrap();
        let holds: Vec<_> = seen.iter().filter(|seen| matches!(seen, Seen::Holds(_))).collect();
        let major = found
            .iter()
            .filter(|finding| finding.severity == Severity::Major && finding.confidence == Confidence::High);
        assert_eq!(holds.len(), major.count());
        assert!(!holds.is_empty(), "{found:?}");
        let hang = Condition::parse("hang").unwrap().check(&run, Some(&judgement), Duration::ZERO).unwrap();
        assert_eq!(hang, [Seen::Gone("hang".to_owned())]);
    }
}
