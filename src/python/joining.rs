//! Joins a Python that runs already, and leaves it again: two small scripts, run in it by [`super::remote`].

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use gnntop_analysis::source::process::{Process, descends};

use super::answers::{Answer, Answers};
use super::package::{self, Package, PackageError};
use super::reach::{self, Descendants};
use super::remote::{self, RemoteError};
use super::unreached;

/// Time between two looks for Pythons to join: at the begin of a program, when most of them start, and later. A look reads about
/// every process of the program.
const FIRST_INTERVAL: Duration = Duration::from_millis(500);
const LAST_INTERVAL: Duration = Duration::from_secs(5);
/// In between, it is the time since the begin divided by this.
const INTERVAL_PART: u32 = 10;
/// A silent Python is asked at these looks: not at the first, when it may be about to answer.
const ASKED: RangeInclusive<u32> = 2..=6;

/// Why a process was not joined.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// It runs no Python, or one that cannot be asked.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// There is nothing to join it with.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The scripts cannot be written.
    #[error("cannot write the script for it: {0}")]
    Script(#[from] io::Error),
}

/// A Python that was joined; left when this is dropped.
#[derive(Debug)]
pub struct JoinedPython {
    pid: u32,
    leave: PathBuf,
    _package: Package,
}

impl JoinedPython {
    /// Has the Python of this process hook what it has imported. Its session opens at its next backward pass.
    ///
    /// # Errors
    /// As [`JoinError`] says. Then nothing was changed in the process.
    pub fn join(pid: u32) -> Result<Self, JoinError> {
        let package = package::package()?;
        let (join, leave) = (script(package.folder(), "join")?, script(package.folder(), "leave")?);
        remote::run(pid, &join)?;
        Ok(Self { pid, leave, _package: package })
    }
}

impl Drop for JoinedPython {
    fn drop(&mut self) {
        // It may have ended, which leaves nothing to take back.
        let _ = remote::run(self.pid, &self.leave);
    }
}

/// Joins the Pythons at and below `root` that do not look for us: those of a script that overwrites `PYTHONPATH`, or with an
/// option such as `-I`. Each is asked a few times, since one that is just starting does not listen yet. One that cannot be
/// joined stays as it is, and `gnntop run` says why it is not reached; so does `unreached`, for the newest of which it is certain. Returns when
/// `root` has ended.
pub fn join_children(root: u32, package: &Path, answers: &Answers, unreached: &Mutex<Option<String>>) {
    let (Ok(join), Some(root)) = (script(package, "join"), Process::find(root)) else { return };
    let (mut below, mut seen) = (Descendants::new(root.pid()), BTreeMap::<Process, u32>::new());
    let began = Instant::now();
    while root.is_alive() {
        let answered = answers.read();
        note_other_users(answers, &answered, root.pid());
        for python in reach::silent(&mut below, &answered) {
            let times = seen.entry(python.process.clone()).or_default();
            *times = times.saturating_add(1);
            if !ASKED.contains(times) {
                continue;
            }
            let Some(reason) = unreached::reason(&python.process, &python.words, answers.dir()) else { continue };
            if reason.may_join {
                // Whatever fails: the view says that it is not reached.
                let _ = remote::run(python.process.pid(), &join);
            }
            let mut told = unreached.lock().unwrap_or_else(PoisonError::into_inner);
            if reason.is_certain || told.is_none() {
                *told = Some(reason.text);
            }
        }
        if let Some(place) = reach::elsewhere(&mut below) {
            unreached.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(place);
        }
        thread::sleep(interval(began.elapsed()));
    }
}

/// Adds to the answers of Pythons below `root` that have given up this user's rights why they cannot be watched: they cannot say it.
fn note_other_users(answers: &Answers, answered: &BTreeMap<u32, Answer>, root: u32) {
    let would_be_watched = |answer: &Answer| answer.has_torch && answer.problems.is_empty();
    for pid in answered.iter().filter(|(_, answer)| would_be_watched(answer)).map(|(pid, _)| *pid) {
        let process = Process::find(pid).filter(|_| descends(pid, root));
        if let Some(user) = process.as_ref().and_then(unreached::other_user) {
            // Whatever fails: the view then says less.
            let _ = answers.add_problem(pid, &format!("it runs as user {user} now; run gnntop as that user"));
        }
    }
}

