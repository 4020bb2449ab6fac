//! Compares findings with labels: precision and recall of every kind.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gnntop::findings::{self, Kind};
use gnntop::source::Recording;
use gnntop::store::Store;

/// What was found in one recording and what should have been.
#[derive(Debug)]
pub struct Scored {
    pub name: String,
    pub expected: BTreeSet<String>,
    pub also: BTreeSet<String>,
    pub found: BTreeSet<String>,
}

impl Scored {
    pub fn missed(&self) -> Vec<&String> {
        self.expected.difference(&self.found).collect()
    }

    pub fn wrong(&self) -> Vec<&String> {
        self.found.iter().filter(|kind| !self.expected.contains(*kind) && !self.also.contains(*kind)).collect()
    }

    pub fn is_right(&self) -> bool {
        self.missed().is_empty() && self.wrong().is_empty()
    }
}

/// Scores the recording at `path` by the label beside it.
pub fn of(path: &Path) -> Scored {
    let mut store = Store::new();
    Recording::open(path).unwrap().read_all(&mut store);
    let label = fs::read_to_string(path.with_extension("label")).unwrap();
    let line = |name: &str| {
        let line = label.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().map(str::to_owned).collect::<BTreeSet<String>>()
    };
    Scored {
        name: path.file_stem().unwrap().to_string_lossy().into_owned(),
        expected: line("expect:"),
        also: line("also:"),
        found: findings::all(&store).found.iter().map(|finding| finding.kind.id().to_owned()).collect(),
    }
}

/// Scores every recording in a directory, by name.
pub fn all(dir: &Path) -> Vec<Scored> {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut recordings: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "gnntop")).collect();
    recordings.sort();
    recordings.iter().map(|path| of(path)).collect()
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
    for kind in Kind::ALL {
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
