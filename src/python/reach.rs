//! Which Python programs of a run were reached, which were not, and why not.

use std::collections::BTreeMap;
use std::fs;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use gnntop_analysis::source::process::{Process, descends};

use super::answers::{Answer, Answers};
use super::unreached::{self, Reason};

/// A Python that has not answered for this long was not reached, even if nothing shows why.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two looks.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Programs whose programs are no children of theirs, and where to run gnntop instead.
const ELSEWHERE: [(&str, &str); 6] = [
    ("docker", "in the container"),
    ("podman", "in the container"),
    ("nerdctl", "in the container"),
    ("kubectl", "in the container"),
    ("ssh", "on the other machine"),
    ("srun", "in the job, `srun gnntop run -- python ...`"),
];

/// Follows the Pythons below one process, on a thread of its own while somebody asks.
#[derive(Debug)]
pub struct Reach {
    sentence: Arc<Mutex<Option<String>>>,
    ask: SyncSender<()>,
}

impl Reach {
    /// Follows the process `root` and what it starts; their answers arrive in `answers`.
    pub fn new(root: u32, answers: Answers) -> Self {
        let (ask, asked) = sync_channel(1);
        let sentence = Arc::<Mutex<Option<String>>>::default();
        let found = Arc::clone(&sentence);
        let run = move || {
            let mut pythons = Pythons { answers, root, silent: BTreeMap::new() };
            for () in asked {
                if let Some(now) = pythons.sentence() {
                    *lock(&found) = Some(now);
                }
                thread::sleep(POLL_INTERVAL);
            }
        };
        // Without the thread the view says less.
        let _ = thread::Builder::new().name("gnntop pythons".to_owned()).spawn(run);
        Self { sentence, ask }
    }

    /// Why no steps are shown; `None` if no Python is in it, or if that is not known yet.
    pub fn sentence(&self) -> Option<String> {
        let _ = self.ask.try_send(());
        lock(&self.sentence).clone()
    }
}

fn lock(sentence: &Mutex<Option<String>>) -> MutexGuard<'_, Option<String>> {
    sentence.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The Pythons below one process.
struct Pythons {
    answers: Answers,
    root: u32,
    /// Those without an answer, since when they have been seen, and why, once that is certain.
    silent: BTreeMap<Process, (Instant, Option<Reason>)>,
}

impl Pythons {
    fn sentence(&mut self) -> Option<String> {
        let answers = self.answers.read();
        let now = Instant::now();
        let before = std::mem::take(&mut self.silent);
        let mut unreached: Option<(u32, Reason)> = None;
        for python in silent(self.root, &answers) {
            let pid = python.process.pid();
            let (since, known) = before.get(&python.process).cloned().unwrap_or((now, None));
            let reason = known.unwrap_or_else(|| unreached::reason(&python.process, &python.words));
            if reason.is_certain || now.duration_since(since) >= PATIENCE {
                unreached.get_or_insert_with(|| (pid, reason.clone()));
            }
            self.silent.insert(python.process, (since, Some(reason).filter(|reason| reason.is_certain)));
        }
        let waiting = || {
            let python = self.silent.keys().next()?;
            Some(format!("hardware only: the Python of process {} has not answered yet", python.pid()))
        };
        sentence(&answers, unreached.as_ref()).or_else(waiting).or_else(|| elsewhere(self.root))
    }
}

/// A process that runs Python.
#[derive(Debug)]
pub(super) struct Python {
    pub(super) process: Process,
    pub(super) words: Vec<String>,
    parent: u32,
    parents_words: Vec<String>,
}

/// The Pythons at and below `root` that have not answered.
pub(super) fn silent(root: u32, answers: &BTreeMap<u32, Answer>) -> impl Iterator<Item = Python> {
    processes(root).filter(is_python).filter_map(Python::find).filter(|python| !is_reached(python, answers))
}

/// Where gnntop has to run for a program that is started by another one of this kind.
fn elsewhere(root: u32) -> Option<String> {
    processes(root).find_map(|process| {
        let words = process.words();
        let name = words.first()?.rsplit('/').next()?;
        let (_, place) = ELSEWHERE.iter().find(|(known, _)| *known == name)?;
        Some(format!("hardware only: what {name} starts is not below it: run gnntop {place}"))
    })
}

/// A forked child has no answer: it is what its parent is.
fn is_reached(python: &Python, answers: &BTreeMap<u32, Answer>) -> bool {
    let is_fork = python.words == python.parents_words;
    answers.contains_key(&python.process.pid()) || is_fork && answers.contains_key(&python.parent)
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

/// The processes at and below `root`.
fn processes(root: u32) -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(move |pid| descends(*pid, root)).filter_map(Process::find)
}

fn is_python(process: &Process) -> bool {
    match fs::read_link(format!("/proc/{}/exe", process.pid())) {
        Ok(program) => program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python")),
        // Another user's, as below sudo.
        Err(_) => {
            let words = process.words();
            words.first().and_then(|word| word.rsplit('/').next()).is_some_and(|name| name.starts_with("python"))
        }
    }
}

impl Python {
    fn find(process: Process) -> Option<Self> {
        let parent = process.parent();
        let parents_words = parent.as_ref().map(Process::words).unwrap_or_default();
        let words = process.words();
        (!words.is_empty()).then(|| Self {
            process,
            words,
            parent: parent.map_or(0, |parent| parent.pid()),
            parents_words,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn fork_is_reached_like_its_parent() {
        let own = Process::find(std::process::id()).unwrap();
        let answers = |pid| BTreeMap::from([(pid, Answer::default())]);
        let python = |line: &str| Python {
            process: own.clone(),
            parent: 7,
            words: words(line),
            parents_words: words("python train.py"),
        };
        assert!(is_reached(&python("python -I other.py"), &answers(own.pid())));
        assert!(is_reached(&python("python train.py"), &answers(7)));
        assert!(!is_reached(&python("python -I other.py"), &answers(7)));
        assert!(!is_reached(&python("python train.py"), &answers(6)));
    }

    #[test]
    fn sentence_is_the_most_helpful_one() {
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
        assert_eq!(elsewhere(std::process::id()), None);
    }
}