/// Time to the next look, so long after the begin.
fn interval(elapsed: Duration) -> Duration {
    (elapsed / INTERVAL_PART).clamp(FIRST_INTERVAL, LAST_INTERVAL)
}

/// The script that calls a function of `_joining` in the package, beside it. The package has a name of its own, unless the
/// program has imported it: see `bootstrap/sitecustomize.py`.
fn script(package: &Path, function: &str) -> io::Result<PathBuf> {
    let path = package.join(format!("{function}.py"));
    let package = package.join("gnntop");
    let text = format!(
        r#"def _gnntop():
    import sys
    is_imported = "gnntop._native" in sys.modules and "gnntop._endings" in sys.modules
    name = "gnntop" if is_imported and "_gnntop" not in sys.modules else "_gnntop"
    if name not in sys.modules:
        import _frozen_importlib as core, _frozen_importlib_external as external
        spec = external.spec_from_file_location(name, {init}, submodule_search_locations=[{folder}])
        sys.modules[name] = module = core.module_from_spec(spec)
        spec.loader.exec_module(module)
    __import__(name + "._joining")
    sys.modules[name + "._joining"].{function}()


try:
    _gnntop()
finally:
    del _gnntop
"#,
        init = python_text(&package.join("__init__.py")),
        folder = python_text(&package)
    );
    if fs::read_to_string(&path).ok().as_deref() != Some(text.as_str()) {
        package::replace(&path, text.as_bytes())?;
    }
    Ok(path)
}

/// A path as Python writes a text: JSON's texts are Python's, too.
fn python_text(path: &Path) -> String {
    serde_json::Value::from(path.to_string_lossy()).to_string()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_path_of_any_letters_is_a_text_of_python() {
        assert_eq!(python_text(Path::new("/บ้าน/\"a\"")), r#""/บ้าน/\"a\"""#);
    }

    #[test]
    fn interval_grows_with_the_time_since_the_begin() {
        let interval_ms = |s| interval(Duration::from_secs(s)).as_millis();
        assert_eq!([0, 3, 20, 60, 100_000].map(interval_ms), [500, 500, 2000, 5000, 5000]);
        let (mut at, mut looks) = (Duration::ZERO, 0);
        while at < Duration::from_secs(120) {
            (at, looks) = (at + interval(at), looks + 1);
        }
        assert!(looks <= 60, "{looks} looks in two minutes");
    }

    #[test]
    fn python_that_has_given_up_its_rights_is_named_once() {
        let Ok(mut child) = Command::new("sleep").arg("1000").uid(65_534).spawn() else {
            return println!("skipped: only root can start a program as another user");
        };
        let answers = Answers::create(&[&std::env::temp_dir()]).unwrap();
        let write = |pid: u32, text: &str| fs::write(answers.dir().join(pid.to_string()), text).unwrap();
        write(child.id(), "python 3.11.7\ntorch\n");
        write(std::process::id(), "python 3.11.7\ntorch\n");
        for _ in 0..2 {
            note_other_users(&answers, &answers.read(), std::process::id());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let read = answers.read();
        assert_eq!(read[&child.id()].problems, ["it runs as user 65534 now; run gnntop as that user"]);
        assert!(read[&std::process::id()].problems.is_empty());
    }

    #[test]
    fn a_script_names_the_package_and_its_function() {
        let dir = tempfile::tempdir().unwrap();
        let package = dir.path().join("it's \"here\"");
        fs::create_dir(&package).unwrap();
        let path = script(&package, "join").unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(r#"it's \"here\""#) && text.contains("_joining\"].join()"), "{text}");
        assert_eq!(script(&package, "join").unwrap(), path, "it stays");
        assert_eq!(fs::read_dir(&package).unwrap().count(), 1);
    }
}
