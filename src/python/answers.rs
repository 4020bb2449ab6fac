//! What the Python programs of a run say of themselves: a file each, in a folder that is made for the run.
//!
//! This is how `gnntop run` knows which Pythons it did not reach, and why one that it did reach shows nothing.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use gnntop_sessions::PrivateDir;
use gnntop_wire::text::clean;

use crate::locked_dir::{self, LOCK, LockedDir};

/// Longest answer that is read.
const MAX_LEN: u64 = 16 * 1024;

/// Prefix of the folders' names, followed by the process that made each.
const PREFIX: &str = "gnntop-answers-";

/// What follows the process in the name of the file that says where it ended.
const ENDING: &str = ".end";

/// What a Python says of results that have arrived.
const WRITTEN: &str = "written";

/// The folder of a run's answers.
#[derive(Debug)]
pub struct Answers {
    dir: PathBuf,
    /// The folder goes with this, where this made it.
    _own: Option<LockedDir>,
}

/// What one process says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The version of Python, such as `3.11.7`.
    pub python: String,
    /// Whether torch was imported and is hooked.
    pub has_torch: bool,
    /// Whether its session was opened.
    pub has_session: bool,
    /// Why something does not work.
    pub problems: Vec<String>,
    /// What became of the results that go to trackers: a tracker's name each, and why they are not there.
    pub results: Vec<(String, Option<String>)>,
}

impl Answers {
    /// A new folder in the first of these `places` where one can be made; it goes with this. Those of processes that were killed go too.
    ///
    /// # Errors
    /// It can be made in none.
    pub fn create(places: &[&Path]) -> io::Result<Self> {
        let mut made = Err(io::ErrorKind::NotFound.into());
        for place in places {
            made = made.or_else(|_| create_in(place));
        }
        let own = made?;
        Ok(Self { dir: own.path().to_owned(), _own: Some(own) })
    }

