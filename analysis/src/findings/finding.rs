//! What a finding is: plain data that a screen draws, a report prints and a test compares.

use std::cmp::Reverse;
use std::ops::Range;

use serde::Serialize;

use super::claim::Claim;
pub use super::finding_kind::FindingKind;
use super::number::Number;
use super::stated_numbers::{StatedNumber, StatedNumbers};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing when reading numbers; costs no time by itself.
    Note,
    /// Costs less than 5 % of the wall time.
    Minor,
    /// Costs 5 % of the wall time or more, or will end the run.
    Major,
}

/// Phases whose marks a program may stall at.
const STALLS: [&str; 2] = ["gc", "checkpoint"];
/// Shares that differ by no more than this are of the same time.
const SAME_TIME: f64 = 0.01;

impl Severity {
    /// The severity of something that costs this share (0 to 1) of the wall time.
    pub(super) fn from_share(share: f64) -> Self {
        if share >= 0.05 { Self::Major } else { Self::Minor }
    }
}

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Fits the evidence, as do other causes.
    Low,
    /// The evidence points there.
    Medium,
    /// Measured directly.
    High,
}

impl Confidence {
    /// As a word for people: `possible`, `likely` or `certain`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "possible",
            Self::Medium => "likely",
            Self::High => "certain",
        }
    }
}

/// A place where a finding was seen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Occurrence {
    /// Rows of the step table.
    pub ordinals: Range<u64>,
    /// Where it begins, on the clock of all events.
    pub start_ns: u64,
    /// Where it ends.
    pub end_ns: u64,
    /// What happened there.
    pub sentence: String,
}

/// A diagnosed cause with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
    /// How much it matters.
    pub severity: Severity,
    /// How sure it is.
    pub confidence: Confidence,
    /// Share (0 to 1) of the wall time that it costs, without time counted under a cause; of phases and the gap all of it.
    pub share: Option<f64>,
    /// The whole finding in one sentence, even if there are many places.
    pub summary: String,
    /// Number of times it was seen; more than `places` if there were too many to list.
    pub count: u64,
    /// Where it was seen, by time, at most 1,024; empty if it is true of the whole run.
    pub places: Vec<Occurrence>,
    /// The numbers in the summary and the evidence.
    pub facts: Vec<StatedNumber>,
    /// The evidence, one line each.
    pub evidence: Vec<String>,
    /// Advice, one line each.
    pub advice: Vec<String>,
    /// The time that it claims, until the claims of others are known.
    #[serde(skip)]
    pub(super) claim: Option<Claim>,
}

/// A finding that keeps a smaller part of its own time only repeats others.
pub(super) const REPEATS: f64 = 0.1;

/// An hour, in nanoseconds.
const HOUR_NS: f64 = 3_600e9;

pub(super) const PLACES_LISTED: usize = 1024;

impl Finding {
    /// A finding about the whole run, without places, whose summary takes its numbers from the facts that it notes.
    pub(super) fn for_run(
        kind: FindingKind,
        confidence: Confidence,
        share: Option<f64>,
        summary: impl FnOnce(&mut StatedNumbers) -> String,
    ) -> Self {
        let severity = share.map_or(Severity::Note, Severity::from_share);
        let mut facts = StatedNumbers::default();
        let (summary, places, evidence, advice) = (summary(&mut facts), Vec::new(), Vec::new(), Vec::new());
        let facts = facts.into();
        Self { kind, severity, confidence, share, summary, count: 1, places, facts, evidence, advice, claim: None }
    }

    /// Its places from the longest to the shortest.
    pub fn longest_places(&self) -> Vec<&Occurrence> {
        let mut places: Vec<&Occurrence> = self.places.iter().collect();
        places.sort_by_key(|place| (Reverse(place.end_ns.saturating_sub(place.start_ns)), place.ordinals.start));
        places
    }

    pub(super) fn with_evidence(mut self, evidence: impl Into<String>) -> Self {
        self.evidence.push(evidence.into());
        self
    }

    /// The finding with a line of evidence and the numbers in it.
    pub(super) fn with_evidence_from(self, line: impl FnOnce(&mut StatedNumbers) -> String) -> Self {
        self.with_evidence_lines(|facts| [line(facts)])
    }

    /// The same of any number of lines.
    pub(super) fn with_evidence_lines<L: IntoIterator<Item = String>>(
        mut self,
        lines: impl FnOnce(&mut StatedNumbers) -> L,
    ) -> Self {
        self.add_evidence(lines);
        self
    }

    /// Adds lines of evidence and the numbers in them.
    pub(super) fn add_evidence<L: IntoIterator<Item = String>>(&mut self, lines: impl FnOnce(&mut StatedNumbers) -> L) {
        let mut facts = StatedNumbers::default();
        self.evidence.extend(lines(&mut facts));
        let facts = Vec::<StatedNumber>::from(facts).into_iter();
        let new: Vec<StatedNumber> = facts.filter(|fact| !self.facts.contains(fact)).collect();
        self.facts.extend(new);
    }

    /// The share of the time that it is about, if (nearly) all of it is counted under other findings.
    pub fn counted_elsewhere(&self) -> Option<f64> {
        let all = self.fact(Number::OfTime)?;
        let is_repeated = self.severity == Severity::Note && self.share.is_some_and(|left| left < REPEATS * all);
        (is_repeated && self.fact(Number::CountedElsewhere).is_some()).then_some(all)
    }

