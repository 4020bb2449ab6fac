//! The head of a report: who published what, when, where, how long.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Serialize, Serializer};

use super::steps::StepCounts;
use crate::report::document::{Block, ComparisonTable};
use gnntop_analysis::catalogue::Catalogue;
use gnntop_analysis::figures::{count, counted, duration, elapsed, percent, utc};
use gnntop_analysis::store::{RunProgress, SessionState};
use gnntop_wire::{Fact, FactKey, Mode};

/// Who published what, when. Texts are empty where nothing is known.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SessionReport {
    /// The session's name.
    pub name: String,
    /// The session's random id, 32 hexadecimal digits.
    pub session_id: String,
    /// The publishing process.
    pub pid: Option<u32>,
    /// Host name.
    pub host: String,
    /// The program's command line.
    pub command: String,
    /// What published.
    pub publisher: String,
    /// What is known of the program, such as its `framework`; `inferred NAME` says how this phase was inferred.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", serialize_with = "serialize_facts")]
    pub facts: BTreeMap<FactKey, Fact>,
    /// How far it is on the way to its goal; absent where nobody says what that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<GoalReport>,
    /// `running`, `ended` (normally), `gone` (killed or crashed) or `unknown` (as in a recording that was cut).
    pub state: &'static str,
    /// Why the program died, in a paragraph; `null` if it did not, or the reason is unknown.
    pub died: Option<String>,
    /// The same in a word, such as `out-of-memory` or `exception`.
    pub died_of: Option<String>,
    /// Why the session ended, where it says so.
    pub end_reason: Option<String>,
    /// When what was read begins, in nanoseconds since 1970-01-01 UTC.
    pub begin_unix_ns: Option<u64>,
    /// Time from the earliest to the newest event read.
    pub covered_ns: u64,
}

/// How far a run is on the way to its goal.
#[derive(Clone, Debug, Serialize)]
pub struct GoalReport {
    /// `steps` or `epochs`.
    pub unit: &'static str,
    /// How many of them are the goal.
    pub number: u64,
    /// Who says so: `--goal`, or the part of the program.
    pub by: String,
    /// Steps of the run so far, with those before the checkpoint from which it resumed.
    pub steps: u64,
    /// Steps at the goal; `null` if it is given in epochs and none is over.
    pub steps_at_goal: Option<u64>,
    /// The part that is done, 0 to 1.
    pub share: Option<f64>,
    /// What the rest takes at the mean pace of the newer half of the time; `null` where that is not known, or nothing is left.
    pub left_ns: Option<u64>,
}

impl GoalReport {
    fn new(progress: RunProgress) -> Self {
        Self {
            unit: progress.goal.unit.as_str(),
            number: progress.goal.number,
            steps: progress.steps,
            steps_at_goal: progress.steps_at_goal,
            share: progress.share(),
            left_ns: progress.left_ns,
            by: progress.by,
        }
    }

    fn describe(&self) -> String {
        let Self { unit, number, by, .. } = self;
        let share = self.share.map(|share| format!("{} of ", percent(share))).unwrap_or_default();
        let by = if by.is_empty() { String::new() } else { format!(" ({by})") };
        let left = self.left_ns.map(|ns| format!(", about {} left", elapsed(ns))).unwrap_or_default();
        format!("goal: {share}{} {unit}{by}{left}", count(*number))
    }
}

impl SessionReport {
    pub(in crate::report) fn new(figures: &Catalogue<'_>) -> Self {
        let store = figures.store();
        let session = store.session();
        let info = session.info().cloned().unwrap_or_default();
        let (state, end_reason) = match session.state() {
            SessionState::Unknown => ("unknown", None),
            SessionState::Running => ("running", None),
            SessionState::Gone => ("gone", None),
            SessionState::Ended(end) => ("ended", Some(end.reason.clone()).filter(|reason| !reason.is_empty())),
        };
        Self {
            name: info.name,
            session_id: format!("{:032x}", info.session_id),
            // Imported recordings have no process.
            pid: session.info().map(|info| info.pid).filter(|pid| *pid > 0),
            host: info.host,
            command: info.command,
            publisher: info.publisher,
            facts: session.facts().clone(),
            goal: store.progress().map(GoalReport::new),
            died: session.death_text().map(str::to_owned),
            died_of: session.death_cause().map(str::to_owned),
            state,
            end_reason,
            begin_unix_ns: store.first_ns().and_then(|first| session.wall_ns(first)),
            covered_ns: figures.value("recording.total").unwrap_or(0.0) as u64,
        }
    }
}

impl SessionReport {
    /// The run's name; the recording's if it has none.
    pub(in crate::report) fn name_or(&self, file: &str) -> String {
        if self.name.is_empty() { file_stem(file) } else { self.name.clone() }
    }

