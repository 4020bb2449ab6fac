//! Which Python programs of a run were reached, which were not, and why not.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use gnntop_analysis::figures;
use gnntop_analysis::source::process::{Process, descends};

use super::answers::{Answer, Answers};
use super::unreached::{self, Reason};

/// A Python that has not answered for this long was not reached, even if nothing shows why.
const PATIENCE: Duration = Duration::from_secs(10);
/// A program that lived less may have ended before it got anywhere.
const SHORT: Duration = Duration::from_secs(2);
/// Time between two looks.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Said of a program that has published what is not there.
const SESSION_LOST: &str =
    "has lost its session: it was removed while the program ran, or its file system was unmounted";
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
        let process = Process::find(root);
        let run = move || {
            let mut pythons = Pythons { answers, below: Descendants::new(root), silent: BTreeMap::new() };
            for () in asked {
                let now = pythons.sentence();
                // What a program was until its end is why nothing was seen of it.
                if now.is_some() || process.as_ref().is_some_and(Process::is_alive) {
                    *lock(&found) = now;
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
    below: Descendants,
    /// Those without an answer, since when they have been seen, and why, once that is certain.
    silent: BTreeMap<Process, (Instant, Option<Reason>)>,
}

impl Pythons {
    fn sentence(&mut self) -> Option<String> {
        let answers = self.answers.read();
        let now = Instant::now();
        let before = std::mem::take(&mut self.silent);
        let mut unreached: Option<(u32, Reason)> = None;
        for python in silent(&mut self.below, &answers) {
            let pid = python.process.pid();
            let (since, known) = before.get(&python.process).cloned().unwrap_or((now, None));
            let Some(reason) = known.or_else(|| unreached::reason(&python.process, &python.words, self.answers.dir()))
            else {
                continue;
            };
            if reason.is_certain || now.duration_since(since) >= PATIENCE {
                unreached.get_or_insert_with(|| (pid, reason.clone()));
            }
            self.silent.insert(python.process, (since, Some(reason).filter(|reason| reason.is_certain)));
        }
        let waiting = || {
            let python = self.silent.keys().next()?;
            Some(format!("hardware only so far: steps appear once process {} has loaded torch", python.pid()))
        };
        let place = || elsewhere(&mut self.below).map(|place| format!("hardware only: {place}"));
        sentence(&answers, unreached.as_ref(), lost(&self.answers)).or_else(waiting).or_else(place)
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

/// The Pythons at and below a process that have not answered, or not since they were started again in the same process.
pub(super) fn silent(below: &mut Descendants, answers: &BTreeMap<u32, Answer>) -> impl Iterator<Item = Python> {
    let is_silent = |process: &Process| match answers.get(&process.pid()) {
        Some(answer) => !answer.has_torch && answer.problems.is_empty() && unreached::has_lost_path(process.pid()),
        None => true,
    };
    let pythons = below.find().filter(is_silent).filter(is_python);
    pythons.filter_map(Python::find).filter(|python| !is_fork(python, answers))
}

/// Where gnntop has to run for a program that is started by another one of this kind.
pub(super) fn elsewhere(below: &mut Descendants) -> Option<String> {
    below.find().find_map(|process| {
        let words = process.words();
        let name = words.first()?.rsplit('/').next()?;
        let (_, place) = ELSEWHERE.iter().find(|(known, _)| *known == name)?;
        Some(format!("what {name} starts is not below it: run gnntop {place}"))
    })
}

/// Whether it is forked from one that has answered, and so does not answer itself.
fn is_fork(python: &Python, answers: &BTreeMap<u32, Answer>) -> bool {
    python.words == python.parents_words && answers.contains_key(&python.parent)
}

/// Why an answer may say less than its Python meant to.
fn lost(answers: &Answers) -> Option<String> {
    let (folder, what) = (answers.dir().display(), unreached::lacking_in(answers.dir())?);
    Some(format!("its Pythons cannot say what they import: the disk of {folder} has no {what} left"))
}

fn sentence(
    answers: &BTreeMap<u32, Answer>,
    unreached: Option<&(u32, Reason)>,
    lost: Option<String>,
) -> Option<String> {
    if let Some((pid, problem)) = answers.iter().find_map(|(pid, answer)| Some((pid, answer.problems.first()?))) {
        return Some(format!("hardware only: cannot watch the Python of process {pid}: {problem}"));
    }
    if answers.values().any(|answer| answer.has_session) {
        return Some("hardware only: its session cannot be found".to_owned());
    }
    if answers.values().any(|answer| answer.has_torch) {
        return Some("torch is imported; steps appear from the first backward pass on".to_owned());
    }
    if let Some((pid, reason)) = unreached {
        return Some(format!("hardware only: the Python of process {pid} was not reached: {}", reason.text));
    }
    let why = lost.unwrap_or_else(|| "no Python of this program has imported torch".to_owned());
    (!answers.is_empty()).then(|| format!("hardware only: {why}"))
}

/// Why one of its Pythons cannot be watched, which is none of these processes.
pub fn problem(answers: &Answers, except: &[u32]) -> Option<String> {
    let answers = answers.read();
    let mut others = answers.iter().filter(|(pid, _)| !except.contains(pid));
    let (pid, problem) = others.find_map(|(pid, answer)| Some((pid, answer.problems.first()?)))?;
    Some(format!("the Python of process {pid} cannot be watched: {problem}"))
}

/// What to say of a program without a session, one of whose Pythons has opened one.
pub fn lost_session(answers: &Answers) -> Option<&'static str> {
    // One that could never be written was not removed.
    let is_lost = |answer: &Answer| answer.has_session && answer.problems.is_empty();
    answers.read().values().any(is_lost).then_some(SESSION_LOST)
}

/// Why a program with this command line that has ended showed no steps, by what its Pythons have said; `unreached` says why one of
/// them has said nothing, and `lived` how long the program ran. `None` if nothing is known of any Python.
pub fn explain_end(
    answers: &Answers,
    command: &[String],
    unreached: Option<String>,
    lived: Duration,
) -> Option<String> {
    if let Some(problem) = problem(answers, &[]) {
        return Some(problem);
    }
    if !answers.dir().exists() {
        return Some(format!("{}, where its Pythons answer, was removed while it ran", answers.dir().display()));
    }
    let (answers, lost) = (answers.read(), lost(answers));
    let short = if lived < SHORT {
        format!("; it ended after {}", figures::duration(lived.as_nanos() as u64))
    } else {
        String::new()
    };
    if answers.values().any(|answer| answer.has_torch) {
        return Some(format!("it imported torch, and ended before a backward pass or a batch through a model{short}"));
    }
    if let Some(reason) = unreached.or_else(|| unreached::reason_in_command(command)) {
        return Some(format!("its Python was not reached: {reason}"));
    }
    if !answers.is_empty() {
        return Some(lost.unwrap_or_else(|| format!("no Python of it imported torch{short}")));
    }
    let is_unknown = unreached::is_python(command) && !short.is_empty();
    is_unknown.then(|| format!("its Python did not answer{short}"))
}

/// Finds the processes at and below one, again and again, on a machine that may have thousands of others.
#[derive(Debug)]
pub(super) struct Descendants {
    root: u32,
    /// Processes that are not below it. None of them ever will be, so that each is looked at once.
    others: HashSet<u32>,
}

impl Descendants {
    pub(super) fn new(root: u32) -> Self {
        Self { root, others: HashSet::new() }
    }

    /// Those that live.
    fn find(&mut self) -> impl Iterator<Item = Process> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let is_below = |pid: &u32| !self.others.contains(pid) && descends(*pid, self.root);
        let (below, others): (Vec<u32>, Vec<u32>) = numbers.partition(is_below);
        self.others = others.into_iter().collect();
        below.into_iter().filter_map(Process::find)
    }
}

fn is_python(process: &Process) -> bool {
    match fs::read_link(format!("/proc/{}/exe", process.pid())) {
        Ok(program) => {
            let is_named_so = program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python"));
            is_named_so || unreached::is_frozen(process.pid(), &program)
        }
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
    use std::os::unix::process::CommandExt;
    use std::path::Path;
    use std::process::{Child, Command};

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
        assert!(is_fork(&python("python train.py"), &answers(7)));
        assert!(!is_fork(&python("python -I other.py"), &answers(7)));
        assert!(!is_fork(&python("python train.py"), &answers(6)));
    }

    #[test]
    fn sentence_is_the_most_helpful_one() {
        let answer = |has_torch, problems: &[&str]| Answer {
            has_torch,
            problems: problems.iter().map(|problem| (*problem).to_owned()).collect(),
            ..Answer::default()
        };
        let said = |answers: &[Answer], lost: Option<&str>| {
            let answers = answers.iter().cloned().zip(1..).map(|(answer, pid)| (pid, answer)).collect();
            sentence(&answers, None, lost.map(str::to_owned)).unwrap_or_default()
        };
        let full = Some("the disk is full");
        assert_eq!(said(&[answer(false, &[])], full), "hardware only: the disk is full");
        assert!(said(&[answer(true, &[])], full).contains("first backward pass"));
        let said = |answers: &[Answer]| said(answers, None);
        assert_eq!(said(&[]), "");
        assert!(said(&[answer(false, &[])]).contains("no Python of this program has imported torch"));
        assert!(said(&[answer(false, &[]), answer(true, &[])]).contains("first backward pass"));
        assert!(said(&[answer(true, &["no library"])]).contains("no library"));
    }

    #[test]
    fn end_without_steps_has_its_cause() {
        let dir = tempfile::tempdir().unwrap();
        let answers = Answers::open(dir.path().to_owned());
        let explain_command = |line: &str, unreached: Option<&str>, ms| {
            let unreached = unreached.map(str::to_owned);
            explain_end(&answers, &words(line), unreached, Duration::from_millis(ms)).unwrap_or_default()
        };
        let explain = |unreached, ms| explain_command("bash train.sh", unreached, ms);
        assert_eq!(explain(None, 9000), "", "no Python is known");
        assert_eq!(explain(Some("it was started with -I"), 9000), "its Python was not reached: it was started with -I");
        let ignores = explain_command("python -I train.py", None, 300);
        assert!(ignores.starts_with("its Python was not reached: it was started with -I"), "{ignores}");
        assert_eq!(explain_command("python3 train.py", None, 300), "its Python did not answer; it ended after 300 ms");
        let write = |text: &str| fs::write(dir.path().join("17"), text).unwrap();
        write("python 3.12.1\n");
        assert_eq!(explain(None, 300), "no Python of it imported torch; it ended after 300 ms");
        assert_eq!(explain(None, 9000), "no Python of it imported torch");
        write("python 3.12.1\ntorch\n");
        assert!(explain(None, 9000).starts_with("it imported torch, and ended before a backward pass"));
        assert!(explain(None, 300).ends_with("; it ended after 300 ms"));
        write("python 3.12.1\ntorch\nsession\n");
        assert!(lost_session(&answers).is_some_and(|lost| lost.starts_with("has lost its session")));
        write("python 3.12.1\nproblem No space left\nsession\n");
        assert_eq!(lost_session(&answers), None, "it was never there");
        write("python 3.12.1\nproblem torch 1.8 is too old\n");
        assert!(explain(None, 9000).ends_with("cannot be watched: torch 1.8 is too old"));
        assert!(problem(&answers, &[16]).is_some() && problem(&answers, &[17]).is_none(), "it has a session");
        drop(dir);
        assert!(explain(None, 9000).ends_with("where its Pythons answer, was removed while it ran"));
    }

    /// A process that sleeps under another name.
    fn sleeper(name: &str) -> Child {
        Command::new("sleep").arg0(name).arg("1000").spawn().unwrap()
    }

    #[test]
    fn a_python_that_ends_as_it_is_looked_at_has_no_reason() {
        let mut python = sleeper("python");
        let process = Process::find(python.id()).unwrap();
        assert!(unreached::reason(&process, &words("python train.py"), Path::new("/tmp/a")).is_some());
        python.kill().unwrap(); // a zombie until it is waited for, with an empty environment
        while process.is_alive() {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(unreached::reason(&process, &words("python train.py"), Path::new("/tmp/a")), None);
        python.wait().unwrap();
    }

    #[test]
    fn processes_that_begin_later_are_found() {
        let mut below = Descendants::new(std::process::id());
        assert!(below.find().any(|process| process.pid() == std::process::id()));
        assert!(below.others.contains(&std::os::unix::process::parent_id()));
        let mut child = sleeper("sleep");
        assert!(below.find().any(|process| process.pid() == child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!below.find().any(|process| process.pid() == child.id()));
    }

    #[test]
    fn a_sentence_goes_with_its_cause() {
        let mut docker = sleeper("docker");
        let dir = tempfile::tempdir().unwrap();
        let reach = Reach::new(std::process::id(), Answers::open(dir.path().to_owned()));
        let wait_for = |is_it: &dyn Fn(Option<String>) -> bool| {
            let is_found = (0..6000).any(|_| {
                thread::sleep(Duration::from_millis(20));
                is_it(reach.sentence())
            });
            assert!(is_found, "{:?}", reach.sentence());
        };
        wait_for(&|sentence| sentence.is_some_and(|sentence| sentence.contains("run gnntop in the container")));
        docker.kill().unwrap();
        docker.wait().unwrap();
        wait_for(&|sentence| sentence.is_none());
    }
}
