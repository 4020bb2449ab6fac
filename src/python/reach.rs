//! Which Python programs of a run were reached, which were not, and why not.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use gnntop_analysis::source::process::descends;

use super::answers::{Answer, Answers};
use super::unreached::{self, Reason};

/// A Python that has not answered for this long was not reached, even if nothing shows why.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Follows the Pythons below one process.
#[derive(Debug)]
pub struct Reach {
    answers: Answers,
    root: u32,
    next_look: Instant,
    /// Pythons without an answer, and since when they have been seen.
    silent: BTreeMap<u32, Instant>,
    sentence: Option<String>,
}

impl Reach {
    /// Follows the process `root` and what it starts; their answers arrive in `answers`.
    pub fn follow(root: u32, answers: Answers) -> Self {
        Self { answers, root, next_look: Instant::now(), silent: BTreeMap::new(), sentence: None }
    }

    /// Why no steps are shown; `None` if no Python is in it.
    pub fn sentence(&mut self) -> Option<&str> {
        if Instant::now() >= self.next_look {
            self.next_look = Instant::now() + LOOK_INTERVAL;
            self.look();
        }
        self.sentence.as_deref()
    }

    fn look(&mut self) {
        let answers = self.answers.read();
        let now = Instant::now();
        let silent = pythons(self.root).into_iter().filter(|python| !is_reached(python, &answers));
        let before = std::mem::take(&mut self.silent);
        let mut unreached: Option<(u32, Reason)> = None;
        for python in silent {
            let since = before.get(&python.pid).copied().unwrap_or(now);
            self.silent.insert(python.pid, since);
            let reason = unreached::reason(python.pid, &python.words);
            if reason.is_certain || now.duration_since(since) >= PATIENCE {
                unreached.get_or_insert((python.pid, reason));
            }
        }
        self.sentence = sentence(&answers, unreached.as_ref()).or(self.sentence.take());
    }
}

/// A process that runs Python.
#[derive(Debug)]
struct Python {
    pid: u32,
    parent: u32,
    words: Vec<String>,
    parents_words: Vec<String>,
}

/// A forked child has no answer: it is what its parent is.
fn is_reached(python: &Python, answers: &BTreeMap<u32, Answer>) -> bool {
    let is_fork = python.words == python.parents_words;
    answers.contains_key(&python.pid) || is_fork && answers.contains_key(&python.parent)
}

fn sentence(answers: &BTreeMap<u32, Answer>, unreached: Option<&(u32, Reason)>) -> Option<String> {
    if let Some((pid, problem)) = answers.iter().find_map(|(pid, answer)| Some((pid, answer.problems.first()?))) {
        return Some(format!("hardware only: cannot watch the Python of process {pid}: {problem}"));
    }
    if answers.values().any(|answer| answer.has_torch) {
        return Some("torch is imported; steps appear from the first backward pass on".to_owned());
    }
    if let Some((pid, reason)) = unreached {
        return Some(format!("hardware only: the Python of process {pid} was not reached: {}", reason.text));
    }
    (!answers.is_empty()).then(|| "hardware only: no Python of this program has imported torch".to_owned())
}

/// The Pythons at and below `root`.
fn pythons(root: u32) -> Vec<Python> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|pid| is_python(*pid) && descends(*pid, root)).filter_map(python).collect()
}

fn is_python(pid: u32) -> bool {
    let program = fs::read_link(format!("/proc/{pid}/exe"));
    program.is_ok_and(|program| program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python")))
}

fn python(pid: u32) -> Option<Python> {
    let parent = unreached::parent(pid)?;
    Some(Python { pid, parent, words: unreached::words(pid), parents_words: unreached::words(parent) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_fork_is_what_its_parent_is() {
        let answers = BTreeMap::from([(7, Answer::default())]);
        let python = |pid, parent, line: &str| Python {
            pid,
            parent,
            words: words(line),
            parents_words: words("python train.py"),
        };
        assert!(is_reached(&python(7, 1, "python train.py"), &answers));
        assert!(is_reached(&python(8, 7, "python train.py"), &answers));
        assert!(!is_reached(&python(8, 7, "python -I other.py"), &answers));
        assert!(!is_reached(&python(8, 6, "python train.py"), &answers));
    }

    #[test]
    fn what_is_said_is_what_helps_most() {
        let answer = |has_torch, problems: &[&str]| Answer {
            has_torch,
            problems: problems.iter().map(|problem| (*problem).to_owned()).collect(),
            ..Answer::default()
        };
        let said = |answers: &[Answer]| {
            let answers = answers.iter().cloned().zip(1..).map(|(answer, pid)| (pid, answer)).collect();
            sentence(&answers, None).unwrap_or_default()
        };
        assert_eq!(said(&[]), "");
        assert!(said(&[answer(false, &[])]).contains("no Python of this program has imported torch"));
        assert!(said(&[answer(false, &[]), answer(true, &[])]).contains("first backward pass"));
        assert!(said(&[answer(true, &["no library"])]).contains("no library"));
    }
}