    /// A folder that another process has made, and removes.
    pub fn open(dir: PathBuf) -> Self {
        Self { dir, _own: None }
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where this process crashed or ended itself, as Python's fault handler writes it; empty where it did neither.
    pub fn crash_report(&self, pid: u32) -> Vec<String> {
        let text = PrivateDir::open(&self.dir).ok().and_then(|dir| text(&dir, &format!("{pid}{ENDING}")));
        text.unwrap_or_default().lines().map(|line| clean(line.as_bytes())).collect()
    }

    /// Adds why a process that has answered cannot be watched, where it cannot say so itself.
    ///
    /// # Errors
    /// Its answer cannot be written.
    pub fn add_problem(&self, pid: u32, problem: &str) -> io::Result<()> {
        let mut file = PrivateDir::open(&self.dir)?.append(&pid.to_string())?;
        writeln!(file, "problem {problem}")
    }

    /// The answers so far, by process. Unreadable files are left out.
    pub fn read(&self) -> BTreeMap<u32, Answer> {
        let Ok(dir) = PrivateDir::open(&self.dir) else { return BTreeMap::new() };
        let names = dir.names().unwrap_or_default();
        let names = names.iter().filter_map(|name| name.to_str());
        names.filter_map(|name| Some((name.parse().ok()?, Answer::parse(&text(&dir, name)?)))).collect()
    }
}

fn create_in(folder: &Path) -> io::Result<LockedDir> {
    remove_abandoned(folder);
    LockedDir::create(folder, &format!("{PREFIX}{}-", std::process::id()))
}

/// This user's folders whose makers are gone.
pub fn abandoned(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    locked_dir::abandoned(folder, PREFIX)
}

/// Removes this user's folders whose makers are gone; returns those that it has removed. One with anything else in it stays.
pub fn remove_abandoned(folder: &Path) -> Vec<PathBuf> {
    let remove = |path: &PathBuf| {
        let Ok(dir) = PrivateDir::open(path) else { return false };
        let of_a_process = |name: &&str| name.trim_end_matches(ENDING).parse::<u32>().is_ok();
        let names = dir.names().unwrap_or_default();
        let (answers, others): (Vec<_>, Vec<_>) =
            names.iter().filter_map(|name| name.to_str()).filter(|name| *name != LOCK).partition(of_a_process);
        answers.iter().for_each(|answer| _ = dir.remove(answer));
        // As long as there is something to look at, its folder can be known.
        others.is_empty() && dir.remove(LOCK).is_ok() && fs::remove_dir(path).is_ok()
    };
    abandoned(folder).filter(remove).collect()
}

fn text(dir: &PrivateDir, name: &str) -> Option<String> {
    let mut text = Vec::new();
    dir.read(name).ok()?.take(MAX_LEN).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

impl Answer {
    fn parse(text: &str) -> Self {
        let mut answer = Self::default();
        for line in text.lines() {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("python", version) => answer.python = clean(version.as_bytes()),
                ("torch", _) => answer.has_torch = true,
                ("session", _) => answer.has_session = true,
                ("problem", problem) => answer.problems.push(clean(problem.as_bytes())),
                ("results", outcome) => {
                    let (tracker, outcome) = outcome.split_once(' ').unwrap_or((outcome, ""));
                    let why = Some(clean(outcome.as_bytes())).filter(|outcome| outcome != WRITTEN);
                    answer.results.push((clean(tracker.as_bytes()), why));
                }
                _ => {}
            }
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_no_temporary_folder_can_be_made_answers_go_into_the_other_one() {
        let dir = tempfile::tempdir().unwrap();
        let answers = Answers::create(&[&dir.path().join("none"), dir.path()]).unwrap();
        assert_eq!(answers.dir().parent(), Some(dir.path()));
    }

    fn answer_of_python(version: &str) -> Answer {
        Answer { python: version.to_owned(), ..Answer::default() }
    }

    #[test]
    fn answers_are_parsed_by_process_without_invalid_ones() {
        let answers = Answers::create(&[&std::env::temp_dir()]).unwrap();
        let write = |name: &str, text: &[u8]| fs::write(answers.dir().join(name), text).unwrap();
        write("17", b"python 3.11.7\ntorch\nproblem no \x1b[2Jlibrary\nnews of later\n");
        write("18", b"\xFF\n");
        write("nobody", b"python 3.9\n");
        let read = answers.read();
        let expected = Answer {
            has_torch: true,
            problems: vec!["no \u{fffd}[2Jlibrary".to_owned()],
            ..answer_of_python("3.11.7")
        };
        assert_eq!(read, BTreeMap::from([(17, expected), (18, Answer::default())]));
        write("17.end", b"os._exit\n  File \"/w/a.py\", line 3 in f\x1b\n");
        assert_eq!(answers.crash_report(17), ["os._exit", "  File \"/w/a.py\", line 3 in f\u{fffd}"]);
        assert_eq!((answers.crash_report(18).len(), answers.read().len()), (0, 2), "an ending is no answer");
        let dir = answers.dir().to_owned();
        drop(Answers::open(dir.clone()));
        assert!(dir.exists());
        drop(answers);
        assert!(!dir.exists());
    }

    #[test]
    fn abandoned_folders_are_removed() {
        let temporary = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let dir = temporary.path().join(name);
            fs::create_dir(&dir).unwrap();
            fs::write(dir.join("17"), "").unwrap();
            fs::write(dir.join("17.end"), "").unwrap();
            fs::write(dir.join(LOCK), "").unwrap();
            dir
        };
        let own = create_in(temporary.path()).unwrap();
        let (gone, other) = (make("gnntop-answers-900000001-b"), make("gnntop-900000001-c"));
        let full = make("gnntop-answers-900000001-d");
        fs::write(full.join("a person's"), "").unwrap();
        // Whose process is of another PID namespace, or has not locked it yet.
        let unknown = make("gnntop-answers-900000001-e");
        fs::remove_file(unknown.join(LOCK)).unwrap();
        assert_eq!(remove_abandoned(temporary.path()), [gone]);
        assert!([own.path(), &other, &full.join("a person's"), &unknown].iter().all(|path| path.exists()));
    }
}