    /// At what the program stalls: its summary begins with the events' name.
    pub(super) fn stalls_at(&self) -> Option<&str> {
        let is_stall = self.kind == FindingKind::Stall;
        let (event, _) = self.summary.strip_prefix('"').filter(|_| is_stall)?.split_once('"')?;
        Some(event)
    }

    /// Whether it stalls at events whose time is this phase's: one that trains nothing and takes the same share.
    pub(super) fn is_stall_in(&self, phase: &str, share: f64) -> bool {
        let takes_it = |own: f64| (own - share).abs() <= SAME_TIME;
        self.kind == FindingKind::Stall && STALLS.contains(&phase) && self.share.is_some_and(takes_it)
    }

    /// Whether it takes the CPU away all the time by strong evidence, though nobody measured how much that costs.
    pub(super) fn is_unmeasured_cause(&self) -> bool {
        self.kind == FindingKind::Contention && self.share.is_none() && self.severity == Severity::Major
    }

    /// Whether memory ends within an hour.
    fn ends_the_run_soon(&self) -> bool {
        self.kind == FindingKind::MemoryGrowth && self.fact(Number::Left).is_some_and(|ns| ns < HOUR_NS)
    }

    /// Its number of this name, the first of several.
    pub fn fact(&self, name: Number) -> Option<f64> {
        self.facts.iter().find(|fact| fact.name == name).map(|fact| fact.value)
    }

    /// Its number of this name that is of this.
    pub fn fact_of(&self, of: &str, name: Number) -> Option<f64> {
        self.facts.iter().find(|fact| fact.name == name && fact.of.as_deref() == Some(of)).map(|fact| fact.value)
    }

    /// The finding with this advice.
    pub(super) fn with_advice(mut self, advice: impl Into<String>) -> Self {
        self.advice.push(advice.into());
        self
    }

    /// The finding with the time that it claims.
    pub(super) fn with_claim(mut self, claim: Claim) -> Self {
        self.claim = Some(claim);
        self
    }

    /// The finding with these places, of which there may be more than are listed.
    pub(super) fn with_places(mut self, mut places: Vec<Occurrence>, count: u64) -> Self {
        places.truncate(PLACES_LISTED);
        (self.places, self.count) = (places, count);
        self
    }
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CheckOutcome {
    /// These were found.
    Found(Vec<Finding>),
    /// It was looked for and not found.
    Nothing,
    /// It could not be looked for, and why.
    NotEnough(String),
}

impl From<Finding> for CheckOutcome {
    fn from(finding: Finding) -> Self {
        Self::Found(vec![finding])
    }
}

impl From<Vec<Finding>> for CheckOutcome {
    fn from(findings: Vec<Finding>) -> Self {
        if findings.is_empty() { Self::Nothing } else { Self::Found(findings) }
    }
}

/// A kind that could not be looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotEnough {
    /// What was to be looked for.
    pub kind: FindingKind,
    /// What is missing.
    pub reason: String,
}

/// A finding that was certain a while ago and is gone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EndedFinding {
    /// The finding when it was last made, without its places.
    pub finding: Finding,
    /// The newest step at that time, by the program's count.
    pub last_step: u64,
}

/// All findings for the steps looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Findings {
    /// What was found, the most severe first.
    pub found: Vec<Finding>,
    /// Certain findings that are over, the newest first; only for a session that is being watched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub over: Vec<EndedFinding>,
    /// What could not be looked for.
    pub not_enough: Vec<NotEnough>,
    /// Number of first steps that the shares leave out, as they may warm up.
    pub without_first: u64,
}

impl Findings {
    /// Adds what the check for this kind reports.
    pub(super) fn add(&mut self, kind: FindingKind, outcome: CheckOutcome) {
        match outcome {
            CheckOutcome::Found(found) => self.found.extend(found),
            CheckOutcome::Nothing => (),
            CheckOutcome::NotEnough(reason) => self.not_enough.push(NotEnough { kind, reason }),
        }
    }

    /// Sorts what was found, the most severe first.
    pub(super) fn sort(&mut self) {
        // What ends the run soon, or makes it worth nothing, costs all of it.
        let is_lost = |finding: &Finding| finding.kind == FindingKind::Divergence;
        let is_all =
            |finding: &Finding| is_lost(finding) || finding.ends_the_run_soon() || finding.is_unmeasured_cause();
        let cost = |finding: &Finding| if is_all(finding) { 1.0 } else { finding.share.unwrap_or(0.0) };
        let weight = |finding: &Finding| (finding.severity, (cost(finding) * 1e6) as u64);
        let is_hang = |finding: &Finding| finding.kind == FindingKind::Hang;
        self.found.sort_by_key(|finding| (Reverse(is_hang(finding)), Reverse(weight(finding)), finding.kind));
    }

    /// These findings and others, the most severe first.
    pub fn merge(mut self, others: Self) -> Self {
        self.found.extend(others.found);
        self.over.extend(others.over);
        self.not_enough.extend(others.not_enough);
        self.sort();
        self
    }

    /// What was found at a step, with the place: the most severe first.
    pub fn at_step(&self, ordinal: u64) -> impl Iterator<Item = (&Finding, &Occurrence)> {
        let at = move |finding: &'_ Finding| finding.places.iter().position(|place| place.ordinals.contains(&ordinal));
        self.found.iter().filter_map(move |finding| Some((finding, &finding.places[at(finding)?])))
    }
}
