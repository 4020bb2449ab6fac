//! Compares findings with labels: precision and recall of every kind.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gnntop_analysis::findings::sweep::{Configuration, scaling};
use gnntop_analysis::findings::{self, Finding, FindingKind};
use gnntop_analysis::ranks::Run;
use gnntop_analysis::source::Recording;

/// What was found in one recording and what should have been.
#[derive(Debug)]
pub struct Scored {
    pub name: String,
    pub expected: BTreeSet<String>,
    pub also: BTreeSet<String>,
    pub found: BTreeSet<String>,
}

impl Scored {
    /// What was expected and not found; of `denormals|drift` one is enough.
    pub fn missed(&self) -> Vec<&String> {
        let is_found = |kinds: &&String| kinds.split('|').any(|kind| self.found.contains(kind));
        self.expected.iter().filter(|kinds| !is_found(kinds)).collect()
    }

    pub fn wrong(&self) -> Vec<&String> {
        let is_expected = |kind: &String| self.expected.iter().any(|kinds| kinds.split('|').any(|one| one == kind));
        self.found.iter().filter(|kind| !is_expected(kind) && !self.also.contains(*kind)).collect()
    }

    pub fn is_right(&self) -> bool {
        self.missed().is_empty() && self.wrong().is_empty()
    }
}

/// Scores the recording at `path` by the label beside it.
pub fn score_recording(path: &Path) -> Scored {
    let run = read_run(path);
    let label = fs::read_to_string(path.with_extension("label")).unwrap();
    let line = |name: &str| label.lines().find_map(|line| line.strip_prefix(name));
    let words = |name: &str| line(name).unwrap().split_whitespace().map(str::to_owned).collect::<BTreeSet<String>>();
    let mut found = run_findings(&run);
    if let Some(name) = line("against:") {
        let other = read_run(&path.with_file_name(format!("{}.gnntop", name.trim())));
        let configurations =
            [("other", &other), ("this", &run)].map(|(name, run)| Configuration::from_run(name, run).unwrap());
        let [first, second] = configurations;
        found.extend(scaling(&first, &second).into_iter().flat_map(|scaling| scaling.findings));
    }
    Scored {
        name: path.file_stem().unwrap().to_string_lossy().into_owned(),
        expected: words("expect:"),
        also: words("also:"),
        found: found.iter().map(|finding| finding.kind.id().to_owned()).collect(),
    }
}

/// What is found in each session, and over all ranks.
fn run_findings(run: &Run) -> Vec<Finding> {
    let alone = run.members().iter().flat_map(|member| findings::all_findings(&member.store).found);
    alone.chain(findings::rank_findings(&run.ranks()).found).collect()
}

pub fn read_run(path: &Path) -> Run {
    let mut run = Run::default();
    Recording::open(path).unwrap().read_all(&mut run);
    run
}

/// Scores every recording in a directory, by name.
pub fn score_all(dir: &Path) -> Vec<Scored> {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut recordings: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "gnntop")).collect();
    recordings.sort();
    recordings.iter().map(|path| score_recording(path)).collect()
}

/// Precision and recall of one kind; `None` where it was never found, or never there.
pub fn precision_and_recall(scored: &[Scored], kind: &str) -> (usize, usize, usize) {
    let count = |is: &dyn Fn(&Scored) -> bool| scored.iter().filter(|one| is(one)).count();
    let right = count(&|one| one.expected.contains(kind) && one.found.contains(kind));
    let missed = count(&|one| one.missed().iter().any(|missed| *missed == kind));
    let wrong = count(&|one| one.wrong().iter().any(|wrong| *wrong == kind));
    (right, missed, wrong)
}

/// The table as Markdown.
pub fn table(scored: &[Scored]) -> String {
    let mut out = "| finding | recordings with it | found | missed | false | precision | recall |\n|---|---|---|---|---|---|---|\n".to_owned();
    let ratio = |part: usize, whole: usize| match whole {
        0 => "-".to_owned(),
        _ => format!("{:.2}", part as f64 / whole as f64),
    };
    for kind in FindingKind::ALL {
        let (right, missed, wrong) = precision_and_recall(scored, kind.id());
        let (precision, recall) = (ratio(right, right + wrong), ratio(right, right + missed));
        let there = right + missed;
        out += &format!("| {} | {there} | {right} | {missed} | {wrong} | {precision} | {recall} |\n", kind.id());
    }
    let clean = scored.iter().filter(|one| one.name.starts_with("clean-"));
    let (clean, disturbed) = clean.fold((0, 0), |sum, one| (sum.0 + 1, sum.1 + usize::from(!one.is_right())));
    out += &format!("\n{} recordings, {clean} of them clean; clean ones with a finding: {disturbed}\n", scored.len());
    let wrong = scored.iter().filter(|one| !one.is_right());
    wrong.for_each(|one| out += &format!("- {}: missed {:?}, false {:?}\n", one.name, one.missed(), one.wrong()));
    out
}