    /// The run, its machine, its date.
    pub(in crate::report) fn title(&self, file: &str) -> String {
        let mut title = self.name_or(file);
        if !self.host.is_empty() {
            title += &format!(" on {}", self.host);
        }
        title.extend(self.begin_unix_ns.map(|ns| format!(", {}", day(ns))));
        title
    }

    /// Lines below the title: duration and state, platform, command.
    pub(in crate::report) fn about(&self, steps: &StepCounts, gpus: &[&str]) -> Vec<String> {
        let mut length = format!("{}; {}", self.length(steps), self.state_in_words());
        if steps.skipped > 0 {
            length += &format!("; without the first {}", counted(steps.skipped, "step", "steps"));
        }
        length.extend(steps.loss().map(|loss| format!("; loss {loss}")));
        let framework = self.facts.values().find(|fact| matches!(fact, Fact::Framework(_))).map(Fact::text);
        let is_inference = self.facts.values().any(|fact| *fact == Fact::Mode(Mode::Inference));
        let mode = is_inference.then_some(Mode::Inference.as_str());
        let on: Vec<&str> = framework.as_deref().into_iter().chain(mode).chain(gpus.iter().copied()).collect();
        let died = self.died.as_ref().map(|died| format!("why it died: {died}"));
        let lines = [
            Some(length),
            self.goal.as_ref().map(GoalReport::describe),
            died,
            steps.describe_summaries(),
            steps.reason.clone(),
            steps.outside(),
            Some(on.join(", ")),
        ];
        let lines = lines.into_iter().chain([Some(self.command.clone())]).flatten();
        lines.filter(|line| !line.is_empty()).collect()
    }

    /// Its time, steps and epochs.
    fn length(&self, steps: &StepCounts) -> String {
        let (total, epochs) = (counted(steps.total, "step", "steps"), counted(steps.epochs, "epoch", "epochs"));
        format!("{}, {total}, {epochs}", duration(self.covered_ns))
    }

    /// How the session ended, in words.
    fn state_in_words(&self) -> String {
        match (self.state, &self.end_reason, self.died_of.as_deref()) {
            (_, _, Some("asked")) => "ended when asked to".to_owned(),
            (_, _, Some(cause)) => format!("died: {}", cause.replace('-', " ")),
            ("ended", Some(reason), _) => format!("ended: {reason}"),
            ("gone", ..) => "killed or crashed".to_owned(),
            ("unknown", ..) => "the recording has no end".to_owned(),
            (state, ..) => state.to_owned(),
        }
    }
}

/// The texts of facts by their titles. Where one of the program's own has the title of another, the other is there.
fn serialize_facts<S: Serializer>(facts: &BTreeMap<FactKey, Fact>, serializer: S) -> Result<S::Ok, S::Error> {
    let texts: BTreeMap<&str, String> = facts.iter().map(|(key, fact)| (key.title(), fact.text())).collect();
    texts.serialize(serializer)
}

/// A recording's name without folders and extension.
pub(in crate::report) fn file_stem(file: &str) -> String {
    let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    stem.filter(|stem| !stem.is_empty()).unwrap_or_else(|| "run".to_owned())
}

/// The day and minute, without seconds.
fn day(unix_ns: u64) -> String {
    let all = utc(unix_ns);
    all.rsplit_once(':').map_or_else(|| all.clone(), |(minute, _)| format!("{minute} UTC"))
}

/// The section with all facts: a row each, a column for each recording.
pub(in crate::report) fn blocks(runs: &[(&str, (&SessionReport, &StepCounts))]) -> Vec<Block> {
    let mut facts = ComparisonTable::new("recording", runs);
    let known = |text: &str| Some(text).filter(|text| !text.is_empty()).map(str::to_owned);
    facts.row("session", |(session, _)| known(&session.name));
    facts.row("host", |(session, _)| known(&session.host));
    facts.row("process", |(session, _)| session.pid.map(|pid| pid.to_string()));
    facts.row("command", |(session, _)| known(&session.command));
    let known: BTreeMap<&FactKey, &Fact> = runs.iter().flat_map(|(_, (session, _))| &session.facts).collect();
    for (key, fact) in known {
        let name = match fact {
            Fact::Inferred { phase, .. } => format!("{phase}* is inferred"),
            _ => key.title().to_owned(),
        };
        facts.row(&name, |(session, _)| session.facts.get(key).map(Fact::text));
    }
    facts.row("state", |(session, _)| Some(session.state_in_words()));
    facts.row("why it died", |(session, _)| session.died.clone());
    facts.row("begin", |(session, _)| session.begin_unix_ns.map(utc));
    facts.row("time covered", |(session, steps)| Some(session.length(steps)));
    facts.row("steps skipped", |(_, steps)| Some(count(steps.skipped)));
    facts.row("loss", |(_, steps)| steps.loss());
    let heading = if runs.len() > 1 { "Runs" } else { "Run" };
    std::iter::once(Block::heading(heading)).chain(facts.table()).collect()
}
