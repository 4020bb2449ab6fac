//! Watches the Python programs that `gnntop run` starts: prepares their environment, and says why if they show no
//! steps.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::super::layers::Layer;
use crate::python::answers::Answers;
use crate::python::joining;
use crate::python::package::{self, Package};
use crate::python::reach::{self, Reach};
use crate::python::results;
use crate::python::unreached::is_python;
use gnntop_analysis::source::{ProgramSession, Status};
use gnntop_sessions::layout;

/// What was prepared before the program is started.
pub(super) struct PythonSetup {
    answers: Option<Answers>,
    variables: Vec<(&'static str, OsString)>,
    package: Option<Package>,
    /// The program and its arguments, unless its Pythons cannot be watched.
    command: Vec<String>,
    /// Why the newest Python that has not answered was not reached.
    unreached: Arc<Mutex<Option<String>>>,
}

impl PythonSetup {
    /// Prepares nothing: for our own programs, or if everything is turned off.
    pub(super) fn disabled() -> Self {
        Self { answers: None, variables: Vec::new(), package: None, command: Vec::new(), unreached: Arc::default() }
    }

    /// Unpacks the Python package. If that fails, a message says so, and the hardware of Pythons is still seen.
    pub(super) fn new(command: &[OsString], warn: impl Fn(&str)) -> Self {
        let words = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        if package::is_off() {
            return Self { command: words, ..Self::disabled() };
        }
        let prepared = package::package().map_err(anyhow::Error::from).and_then(|package| {
            let answers =
                Answers::create(&[&layout::temporary_dir(), package.folder().parent().unwrap_or(package.folder())])?;
            let variables = package::environment(package.folder(), &launch_id(command), &answers);
            let command = words;
            Ok(Self { answers: Some(answers), variables, package: Some(package), command, unreached: Arc::default() })
        });
        prepared.unwrap_or_else(|error| {
            warn(&format!("Python programs will show only their hardware: {error:#}"));
            Self::disabled()
        })
    }

    /// The additional variables in the program's environment.
    pub(super) fn variables(&self) -> impl Iterator<Item = (&'static str, &OsString)> {
        self.variables.iter().map(|(name, value)| (*name, value))
    }

    /// Joins those of its Pythons that do not look for us, on a thread that ends with the program `pid`.
    pub(super) fn join_children(&self, pid: u32) {
        let (Some(answers), Some(package)) = (self.answers(), &self.package) else { return };
        let (answers, package) = (Answers::open(answers.to_owned()), package.folder().to_owned());
        let unreached = Arc::clone(&self.unreached);
        let join = move || joining::join_children(pid, &package, &answers, &unreached);
        // Without the thread the view says which Pythons are not reached.
        let _ = thread::Builder::new().name("gnntop joins".to_owned()).spawn(join);
    }

    /// Where its Pythons answer.
    pub(super) fn answers(&self) -> Option<&Path> {
        self.answers.as_ref().map(Answers::dir)
    }

    /// Where this process crashed or ended itself; empty where it did neither.
    pub(super) fn crash_report(&self, pid: u32) -> Vec<String> {
        self.answers.as_ref().map(|answers| answers.crash_report(pid)).unwrap_or_default()
    }

    /// What to say of the program, which has ended after this time and has no session: why it showed no steps; `None` if nothing is
    /// known of a Python in it.
    pub(super) fn explain_end(&self, lived: Duration) -> Option<String> {
        let Some(answers) = &self.answers else {
            let why = "showed no steps: GNNTOP=0 is set, so Pythons are not watched";
            return is_python(&self.command).then(|| why.to_owned());
        };
        if let Some(lost) = reach::lost_session(answers) {
            return Some(lost.to_owned());
        }
        let unreached = self.unreached.lock().unwrap_or_else(PoisonError::into_inner).clone();
        reach::explain_end(answers, &self.command, unreached, lived).map(|why| format!("showed no steps: {why}"))
    }

    /// What became of the results that it was to write into runs of trackers, a line each.
    pub(super) fn result_lines(&self) -> Vec<String> {
        self.answers.as_ref().map(|answers| results::lines(&answers.read())).unwrap_or_default()
    }

    /// Why one of its Pythons cannot be watched, which is none of these processes.
    pub(super) fn problem(&self, except: &[u32]) -> Option<String> {
        reach::problem(self.answers.as_ref()?, except)
    }

    /// The processes that have answered.
    pub(super) fn pids(&self) -> impl Iterator<Item = u32> {
        self.answers.iter().flat_map(|answers| answers.read().into_keys())
    }
}

/// The session of a program that started at `since` or later, whose Pythons answer in this folder.
pub(in super::super) fn program_session(pid: u32, since: SystemTime, answers: Option<&Path>) -> ProgramSession {
    let answers = answers.map(|dir| Answers::open(dir.to_owned()));
    let pythons = move || answers.iter().flat_map(|answers| answers.read().into_keys()).collect();
    ProgramSession::new(pid, since, layout::sessions_dir()).with_started(pythons)
}

/// The Pythons of a running program, where they were prepared: says for one without steps why its Pythons show none.
#[derive(Clone)]
pub(super) struct PythonWatch(Option<Arc<Reach>>);

impl PythonWatch {
    /// Follows the program with this id and what it starts, which answer in this folder.
    pub(super) fn new(pid: u32, answers: Option<PathBuf>) -> Self {
        Self(answers.map(|dir| Arc::new(Reach::new(pid, Answers::open(dir)))))
    }
}

impl Layer for PythonWatch {
    fn amend(&self, status: &mut Status) {
        if let Some(reach) = &self.0
            && let Some(hint) = &mut status.hint
            && let Some(sentence) = reach.sentence()
        {
            *hint = sentence;
        }
    }
}

/// An id that all ranks of this start share, and no other run of this user; in a Slurm job, the same again when the job
/// is requeued.
fn launch_id(command: &[OsString]) -> String {
    // Programs of a sweep are many of one job, and alike.
    let job = std::env::var("SLURM_JOB_ID").ok().filter(|job| !job.is_empty() && !command.is_empty());
    if let Some(job) = job {
        let mut hasher = DefaultHasher::new();
        command.hash(&mut hasher);
        return format!("{job}-{:08x}", hasher.finish() as u32);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{:x}", now.as_millis(), std::process::id())
}
